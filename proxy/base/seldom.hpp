#pragma once
// For a line of the log that traffic, or a fault, can repeat at any rate: it is said once a minute,
// and the next time how often it was not.

#include "proxy/base/clock.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace reprise::proxy::log {

/// Threads   any number; two that ask in the same moment may both be held back, never both speak.
class seldom {
public:
    explicit constexpr seldom(std::chrono::seconds every = std::chrono::seconds{60}) noexcept
        : every_{every} {}

    /// Something to append to the line, perhaps nothing; none: the line is to be held back. Without
    /// memory for it, nothing: it may be asked where an exception is handled.
    [[nodiscard]] std::optional<std::string> due(steady_time now = steady_now()) noexcept;

private:
    const steady_time::duration every_;
    std::atomic<steady_time::rep> next_{steady_time::duration::min().count()};
    std::atomic<std::uint64_t> held_back_{0};
};

}  // namespace reprise::proxy::log
