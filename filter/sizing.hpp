#pragma once
// How many bits for how many keys at which rate of false positives, and back: arithmetic only.
//
// Two kinds of filter, two formulas. The classic one (Bloom 1970; the form with e in Broder and
// Mitzenmacher 2004) is for a filter whose probes go anywhere. A blocked filter does worse than
// that, because its blocks fill unevenly (Putze, Sanders, Singler 2007): sized by the classic
// formula it misses the rate asked for, so it has an exact one of its own.

#include <cstdint>

namespace reprise::filter {

/// A standard filter's size.
struct bloom_size {
    std::uint64_t bits = 0;
    unsigned probes = 0;
    bool operator==(const bloom_size&) const = default;
};

/// (1 - e^(-probes * keys / bits))^probes. @pre bits > 0, probes > 0
[[nodiscard]] double classic_rate(bloom_size size, double keys) noexcept;

/// The integral number of probes with the lowest classic rate: the better neighbour of
/// bits / keys * ln 2, at least 1. @pre bits > 0, keys > 0
[[nodiscard]] unsigned best_probes(std::uint64_t bits, double keys) noexcept;

/// The fewest bits, with their best integral number of probes, that hold `keys` at `rate`.
/// @pre keys > 0, 0 < rate < 1
[[nodiscard]] bloom_size classic_size(std::uint64_t keys, double rate) noexcept;

/// The most keys that keep the classic rate at or below `rate`. @pre as above
[[nodiscard]] std::uint64_t classic_capacity(bloom_size size, double rate) noexcept;

/// The shape of blocked_bloom (bloom.hpp): a block is a cache line of `lanes` words of `lane_bits`
/// bits, and a key sets one bit in each word.
inline constexpr unsigned lanes = 8;
inline constexpr unsigned lane_bits = 64;
inline constexpr unsigned block_bits = lanes * lane_bits;
inline constexpr unsigned block_bytes = block_bits / 8;

/// The expected false-positive rate of a blocked filter of `blocks` blocks with `keys` distinct
/// keys. Exact, given uniform hashes: a block holds i keys with the binomial probability of keys
/// and 1 / blocks, each of its words then has a given bit on with 1 - (63/64)^i, and words are
/// independent, so the rate is the mean of (1 - (63/64)^i)^8. Summed in closed form; good to nine
/// digits down to rates of 1e-9. @pre blocks > 0, keys >= 0
[[nodiscard]] double blocked_rate(std::uint64_t blocks, double keys) noexcept;

/// The fewest blocks whose blocked_rate at `keys` is at most `rate`; never more than 2^32 - 1.
/// @pre keys > 0, 0 < rate < 1
[[nodiscard]] std::uint64_t blocks_for(std::uint64_t keys, double rate) noexcept;

/// The most keys that keep blocked_rate at or below `rate`. @pre blocks > 0, 0 < rate < 1
[[nodiscard]] std::uint64_t blocked_capacity(std::uint64_t blocks, double rate) noexcept;

}  // namespace reprise::filter
