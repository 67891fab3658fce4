#pragma once
// A blocked Bloom filter that any number of threads write and ask at once.
//
// One key, one cache line. The hash's low word picks a block of 64 bytes, its high word one bit in
// each of the block's eight 64-bit words: a query costs one cache miss where a plain filter costs
// one per probe, eight independent loads and no loop-carried multiplication. The price is uneven
// blocks: at a rate of 0.0005 it takes 17.8 bits per key, a plain filter 15.8 (README.md has the
// table, tools/bench_filter the times). One bit per word, rather than eight anywhere in the line,
// makes the expected rate exact in closed form (sizing.hpp) and every word a filter of its own.

#include "filter/filter_errc.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace reprise::filter {

/// Memory    blocks * 64 bytes, aligned to cache lines, allocated and zeroed at construction; or
///           what is handed in.
/// Threads   any number, every member but moving; words are atomic and relaxed. What one thread
///           inserted another sees once it synchronised with it in any way, or soon.
/// Errs      may_contain may be true for a key never inserted, at blocked_rate(blocks, keys); it is
///           never false for one that was.
class blocked_bloom {
public:
    /// @pre 0 < blocks < 2^32
    /// @throws std::bad_alloc
    explicit blocked_bloom(std::uint64_t blocks);

    /// A filter in memory that is handed in and outlives it: blocks * 64 bytes on a boundary of 64,
    /// all zeroes, or what a filter of as many blocks left there. Several may be over the same
    /// memory at once, in one process or, where it is mapped by several, in any of them.
    /// @pre 0 < blocks < 2^32
    blocked_bloom(std::uint64_t blocks, std::byte* memory) noexcept;

    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

    /// Begins to fetch the key's line, and waits for nothing.
    void prefetch(key_hash key) const noexcept;

    /// Writes only words whose bit is off, so that a repeated key dirties no cache line.
    void insert(key_hash key) noexcept { (void)insert_and_test(key); }

    /// Inserts, and returns what may_contain would have returned before: true when every bit was on
    /// already. If several threads insert one new key at once, at least one gets false.
    bool insert_and_test(key_hash key) noexcept;

    /// Every bit off. Not one step for other threads: a key inserted meanwhile may be lost.
    void clear() noexcept { clear(0, blocks_); }
    /// The same for blocks [first, last). @pre first <= last <= blocks()
    void clear(std::uint64_t first, std::uint64_t last) noexcept;

    /// Makes this the filter of all keys of both, exactly as if they had been inserted here. Word
    /// by word, each in one step: keys that other threads insert here meanwhile are kept, those
    /// that they insert there may be missed.
    /// @returns sizes_differ, and nothing is changed
    [[nodiscard]] boost::system::result<void> unite(const blocked_bloom& other) noexcept;

    /// Keeps the bits that both have: every key that was in both before is in it, and what other
    /// threads insert meanwhile may be lost. As with standard_bloom, not the filter that the common
    /// keys alone would have made.
    /// @returns as unite
    [[nodiscard]] boost::system::result<void> intersect(const blocked_bloom& other) noexcept;

    /// The filter that the same keys make in half the blocks: blocks 2i and 2i + 1 become block i,
    /// for half of a fraction of the blocks is that fraction of half of them.
    /// @returns odd_size when blocks() is odd
    /// @throws std::bad_alloc
    [[nodiscard]] boost::system::result<blocked_bloom> folded() const;

    [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return blocks_ * block_bytes; }

    /// Bits that are on. O(blocks).
    [[nodiscard]] std::uint64_t bits_on() const noexcept;

    /// What the filter's own bits say of it.
    struct estimate {
        double fill = 0;  ///< share of bits on
        /// Distinct keys, by Swamidass and Baldi 2007 over the whole filter. Blocking does not bias
        /// it: a key's bit in lane j is uniform over all words j together, so the share of bits off
        /// in a lane is (1 - 1 / (64 * blocks))^keys in the mean.
        double keys = 0;
        /// Mean over blocks of the product of its words' fills: the rate of this filter as it is,
        /// not of one like it.
        double false_positive_rate = 0;
    };
    /// Reads at most `sample` blocks, evenly spread; when that is all of them the rate is exact.
    /// From 4,096 blocks the fill is good to about 0.2 %, the rate to about 3 % (one sigma).
    [[nodiscard]] estimate measure(std::uint64_t sample = UINT64_MAX) const noexcept;

    /// Block `block`'s words, for persistence. Each word is whole; the eight need not be of one
    /// moment while others insert.
    [[nodiscard]] std::array<std::uint64_t, lanes> read_block(std::uint64_t block) const noexcept;
    /// Sets the words of `block`. The caller alone writes.
    void write_block(std::uint64_t block, const std::array<std::uint64_t, lanes>& words) noexcept;

private:
    struct alignas(block_bytes) line {
        std::array<std::atomic<std::uint64_t>, lanes> words;
    };

    /// Frees lines of its own, and leaves those that were handed in.
    struct release {
        bool is_handed_in;
        void operator()(line* lines) const noexcept;
    };

    std::uint64_t blocks_;
    std::unique_ptr<line[], release> lines_;
};

}  // namespace reprise::filter
