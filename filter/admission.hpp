#pragma once
// Remembers which keys were seen lately, and how many times: what decides whether an absent key may
// enter the store.
//
// An aging Bloom filter. Keys are written to the young generation; young and old are asked
// together. When the young one is full, or as old as the settings ask for, the old one is cleared
// and the two change roles. To count further than to one (nth-hit), a generation has layers: layer
// i holds the keys seen at least i + 1 times.
//
// The contract of time. A key is remembered
//   - for at least `age`, or
//   - until at least `objects` other distinct keys were seen after it (never sooner, whatever age),
// whichever comes first: `age` is a guaranteed minimum as long as the flow allows it. It holds
// because the old generation goes only when the young one has taken `objects` distinct keys, or was
// begun `age` ago; whatever the old one alone knows was last seen before the young one was begun.
// At most it is remembered for two generations: about 2 * age in a steady flow, as long as it takes
// when nothing is noted.

#include "filter/big_array.hpp"
#include "filter/bloom.hpp"
#include "filter/digest.hpp"
#include "filter/key_hash.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace reprise::filter {

struct admission_settings {
    std::uint64_t objects = 1'000'000;                  ///< distinct keys to remember at least; > 0
    std::chrono::seconds age = std::chrono::hours{50};  ///< to remember at least; > 0
    /// Probability that a key never seen is answered as seen, when both generations are full; in
    /// (0, 1). With several layers: that one further sight is reported by mistake.
    double false_positive_rate = 0.001;
    unsigned layers = 1;  ///< the highest count told apart: 1 for second-hit, N - 1 for nth-hit

    bool operator==(const admission_settings&) const = default;
};

/// Blocks that each layer of each generation takes for these settings: each generation errs with
/// 1 - sqrt(1 - rate), so that both together err with the rate, and has room for the keys that come
/// while the other one is being cleared. @pre as admission_filter's constructor
[[nodiscard]] std::uint64_t admission_blocks(const admission_settings& settings) noexcept;

/// What an operator reads about the filter. Estimates are of layer 0, from a sample of its blocks.
struct admission_figures {
    struct generation {
        std::chrono::sys_seconds since{};  ///< when it was begun
        std::uint64_t keys = 0;            ///< distinct keys counted as they were written
        double estimated_keys = 0;         ///< from its bits (Swamidass-Baldi)
        double fill = 0;                   ///< share of bits that are on
        double false_positive_rate = 0;    ///< its own, from its bits
    };
    generation young;
    generation old;
    /// The share of `objects` that the young one has taken, at most 1: there the two change roles,
    /// or sooner by its age.
    double young_used = 0;
    double false_positive_rate = 0;  ///< of both together, now
    std::uint64_t first_sights = 0;  ///< notes answered 0, since construction
    std::uint64_t repeats = 0;       ///< notes answered more than 0, since construction
    std::uint64_t refreshes = 0;     ///< refreshes that wrote, since construction
    std::uint64_t swaps = 0;         ///< how often young became old, since construction
    /// How long a key is remembered at least, at the rate of distinct keys of the generations held:
    /// `age`, or less when `objects` keys come sooner. `age` too while nothing is known.
    std::chrono::seconds remembers_for{};
    std::uint64_t memory = 0;  ///< bytes
};

/// Memory    fixed at construction: 2 * layers * admission_blocks(settings) * 64 bytes, and some
///           hundred. 1,000,000 objects at 0.001 take 4.5 MB per layer (README.md has a table). It
///           may be handed in: then processes that map it share one filter.
/// Threads   any number, every member. Nothing locks, nothing waits. A race between two notes of
///           one key may answer both "first" (one late admission), never loses the key.
/// Time      an argument, from the caller's wall clock, so that it means something after a restart.
///           A clock set back makes keys be remembered for longer; one set forward costs at most
///           one generation.
/// Clearing  the old generation is cleared 16 KiB at a time, one slice per note, while the young
///           one goes on taking keys; no call writes more than that. What is being cleared is
///           forgotten already as far as the contract goes. A thread put to sleep with its slice
///           lets the young one take more keys than planned for as long as it sleeps; twice as many
///           where it is gone for good, killed in a process that shared the filter.
/// Errs      towards "seen": at most false_positive_rate of the keys never seen. A key it still
///           remembers is never answered with fewer sights than it had (but for lost races).
class admission_filter {
public:
    static constexpr unsigned max_layers = 15;

    /// @pre settings as its members' comments say, layers at most max_layers
    /// @throws std::bad_alloc
    admission_filter(const admission_settings& settings, std::chrono::sys_seconds now);

    /// What memory_for says is needed, wherever it is mapped: nothing in it points anywhere.
    [[nodiscard]] static std::uint64_t memory_for(const admission_settings& settings) noexcept;
    /// A boundary that the memory lies on.
    static constexpr std::size_t memory_alignment = 64;

    /// An empty filter in memory that is handed in, all zeroes, and outlives it. @pre as above,
    /// memory.size() >= memory_for(settings), on a boundary of 64 @throws std::bad_alloc
    admission_filter(const admission_settings& settings,
                     std::chrono::sys_seconds now,
                     std::span<std::byte> memory);

