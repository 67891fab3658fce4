#pragma once
// A set of names, each until a time: what one thread has noticed of somebody, and others should know
// for a while. Fixed in size: an atomic word a name, 32 bits of its hash and the second until which
// it holds (in 32 bits: 136 years), four to a bucket, the one that ends first displaced. So a name may
// be forgotten before its time, and a stranger is taken for it with a chance of 2 to the power of -30,
// which nobody can better by the choice of a name (secret_name).

#include "proxy/base/clock.hpp"
#include "proxy/net/secret_name.hpp"

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

    /// False: it was there already (it ends at `until` now).
    bool note(secret_name name, steady_time until, steady_time now) noexcept;
    [[nodiscard]] bool has(secret_name name, steady_time now) const noexcept;

private:
    struct alignas(ways * sizeof(std::uint64_t)) bucket {
        std::atomic<std::uint64_t> words[ways]{};
    };
    [[nodiscard]] bucket& bucket_of(secret_name name) const noexcept {
        return buckets_[name.bits() & mask_];
    }
    std::uint64_t mask_;
    std::unique_ptr<bucket[]> buckets_;
};

}  // namespace reprise::proxy::net
