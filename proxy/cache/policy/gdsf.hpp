#pragma once
// Greedy-Dual-Size-Frequency (Cherkasova, HP Labs TR 98-69): what is worth least leaves, and an
// entry is worth
//
//     L + requests / bytes ^ exponent
//
// where L, the inflation, is what the last one evicted was worth: so an entry's requests count from
// the level at which it was last used, and what was popular long ago is overtaken. Exponent 1 is
// the paper's (most requests served from a byte of cache), 0 is LFU with dynamic aging (Arlitt et
// al. 2000: most bytes served, for an object's size is in its cost and in its use, and cancels).
// Requests are counted while the entry is in, or, better, by a sketch that also knows those from
// before.
//
// The exponent may change while entries are in. Their worth stays what it was when they were last used,
// so the heap's order holds; what is used from then on is worth by the new exponent so much that for an
// object of the mean size nothing changes. Inflation, and what was ranked before, thus stay comparable:
// without that, a smaller exponent would put all that is old behind all that is new, and a larger one
// would keep it for long.
//
// By wait, a request is worth the seconds that the object's fetch took (the paper's cost, where it is
// the time of a download): L + requests x seconds / bytes ^ exponent. What nobody timed is taken for
// the mean of what was, and a fetch of more than ten seconds for one of ten (packed_wait.hpp). As one
// request may then be worth a hundred others, and a sketch counts to 16 only, requests are the uses
// since an entry came in where these are more.

#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/segments.hpp"

#include <cstddef>

namespace reprise::proxy::cache {

/// Cost    O(log n) for each call but set_capacity: a heap of four children per node, three cache
///         lines per level.
/// Memory  a heap of 8 bytes per entry.
class gdsf_policy final : public eviction_policy {
public:
    /// `frequencies`, where given, is noted by the owner, once per request and before the policy
    /// hears of it, and outlives this. Without it the uses of an entry are counted, to 255.
    explicit gdsf_policy(double exponent = 1,
                         const frequency_sketch* frequencies = nullptr,
                         bool by_wait = false);

    void set_capacity(std::uint64_t bytes) override;
    void inserted(evictable& entry) override;
    void used(evictable& entry) noexcept override;
    void removed(evictable& entry) noexcept override;
    [[nodiscard]] evictable* evict() noexcept override;
    /// O(1).
    void set_exponent(double exponent) noexcept override;
    [[nodiscard]] std::uint64_t overhead() const noexcept override;

private:
    [[nodiscard]] double worth_of(const evictable& entry) const noexcept;
    void put(std::size_t place, evictable& entry) noexcept;
    void settle(std::size_t place, evictable& entry) noexcept;
    void sink(std::size_t place, evictable& entry) noexcept;
    void rise(std::size_t place, evictable& entry) noexcept;
    void take_out(std::size_t place) noexcept;

    double exponent_;
    double scale_ = 1;       // of worth: 1 until the exponent changes
    double mean_bytes_ = 0;  // of about the last 256 that came in
    const frequency_sketch* frequencies_;
    const bool by_wait_;
    wait_mean waits_;
    double inflation_ = 0;
    segments<evictable*> heap_;  // the least worth in front
};

}  // namespace reprise::proxy::cache
