#pragma once
// A set of names, each until a time: what one thread has noticed of somebody, and others should know
// for a while. Fixed in size: an atomic word a name, 32 bits of its hash and the second until which
// it holds (in 32 bits: 136 years), four to a bucket, the one that ends first displaced. So a name may
// be forgotten before its time, and a stranger is taken for it with a chance of 2 to the power of -30.
// Where names are chosen by somebody who gains by that, the hash must be one that can't be computed
// from outside.

#include "proxy/base/clock.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace reprise::proxy::net {

/// Memory   32 bytes a bucket.
/// Threads  any number; has() is four relaxed loads of one cache line.
class expiring_marks {
public:
    static constexpr std::size_t ways = 4;
    /// A name's end lies no further ahead than this.
    static constexpr std::chrono::hours furthest{24 * 90};

    /// @param buckets  a power of two, at most 2 to the power of 32
    explicit expiring_marks(std::size_t buckets);

    /// @param name  a hash of 64 bits: its upper 32 and its lowest ones are used
    /// False: it was there already (it ends at `until` now).
    bool note(std::uint64_t name, steady_time until, steady_time now) noexcept;
    [[nodiscard]] bool has(std::uint64_t name, steady_time now) const noexcept;

private:
    struct alignas(ways * sizeof(std::uint64_t)) bucket {
        std::atomic<std::uint64_t> words[ways]{};
    };
    [[nodiscard]] bucket& bucket_of(std::uint64_t name) const noexcept {
        return buckets_[name & mask_];
    }
    std::uint64_t mask_;
    std::unique_ptr<bucket[]> buckets_;
};

}  // namespace reprise::proxy::net
