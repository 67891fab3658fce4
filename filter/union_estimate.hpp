#pragma once
// How many distinct keys many digests have together, from their bits alone, whatever their sizes.
//
// What each digest adds to those before is summed: the keys that turn their union's bits into the
// union with it, as estimators.hpp's difference has them. Where digests are of one size the sum is
// the estimate of their union. A smaller one folds the union to its own size from then on, so begin
// with the largest: each is then judged at its own resolution, and none at a coarser one than need
// be. Where the folded union has hardly a bit off, a smaller digest can't be told from it, and
// counts whole: what is wrong then is small beside the union, and too much rather than too little.

#include "filter/digest.hpp"

#include <cstdint>
#include <vector>

namespace reprise::filter {

/// Memory    the bits of the first digest.
/// Threads   one.
class union_estimate {
public:
    /// Counts the digest in; false, and nothing has changed, where its bits say nothing of the
    /// others': another secret, other probes, a layout that is not `standard`, or a size of which one is no
    /// multiple of the other in whole words. O(bits). @throws std::bad_alloc
    bool add(const digest& next);

    struct sum {
        double keys = 0;  ///< in any of them
        unsigned digests = 0;
        std::uint64_t listed = 0;  ///< what their owners count in them, added up
    };
    [[nodiscard]] const sum& now() const noexcept { return sum_; }

private:
    void fold_to(std::uint64_t bits);

    seed_id seed_{};
    bloom_size size_{};  // of words_
    std::vector<std::uint64_t> words_;
    sum sum_;
};

}  // namespace reprise::filter
