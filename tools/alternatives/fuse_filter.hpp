#pragma once
// A binary fuse filter (Graf, Lemire: "Binary Fuse Filters: Fast and Smaller Than Xor Filters", ACM
// JEA 2022): an xor filter whose slots lie in consecutive segments of one long table.
//
// A key picks a window of `arity` neighbouring segments and one slot in each. Windows that overlap
// let the peeling start at both ends of the table and run inwards, so 1.125 slots a key suffice
// with three, 1.075 with four, where independent thirds need 1.23. Static, like xor_filter.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"
#include "tools/alternatives/peeling.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace reprise::alternatives {

/// Memory    about 1.125 (arity 3) or 1.075 (arity 4) * keys * bits / 8 bytes from a million keys
///           on; more for fewer (1.15 to 1.2 at 10^5, twice and more below a thousand).
/// Threads   immutable: any number.
/// Errs      towards yes, at 2^-bits; never no for a key that it was made from. Made from no keys
///           it says yes at the same rate.
class fuse_filter {
public:
    /// Duplicates count once. Nothing when no seed of `most_seeds` lets the keys be peeled.
    /// O(keys).
    /// @pre 1 <= bits <= 32, arity is 3 or 4, keys.size() < 2^31 @throws std::bad_alloc
    [[nodiscard]] static std::optional<fuse_filter> build(std::span<const filter::key_hash> keys,
                                                          unsigned bits,
                                                          unsigned arity = 3,
                                                          unsigned most_seeds = 100);

    [[nodiscard]] bool may_contain(filter::key_hash key) const noexcept;

    [[nodiscard]] double rate() const noexcept;
    [[nodiscard]] std::uint64_t bytes() const noexcept { return slots_.bytes(); }
    /// What a copy for another machine would take, but for a header.
    [[nodiscard]] std::uint64_t wire_bits() const noexcept {
        return slots_.count() * slots_.bits();
    }
    /// Seeds that were tried, the one that served included.
    [[nodiscard]] unsigned seeds_tried() const noexcept { return seeds_tried_; }

private:
    struct shape {
        unsigned arity;
        unsigned segment_shift;  ///< log2 of a segment's slots
        std::uint64_t windows;   ///< segments that a window may begin at
    };
    [[nodiscard]] static shape shape_for(std::uint64_t keys, unsigned arity) noexcept;

    fuse_filter(shape sized, unsigned bits);
    [[nodiscard]] peel_places places_of(std::uint64_t hash) const noexcept;

    shape shape_;
    std::uint64_t seed_ = 0;
    unsigned seeds_tried_ = 0;
    cells slots_;
};

}  // namespace reprise::alternatives