    /// The filter that another one of these settings (but for `age`) has in this memory: both are
    /// one, and go on when either goes. @pre as above, and the other one's constructor is done
    /// @throws std::bad_alloc
    admission_filter(const admission_settings& settings, std::span<std::byte> memory);

    admission_filter(const admission_filter&) = delete;
    admission_filter& operator=(const admission_filter&) = delete;

    /// Records one sight of `key` and returns how many there were before it, as far as remembered:
    /// 0 for a first sight, at most `layers`. O(layers), one or two cache lines per layer.
    unsigned note(key_hash key, std::chrono::sys_seconds now) noexcept;

    /// What note would return, recording nothing. Forgetting is the business of writers: an answer
    /// may be older than `age` says when nothing was noted since.
    [[nodiscard]] unsigned peek(key_hash key) const noexcept;

    /// Begins to fetch what peek and note read first, both generations' lines, and waits for nothing:
    /// worth it where some hundred nanoseconds of other work come between.
    void prefetch(key_hash key) const noexcept;

    /// A hit tells the filter that the key is still wanted: the young generation then knows it as
    /// seen `layers` times (what was stored was admitted, and need not earn it again once evicted).
    /// When the young generation knows that already, one cache line is read and nothing written.
    void refresh(key_hash key, std::chrono::sys_seconds now) noexcept;

    /// How often young has become old: a key refreshed in this generation need not be refreshed
    /// again before the next. One load.
    [[nodiscard]] std::uint32_t generations() const noexcept;

    /// Reads at most 4,096 blocks of each generation (some 0.1 ms), so an event loop may call it.
    [[nodiscard]] admission_figures figures(std::chrono::sys_seconds now) const noexcept;

    /// A copy of the young generation: which keys were seen since it was begun; until it has a
    /// quarter of `objects`, the old one's with them, so that a change of generations is not the
    /// end of all that was known (both together err up to three times as often as one). It is what
    /// siblings are sent, under `stamp`; its number of keys is put in. O(blocks).
    /// `former`: a filter whose place this one took. For as long as an old generation would be, what
    /// that one would say is in it too (and it errs up to ten times as often, where that one's
    /// generations had just changed).
    /// @pre former is null or has as many blocks @throws std::bad_alloc
    [[nodiscard]] digest recent_digest(digest_stamp stamp,
                                       const admission_filter* former = nullptr) const;

    [[nodiscard]] const admission_settings& settings() const noexcept { return settings_; }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }

private:
    friend struct admission_state_access;  // encode and decode, in admission_state.cpp

    // What all who share the filter write, beside the bits: at the beginning of the memory.
    struct state {
        // Written by nearly every note: lines of their own, away from what a hit must read.
        struct alignas(64) generation_state {
            std::atomic<std::uint64_t> keys;  // distinct, of layer 0
            std::atomic<std::int64_t> since;  // seconds since the epoch
        };

        std::array<generation_state, 2> generations;
        alignas(64) std::atomic<std::uint64_t> phase;
        alignas(64) std::atomic<std::uint32_t> cleared;  // slices done, of those claimed
        std::atomic<std::uint64_t> first_sights;
        std::atomic<std::uint64_t> repeats;
        std::atomic<std::uint64_t> refreshes;
    };

    struct generation {
        std::vector<blocked_bloom> layers;
        state::generation_state* counts = nullptr;
    };

    // One word says which generation is young and how far clearing the other has come: roles change
    // by one store, and a thread that slept through a change can't claim a slice of the next one.
    struct phase {
        std::uint32_t epoch = 0;    // changes of roles so far; the lowest bit picks the young one
        std::uint32_t claimed = 0;  // slices of the old one that somebody clears or has cleared

        static phase unpack(std::uint64_t word) noexcept;
        [[nodiscard]] std::uint64_t pack() const noexcept;
    };
    struct roles {
        generation& young;
        generation& old;
    };

    // What lies in a digest, and of how many keys.
    struct recent {
        std::vector<const blocked_bloom*> layers;
        std::uint64_t keys = 0;
    };

    void lay_out(std::byte* memory);
    /// True when the young generation alone says enough.
    bool add_recent(recent& to) const;

    [[nodiscard]] roles roles_in(std::uint32_t epoch) noexcept;
    [[nodiscard]] const generation& young_now() const noexcept;
    [[nodiscard]] bool is_spent(const generation& young,
                                std::chrono::sys_seconds now) const noexcept;
    void make_room(std::chrono::sys_seconds now) noexcept;
    void begin_over(const generation& young, std::uint64_t word) noexcept;
    void clear_slice(generation& old, std::uint32_t slice) const noexcept;

    admission_settings settings_;
    std::uint64_t blocks_;                            // of each layer of each generation
    std::uint32_t slices_;                            // of each generation, all layers
    std::unique_ptr<std::byte, big_array_free> own_;  // none when memory was handed in
    state* state_ = nullptr;
    std::array<generation, 2> generations_;
};

}  // namespace reprise::filter
