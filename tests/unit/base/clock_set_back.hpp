#pragma once
// A clock that was ahead and has been set back, as far as this process can tell.

#include "proxy/base/clock.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace reprise::proxy {

/// Wall time was an hour ahead, and is set back: resident time goes on from where it was.
class clock_set_back {
public:
    clock_set_back() {
        static_cast<void>(resident_now());  // from which on it is known
        before_ = furthest_.fetch_add(std::chrono::milliseconds{std::chrono::hours{1}}.count());
    }
    ~clock_set_back() { furthest_ = before_; }
    clock_set_back(const clock_set_back&) = delete;
    clock_set_back& operator=(const clock_set_back&) = delete;

private:
    std::atomic<std::int64_t>& furthest_ = detail::furthest_ahead;
    std::int64_t before_ = 0;
};

}  // namespace reprise::proxy
