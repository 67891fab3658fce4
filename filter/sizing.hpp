#pragma once
// How many bits for how many keys at which rate of false positives, and back: arithmetic only.
//
// Each kind of filter has its own formula. The classic one (Bloom 1970; the form with e in Broder
// and Mitzenmacher 2004) is for a filter whose probes go anywhere, and is right for many bits;
// below a few thousand it promises too little, and there are an exact one and a bound that is never
// too low. A partitioned filter has an exact one. A blocked filter does worse than all of these,
// because its blocks fill unevenly (Putze, Sanders, Singler 2007): sized by the classic formula it
// misses the rate asked for. How high a counting filter's counters go is counter_odds.hpp.
//
// All functions are pure: any thread. `keys` are distinct keys; hashes are taken to be uniform and
// independent. Where a size would have 2^63 bits or more it has just below, and misses the rate.

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

/// The exact expected rate for independent places, which may coincide within a key (Bose, Guo,
/// Kranakis et al., "On the false-positive rate of Bloom filters", 2008; Christensen, Roginsky,
/// Jimeno, "A new analysis of the false positive rate of a Bloom filter", 2010): the mean of
/// (bits on / bits)^probes. Above the classic rate from two probes on. Their sums alternate, or
/// take bits * probes * keys steps; ours has only positive terms and takes probes^3 * log(keys):
/// see exact_rate.cpp. Good to twelve digits in all of its domain.
/// @pre 0 < size.bits < 2^53, 0 < size.probes <= 64, probes * keys < 2^63
[[nodiscard]] double exact_rate(bloom_size size, std::uint64_t keys) noexcept;

/// (1 - e^(-probes * (keys + 0.5) / (bits - 1)))^probes, never below the exact rate (Goel and
/// Gupta, "Small Subset Queries and Bloom Filters Using Ternary Associative Memories, with
/// Applications", SIGMETRICS 2010). @pre bits > 1, probes > 0
[[nodiscard]] double upper_rate(bloom_size size, double keys) noexcept;

/// The fewest bits, with their best number of probes, whose upper_rate at `keys` is at most `rate`:
/// a size that keeps its promise however small it is, alias_rate aside. @pre keys > 0, 0 < rate < 1
[[nodiscard]] bloom_size upper_size(std::uint64_t keys, double rate) noexcept;

/// The most keys that keep upper_rate at or below `rate`; none may. @pre bits > 1, 0 < rate < 1
[[nodiscard]] std::uint64_t upper_capacity(bloom_size size, double rate) noexcept;

/// What double hashing adds to the exact rate: a key has one of bits^2 sequences of places, so a
/// stranger has all of its places in common with one of `keys` keys with chance
/// 1 - (1 - 1 / bits^2)^keys, whatever the number of probes. For 1,000 keys at 1 % that is a
/// thousandth of the rate; at 1e-6 it doubles it. That is for the enhanced kind, which `indices`
/// is; the plain kind adds ten times as much and more (tests/unit/filter/indices_test.cpp).
/// @pre bits > 0, keys >= 0
[[nodiscard]] double alias_rate(std::uint64_t bits, double keys) noexcept;

/// The expected rate of a filter of `probes` partitions with bits / probes bits each:
/// (1 - (1 - probes / bits)^keys)^probes. Exact. @pre bits is a positive multiple of probes
[[nodiscard]] double partitioned_rate(bloom_size size, double keys) noexcept;

/// The fewest bits, a multiple of their best number of probes, whose partitioned_rate at `keys` is
/// at most `rate`. @pre keys > 0, 0 < rate < 1
[[nodiscard]] bloom_size partitioned_size(std::uint64_t keys, double rate) noexcept;

/// The most keys that keep partitioned_rate at or below `rate`. @pre as there, bits > probes
[[nodiscard]] std::uint64_t partitioned_capacity(bloom_size size, double rate) noexcept;

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

/// The fewest blocks whose blocked_rate at `keys` is at most `rate`; never more than 2^32 - 1. Far
/// too many for rates below 1e-15, which the formula's last digit exceeds.
/// @pre keys > 0, 0 < rate < 1
[[nodiscard]] std::uint64_t blocks_for(std::uint64_t keys, double rate) noexcept;

/// The most keys that keep blocked_rate at or below `rate`. @pre blocks > 0, 0 < rate < 1
[[nodiscard]] std::uint64_t blocked_capacity(std::uint64_t blocks, double rate) noexcept;

}  // namespace reprise::filter
