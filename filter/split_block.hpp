#pragma once
// A register-blocked Bloom filter for one thread: the fastest that we know how to ask.
//
// A block is 32 bytes, as wide as one AVX2 register: eight words of 32 bits, and a key sets one bit
// in each, as in the split block filters of Impala and Parquet (register-blocked: Putze, Sanders,
// Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007, section 3). A query is one
// load, two shifts by eight different counts and one test, without a branch; a plain build for any
// x86-64 finds out at run time whether the processor has AVX2, and gives the same bits where it has
// not.
//
// Where Impala multiplies 32 bits of hash by eight odd constants, the eight counts here are eight
// different runs of five bits of the hash's high word: no multiplication, and independent as the
// rate formula below takes them to be.
//
// Unlike blocked_bloom (bloom.hpp) its words are not atomic and its blocks are half as large. It is
// for one thread, or for many that only ask; and it takes more memory at one rate, since fewer keys
// meet more unevenly: 19.3 bits per key for a rate of 0.0005, there 17.8, in a plain filter 15.8.

#include "filter/big_array.hpp"
#include "filter/filter_errc.hpp"
#include "filter/key_hash.hpp"
#include "filter/split_block_kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace reprise::filter {

/// The shape of split_block_bloom.
inline constexpr unsigned split_lanes = split_block_kernels::lanes;
inline constexpr unsigned split_lane_bits = split_block_kernels::lane_bits;
inline constexpr unsigned split_block_bytes = split_lanes * split_lane_bits / 8;

/// The expected false-positive rate of `blocks` blocks with `keys` distinct keys. Exact, given
/// uniform hashes: a block holds i keys with the binomial probability of `keys` trials of chance
/// 1 / blocks, each of its words then has a given bit on with 1 - (31/32)^i, and words are
/// independent: the mean of (1 - (31/32)^i)^8, summed in closed form as blocked_rate is
/// (sizing.hpp). Good to nine digits down to rates of 1e-9. @pre blocks > 0, keys >= 0
[[nodiscard]] double split_block_rate(std::uint64_t blocks, double keys) noexcept;

/// The fewest blocks whose split_block_rate at `keys` is at most `rate`; never more than 2^32 - 1.
/// Far too many for rates below 1e-15, which the formula's last digit exceeds.
/// @pre keys > 0, 0 < rate < 1
[[nodiscard]] std::uint64_t split_blocks_for(std::uint64_t keys, double rate) noexcept;

/// The most keys that keep split_block_rate at or below `rate`. @pre blocks > 0, 0 < rate < 1
[[nodiscard]] std::uint64_t split_block_capacity(std::uint64_t blocks, double rate) noexcept;

/// Memory    blocks * 32 bytes, aligned to cache lines, in huge pages from 4 MiB on.
/// Threads   one, or any number that only ask.
/// Cost      one cache line per operation; nothing allocates but construction and copying.
/// Errs      may_contain may be true for a key never inserted, at split_block_rate(blocks, keys);
///           it is never false for one that was.
class split_block_bloom {
public:
    /// @pre 0 < blocks < 2^32
    /// @throws std::bad_alloc
    explicit split_block_bloom(std::uint64_t blocks);

    void insert(key_hash key) noexcept { (void)insert_and_test(key); }

    /// Inserts, and returns what may_contain would have returned before.
    bool insert_and_test(key_hash key) noexcept;

    [[nodiscard]] bool may_contain(key_hash key) const noexcept {
        // A branch on a constant of the process: always foretold, and nothing to call.
        const auto& words = blocks_[place_of(key)].words;
        return split_block_kernels::has_avx2 ? split_block_kernels::has_all_avx2(words, key.high)
                                             : split_block_kernels::has_all_plain(words, key.high);
    }

    /// may_contain of each of `keys` into `answers`, of which there are as many. For filters out of
    /// cache: the lines of the keys to come are asked for while earlier ones are on their way,
    /// which single queries do only as far as the processor looks ahead. @pre the sizes are equal
    void may_contain(std::span<const key_hash> keys, std::span<bool> answers) const noexcept;

    /// Starts to bring a key's block into the cache; for callers that have other work meanwhile.
    void prefetch(key_hash key) const noexcept { __builtin_prefetch(&blocks_[place_of(key)]); }

    void clear() noexcept { blocks_.clear(); }

    [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_.size(); }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return blocks_.bytes(); }

    /// Makes this the filter of all keys of both, exactly as if they had been inserted here.
    /// @returns sizes_differ, and nothing is changed
    [[nodiscard]] boost::system::result<void> unite(const split_block_bloom& other) noexcept;

    /// Keeps the bits that both have: every key that was in both is in it. As with standard_bloom,
    /// not the filter that the common keys alone would have made.
    /// @returns as unite
    [[nodiscard]] boost::system::result<void> intersect(const split_block_bloom& other) noexcept;

    /// The filter that the same keys make in half the blocks: blocks 2i and 2i + 1 become block i,
    /// for half of a fraction of the blocks is that fraction of half of them.
    /// @returns odd_size when blocks() is odd
    /// @throws std::bad_alloc
    [[nodiscard]] boost::system::result<split_block_bloom> folded() const;

    /// Bits that are on. O(blocks).
    [[nodiscard]] std::uint64_t bits_on() const noexcept;

    /// What the filter's own bits say of it; see blocked_bloom::estimate.
    struct estimate {
        double fill = 0;  ///< share of bits on
        double keys = 0;  ///< distinct keys: ln(share off) / ln(1 - 1 / (32 * blocks))
        double false_positive_rate = 0;  ///< of this filter as it is
    };
    [[nodiscard]] estimate measure() const noexcept;

    bool operator==(const split_block_bloom&) const = default;

private:
    struct alignas(split_block_bytes) block {
        split_block_kernels::block_words words;
        bool operator==(const block&) const = default;
    };

    [[nodiscard]] std::size_t place_of(key_hash key) const noexcept {
        // Lemire's range reduction: the word read as a fraction of one, times the blocks.
        __extension__ using uint128 = unsigned __int128;
        return static_cast<std::size_t>((uint128{key.low} * blocks_.size()) >> 64);
    }

    big_array<block> blocks_;
};

}  // namespace reprise::filter
