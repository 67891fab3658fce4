#pragma once
// Which bits of a filter a key owns: k places in [0, m) from the two words of its hash.
//
// Enhanced double hashing (Dillinger and Manolios, "Bloom Filters in Probabilistic Verification",
// FMCAD 2004, section 5.2): place i is x + i*y + (i^3 - i)/6 modulo m. Plain double hashing, x +
// i*y (Kirsch and Mitzenmacher 2006), has the same rate for large m, but in small filters its pairs
// (x, y) and (x + (k-1)*y, -y) name the same places, and y = 0, or y sharing a factor with m, names
// fewer than k; the cubic term removes both for one addition per probe. What is left beyond an
// ideal hash is that two keys may share (x, y) and so all places: a share of n/m^2 (alias_rate in
// sizing.hpp), a thousandth of the rate at 1,000 keys and 1 %. In filters of even size the parities
// of places i and i + 2 go together, which the rate does not show (tests/unit/filter/
// indices_test.cpp has both).
//
// The words are reduced by `modulo m`, not by the cheaper multiplication: places modulo m are,
// taken modulo m/2, the places of a filter half as large, so that a filter can be folded (halved)
// later. The bias of modulo is below m / 2^64.
//
// Blocked filters (bloom.hpp, split_block.hpp) choose their bits another way, each in its header.

#include "filter/key_hash.hpp"

#include <cassert>
#include <cstdint>

namespace reprise::filter {

/// The places of one key, one after the other, without end; a filter takes its first k. They may
/// repeat, as independent ones would.
class indices {
public:
    /// @pre 0 < bits < 2^63. Two divisions; each place then costs two additions.
    indices(key_hash key, std::uint64_t bits) noexcept
        : bits_{bits},
          place_{key.low % bits},
          step_{key.high % bits} {
        assert(bits > 0 && bits < std::uint64_t{1} << 63);
    }

    /// The next place, in [0, bits).
    std::uint64_t next() noexcept {
        const auto place = place_;
        place_ = wrapped(place_ + step_);
        count_ = wrapped(count_ + 1);
        step_ = wrapped(step_ + count_);
        return place;
    }

private:
    [[nodiscard]] std::uint64_t wrapped(std::uint64_t sum) const noexcept {
        return sum >= bits_ ? sum - bits_ : sum;
    }

    std::uint64_t bits_;
    std::uint64_t place_;
    std::uint64_t step_;
    std::uint64_t count_ = 0;
};

}  // namespace reprise::filter
