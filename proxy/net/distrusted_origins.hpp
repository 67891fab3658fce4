#pragma once
// Origins that have sent more than their answers said, and when that is forgiven.
// Bytes behind an answer become the next request's answer where the connection is used again, and
// those that come late cannot be told from it. So an origin caught once gets a new connection per
// request. One table for all threads: what one has seen is true for the others.
//
// Fixed in size, one atomic word per origin: 40 bits of a hash and 24 bits of the second until
// which it holds, four to a bucket, the one that ends first displaced. Whoever fills a bucket with
// origins of its own makes the others in it trusted too early, and a stranger that shares a bucket
// and 40 bits pays with new connections for nothing.

#include "proxy/base/clock.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

namespace reprise::proxy::net {

/// Memory   32 KiB.
/// Threads  any number; has() is four relaxed loads of one cache line.
class distrusted_origins {
public:
    static constexpr std::chrono::hours for_long{1};

    distrusted_origins();

    /// What an origin is called here: made once, asked often.
    [[nodiscard]] static std::uint64_t name_of(std::string_view host,
                                               std::uint16_t port,
                                               bool tls) noexcept;

    /// False: it was known already (its hour begins anew).
    bool note(std::uint64_t name, steady_time now) noexcept;
    [[nodiscard]] bool has(std::uint64_t name, steady_time now) const noexcept;
    /// Some were noted, ever: nearly always no, and then there is nothing to ask.
    [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t ways = 4;
    static constexpr std::size_t buckets = 1'024;
    struct alignas(ways * sizeof(std::uint64_t)) bucket {
        std::atomic<std::uint64_t> words[ways]{};
    };
    [[nodiscard]] bucket& bucket_of(std::uint64_t name) const noexcept {
        return buckets_[name % buckets];
    }
    std::unique_ptr<bucket[]> buckets_;
    std::atomic<bool> any_{false};
};

}  // namespace reprise::proxy::net
