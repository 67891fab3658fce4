#pragma once
// About how often each key was asked for lately, in a few bytes per key: what TinyLFU compares a
// newcomer and a victim with (Einziger, Friedman, Manes, "TinyLFU", ACM ToS 2017).
//
// A count-min sketch (Cormode, Muthukrishnan 2005) of 4-bit counters in four rows. All counters of
// a key lie in one 64-byte block, so a look costs one cache miss where separate rows cost four;
// what that loses in evenness, raising only the smallest counters gives back (Estan, Varghese 2002,
// "conservative update"). The first sight of a key goes to a Bloom filter in front, the doorkeeper
// (3.4.2 of the paper), so that the many keys seen once do not fill the counters. After 10 x keys
// sights every counter is halved and the doorkeeper emptied: popularity of long ago fades.
//
// No single note does that work. Halving begins a new phase, and a block of the phase before is halved when it
// is next noted in, or when a hand that goes round once in each phase comes by; an estimate that is
// asked for meanwhile halves what it reads. So it is as if all had been halved at once, at one
// block in 160 notes.
//
// A sketch that proves too small doubles: the upper half begins as a copy of the lower, so no key's
// estimate changes. One whose keys have become fewer is folded: each two blocks become one, which has
// the larger of each two counters, so that no estimate falls.

#include "filter/key_hash.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace reprise::proxy::cache {

/// Memory    8 bytes and a 128th for each key it is made for, rounded up to a power of two of keys.
/// Threads   note and estimate: any number at once, without locks; a lost race costs one sight.
///           grow_to, shrink_to: nobody else meanwhile.
/// Cost      note and estimate: two cache lines, and a bit; once in 160 notes, two lines more.
/// Errs      upwards, for other keys share counters; downwards by what aging took.
class frequency_sketch {
public:
    static constexpr unsigned most = 16;  ///< the largest estimate: 15 and the doorkeeper's 1

    /// For about `keys` keys that matter at once (what a cache of that many objects needs).
    /// @throws std::bad_alloc
    explicit frequency_sketch(std::uint64_t keys);

    /// One request for `key`.
    void note(const filter::key_hash& key) noexcept;

    /// How often it was noted lately: 0 to `most`.
    [[nodiscard]] unsigned estimate(const filter::key_hash& key) const noexcept;

    /// Room for `keys` keys at least; what is known stays known. Never shrinks.
    /// @throws std::bad_alloc, and nothing changes
    void grow_to(std::uint64_t keys);
    /// Half the room, as often as that leaves room for `keys`: aging comes so much sooner. No key is
    /// estimated lower than before.
    /// @throws std::bad_alloc, and nothing changes
    void shrink_to(std::uint64_t keys);

    /// What it has room for.
    [[nodiscard]] std::uint64_t keys() const noexcept { return blocks_ * keys_a_block; }
    /// How often everything was halved, since construction.
    [[nodiscard]] std::uint64_t agings() const noexcept { return agings_.load(relaxed); }
    [[nodiscard]] std::uint64_t memory() const noexcept {
        return 2 * blocks_ * sizeof(block) + words_of_phases() * 8;
    }

private:
    static constexpr auto relaxed = std::memory_order_relaxed;
    // 128 counters for 16 keys are two per key in each row; 512 bits of doorkeeper for the same
    // keys are 32 per key, three for each sight between two agings.
    static constexpr std::uint64_t keys_a_block = 16;
    static constexpr unsigned words_a_block = 8;
    static constexpr std::uint64_t sights_a_key = 10;  // between two agings
    static constexpr std::uint64_t sights_a_block = sights_a_key * keys_a_block;

    // Loads are plain ones; what is written is exchanged, so that threads may share a sketch.
    struct alignas(64) block {
        std::atomic<std::uint64_t> words[words_a_block];
    };

    [[nodiscard]] std::uint64_t words_of_phases() const noexcept { return (blocks_ + 63) / 64; }
    [[nodiscard]] bool is_behind(std::uint64_t block_number) const noexcept;
    void catch_up(std::uint64_t block_number) noexcept;
    void catch_up_all() noexcept;
    void replace(std::uint64_t blocks,
                 std::unique_ptr<block[]> counters,
                 std::unique_ptr<block[]> doorkeeper,
                 std::unique_ptr<std::atomic<std::uint64_t>[]> phases) noexcept;

    std::uint64_t blocks_;  // of counters, and as many of doorkeeper; a power of two
    std::unique_ptr<block[]> counters_;
    std::unique_ptr<block[]> doorkeeper_;
    // A bit for each block: the lowest of `agings_` when it was halved last.
    std::unique_ptr<std::atomic<std::uint64_t>[]> phases_;
    std::atomic<std::uint64_t> sights_{0};  // since the last aging
    std::atomic<std::uint64_t> agings_{0};
};

}  // namespace reprise::proxy::cache
