#pragma once
// An xor filter (Graf, Lemire: "Xor Filters: Faster and Smaller Than Bloom and Cuckoo Filters", ACM
// JEA 2020): a key's three slots, one in each third of a table, XOR to its fingerprint.
//
// Static: made from all keys at once by peeling (peeling.hpp), and then neither grows nor shrinks.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"
#include "tools/alternatives/peeling.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace reprise::alternatives {

/// Memory    about 1.23 * keys * bits / 8 bytes; while it is made some 40 bytes a key more.
/// Threads   immutable: any number.
/// Errs      towards yes, at 2^-bits; never no for a key that it was made from. Made from no keys
///           it says yes at the same rate.
class xor_filter {
public:
    /// Duplicates count once. Nothing when no seed of `most_seeds` lets the keys be peeled: with
    /// the paper's 1.23 slots a key nearly every first one does. O(keys).
    /// @pre 1 <= bits <= 32, keys.size() < 2^31 @throws std::bad_alloc
    [[nodiscard]] static std::optional<xor_filter> build(std::span<const filter::key_hash> keys,
                                                         unsigned bits,
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
    xor_filter(std::uint64_t third, unsigned bits);
    [[nodiscard]] peel_places places_of(std::uint64_t hash) const noexcept;

    std::uint64_t third_;
    std::uint64_t seed_ = 0;
    unsigned seeds_tried_ = 0;
    cells slots_;
};

}  // namespace reprise::alternatives
