#pragma once
// Greedy-Dual-Size-Frequency (Cherkasova, HP Labs TR 98-69): what is worth least leaves, and an
// entry is worth
//
//     L + requests / bytes     (gdsf: most requests served from a byte of cache)
//     L + requests             (lfu_da, LFU with dynamic aging, Arlitt et al. 2000: the same for
//                               bytes, since an object's size is on both sides and cancels)
//
// where L, the inflation, is what the last one evicted was worth: so an entry's requests count from
// the level at which it was last used, and what was popular long ago is overtaken. In Cherkasova's
// words the "cost" is 1 request, or the object's size.

#include "proxy/cache/policy/eviction.hpp"

#include <cstddef>
#include <vector>

namespace reprise::proxy::cache {

/// Cost    O(log n) for each call but set_capacity: a heap of four children a node, three cache
///         lines a level.
/// Memory  a heap of 8 bytes an entry. Frequencies count to 255.
class gdsf_policy final : public eviction_policy {
public:
    enum class value { of_a_byte, of_an_object };

    explicit gdsf_policy(value counted = value::of_a_byte);

    void set_capacity(std::uint64_t bytes) override;
    void inserted(evictable& entry) override;
    void used(evictable& entry) noexcept override;
    void removed(evictable& entry) noexcept override;
    [[nodiscard]] evictable* evict() noexcept override;
    [[nodiscard]] std::uint64_t overhead() const noexcept override;

private:
    [[nodiscard]] double worth_of(const evictable& entry) const noexcept;
    void put(std::size_t place, evictable& entry) noexcept;
    void sink(std::size_t place, evictable& entry) noexcept;
    void rise(std::size_t place, evictable& entry) noexcept;
    void take_out(std::size_t place) noexcept;

    value counted_;
    double inflation_ = 0;
    std::vector<evictable*> heap_;  // the least worth in front
};

}  // namespace reprise::proxy::cache
