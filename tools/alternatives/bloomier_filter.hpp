#pragma once
// A Bloomier filter (Chazelle, Kilian, Rubinfeld, Tal: "The Bloomier Filter: An Efficient Data
// Structure for Static Support Lookup Tables", SODA 2004): a value for each key, kept without keys.
//
// A key's three slots XOR to its value beside a fingerprint of some bits, by which a stranger is
// known. Built like an xor filter (peeling.hpp), which is one without values. The set of keys is
// fixed; the paper's second construction lets values change, and would take another table of as
// many slots to say which of the three is the key's.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"
#include "tools/alternatives/peeling.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace reprise::alternatives {

struct bloomier_entry {
    filter::key_hash key;
    std::uint32_t value = 0;
};

/// Memory    about 1.23 * keys * (check_bits + value_bits) / 8 bytes; while it is made some 60 bytes
///           a key more.
/// Threads   immutable: any number.
/// Errs      a stranger has some value with a chance of 2^-check_bits; a key has its own, always.
class bloomier_filter {
public:
    /// Where a key comes twice the first value counts. Nothing when no seed of `most_seeds` lets
    /// the keys be peeled. O(keys log keys).
    /// @pre value_bits and check_bits > 0, together <= 32; values fit; entries.size() < 2^31
    /// @throws std::bad_alloc
    [[nodiscard]] static std::optional<bloomier_filter> build(
        std::span<const bloomier_entry> entries,
        unsigned value_bits,
        unsigned check_bits,
        unsigned most_seeds = 100);

    [[nodiscard]] std::optional<std::uint32_t> value_of(filter::key_hash key) const noexcept;

    [[nodiscard]] double rate() const noexcept;
    [[nodiscard]] std::uint64_t bytes() const noexcept { return slots_.bytes(); }

private:
    bloomier_filter(std::uint64_t third, unsigned value_bits, unsigned check_bits);

    std::uint64_t third_;
    unsigned value_bits_;
    std::uint64_t seed_ = 0;
    cells slots_;
};

}  // namespace reprise::alternatives
