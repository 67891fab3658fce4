#pragma once
// Origins that have sent more than their answers said, and when that is forgiven.
// Bytes behind an answer become the next request's answer where the connection is used again, and
// those that come late cannot be told from it. So an origin caught once gets a new connection per
// request. One table for all threads: what one has seen is true for the others.
//
// Fixed in size (expiring_marks). Whoever fills a bucket with origins of its own makes the others in
// it trusted too early, and a stranger that shares a bucket and 32 bits pays with new connections
// for nothing: by chance alone.

#include "proxy/base/clock.hpp"
#include "proxy/net/expiring_marks.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace reprise::proxy::net {

/// Memory   32 KiB.
/// Threads  any number; has() is four relaxed loads of one cache line.
class distrusted_origins {
public:
    static constexpr std::chrono::hours for_long{1};

    /// What an origin is called here: made once, asked often.
    [[nodiscard]] static secret_name name_of(std::string_view host, std::uint16_t port, bool tls);

    /// False: it was known already (its hour begins anew).
    bool note(secret_name name, steady_time now) noexcept;
    [[nodiscard]] bool has(secret_name name, steady_time now) const noexcept {
        return marks_.has(name, now);
    }
    /// Some were noted, ever: nearly always no, and then there is nothing to ask.
    [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

private:
    expiring_marks marks_{1'024};
    std::atomic<bool> any_{false};
};

}  // namespace reprise::proxy::net
