#pragma once
// A Bloom filter whose keys leave by themselves, in the order in which they were written: what a
// store publishes that nobody tells of evictions, but that is known to forget what was written
// longest ago (a ring on disk, as each stripe of Traffic Server's cache is).
//
// A place holds not a bit but the generation that wrote it last, a stamp of four bits. The owner
// begins a new generation whenever the store has written a certain share of its room; the oldest
// one is then over, and its places are swept off. A key written again, as a ring does with what is
// still wanted, is as young as one that came just now. So it takes the memory of a counting filter
// of as many places, and is told of writing alone.
//
// The arithmetic, with G generations alive (14 at most: a fifteenth stamp is being swept, 0 is
// off). Let a generation last 1 / (G - 1) of what the store keeps. A key that is written at the very
// end of one is over after G - 1 whole ones more, which is all that the store keeps: nothing that
// is held is ever missing. One that is written at the beginning stays for a generation too long; in
// the mean half a one of G - 1/2, so that of the keys named
//
//     1 / (2 G - 1)   are gone: 3.7 % with 14 generations, 14 % with 4
//
// and the filter is to be sized for 1 + 1 / (G - 1) times the keys that the store keeps. Both hold
// in whatever the owner measures (bytes, as a ring does). What a store keeps must not be
// underestimated: a share d too little makes as much of what is held missing, too much names d more
// of what is gone.
//
// (Measured against a Traffic Server of 256 MB: 0 of 12,938 held objects missing, 3.7 % of those
// named gone.)

#include "filter/bit_words.hpp"
#include "filter/filter_errc.hpp"
#include "filter/indices.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"
#include "filter/standard.hpp"
#include "filter/word_array.hpp"

#include <bit>
#include <cassert>
#include <cstdint>
#include <memory_resource>
#include <span>

namespace reprise::filter {

/// The share of the keys named by a filter of so many generations that a store no longer holds, in
/// the mean: 1 / (2 generations - 1). @pre generations > 1
[[nodiscard]] double stamped_gone(unsigned generations) noexcept;

/// The keys that a filter of so many generations holds at most, for a store that keeps `keys`:
/// keys * generations / (generations - 1), rounded up. @pre generations > 1, keys < 2^60
[[nodiscard]] std::uint64_t stamped_keys(std::uint64_t keys, unsigned generations) noexcept;

/// Memory    size.bits / 2 bytes, rounded up to 32; allocated and zeroed at construction, from the
///           resource that is given, which outlives this. Copies have the default one's; assigning
///           one of equal size leaves each its own, and allocates nothing.
/// Threads   one; const members may run at once.
/// Cost      insert as a counting filter's; sweeping a nanosecond for each 16 places, in pieces as
///           small as the owner likes.
/// Errs      may_contain may be true for a key never inserted, at the rate of a standard filter of
///           the same size and of all keys of the generations alive and of that being swept. It is
///           never false for one inserted less than generations() - 1 whole generations ago.
class stamped_bloom {
public:
    static constexpr unsigned most_generations = 14;

    /// @pre 0 < size.bits < 2^60, size.probes > 0, 2 <= generations <= most_generations
    /// @throws std::bad_alloc
    explicit stamped_bloom(bloom_size size,
                           unsigned generations = most_generations,
                           std::pmr::memory_resource* memory = std::pmr::get_default_resource());

    /// What is kept beside the stamps.
    struct tally {
        std::uint64_t on = 0;
        std::uint64_t swept = 0;
        std::uint64_t current = 1;
    };
    /// Stamps that lie elsewhere, as they are: for memory that several share, one at a time. Whose tally
    /// is that of the last one: resume(); where that one was stopped in the middle: resume(), and
    /// recount(), which sweeps from the beginning. O(places).
    /// @pre as above; 32 bytes for each 64 places, which outlive this
    stamped_bloom(bloom_size size, unsigned generations, std::span<std::uint64_t> words) noexcept;
    [[nodiscard]] tally counted() const noexcept { return {on_, swept_, current_}; }
    /// @pre counted() of a filter of this size and as many generations
    void resume(tally counted) noexcept;
    void recount() noexcept;

    /// Writes the current generation's stamp to the key's places.
    void insert(key_hash key) noexcept {
        insert(key, [](std::uint64_t) {});
    }
    /// The same, and calls `on_change(place)` for each place whose bit this turned on, once.
    template <class OnChange>
    void insert(key_hash key, OnChange&& on_change);

    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

    /// Begins a generation. The oldest is over: its places are on until sweep came by. What was
    /// still to be swept of the one before is swept now, all of it.
    void advance() noexcept {
        advance([](std::uint64_t) {});
    }
    template <class OnChange>
    void advance(OnChange&& on_change);

    /// Sweeps off what is over in the next `places` places, rounded up to 64, and calls
    /// `on_change(place)` for each. False when nothing is left to sweep.
    bool sweep(std::uint64_t places = UINT64_MAX) noexcept {
        return sweep(places, [](std::uint64_t) {});
    }
    template <class OnChange>
    bool sweep(std::uint64_t places, OnChange&& on_change);
    [[nodiscard]] bool is_swept() const noexcept { return swept_ == words_.size(); }

    /// Makes this the filter of what both hold, each key in the generation that wrote it last,
    /// counted back from the current one of either. What is over in either is left out, and this
    /// is swept. O(places).
    /// @returns sizes_differ (generations too) or probes_differ, and nothing is changed
    [[nodiscard]] boost::system::result<void> unite(const stamped_bloom& other) noexcept;

    /// The filter that the same keys make in half the places, swept.
    /// @returns odd_size; too_small when fewer places than probes would be left
    /// @throws std::bad_alloc
    [[nodiscard]] boost::system::result<stamped_bloom> folded() const;

    /// The standard filter of the places that are on. O(places). @throws std::bad_alloc
    [[nodiscard]] standard_bloom snapshot() const;

    void clear() noexcept;

    [[nodiscard]] bloom_size size() const noexcept { return size_; }
    [[nodiscard]] unsigned generations() const noexcept { return generations_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }

    /// Places whose bit is on. O(1).
    [[nodiscard]] std::uint64_t bits_on() const noexcept { return on_; }
    /// As counters::bits_on. @pre index < places / 64, rounded up
    [[nodiscard]] std::uint64_t bits_on(std::uint64_t index) const noexcept {
        return groups_on(&words_[index * 4]);
    }
    /// (bits on / bits)^probes. O(1).
    [[nodiscard]] double false_positive_rate() const noexcept;

    /// How many generations ago a place was written, 0 for the current one; generations() when it
    /// is over and not swept yet, generations() + 1 when it is off. @pre place < size().bits
    [[nodiscard]] unsigned age_at(std::uint64_t place) const noexcept;

    /// Equal ages everywhere, whatever stamps they are written with.
    bool operator==(const stamped_bloom& other) const noexcept;

private:
    friend struct stamped_state_access;  // encode and decode, in stamped_state.cpp

    // Stamps go round 1 to 15; one more than most_generations, for that being swept.
    static constexpr unsigned stamps = 15;
    static constexpr unsigned per_word = 16;
    static constexpr std::uint64_t lowest_bits = 0x1111'1111'1111'1111;

    [[nodiscard]] unsigned stamp_at(std::uint64_t place) const noexcept {
        assert(place < size_.bits);
        return static_cast<unsigned>(words_[place / per_word] >> place % per_word * 4) & stamps;
    }
    [[nodiscard]] unsigned age_of(unsigned stamp) const noexcept;
    /// The stamp of what was written so many generations ago. @pre age <= generations_
    [[nodiscard]] unsigned stamp_of(unsigned age) const noexcept;
    /// Stamps a place, and counts it. @pre stamp > 0
    void stamp(std::uint64_t place, unsigned stamp) noexcept;
    void make_younger(std::uint64_t place, unsigned age) noexcept;

    /// A one in the lowest bit of each stamp of `word` that equals `stamp`.
    [[nodiscard]] static constexpr std::uint64_t equal(std::uint64_t word,
                                                       unsigned stamp) noexcept {
        auto differs = word ^ lowest_bits * stamp;
        differs |= differs >> 2;
        differs |= differs >> 1;
        return ~differs & lowest_bits;
    }

    bloom_size size_;
    unsigned generations_;
    unsigned current_ = 1;  // a stamp
    std::uint64_t on_ = 0;
    std::size_t swept_;  // words, of what is over
    word_array words_;
};

template <class OnChange>
void stamped_bloom::insert(key_hash key, OnChange&& on_change) {
    indices at{key, size_.bits};
    for (unsigned probe = 0; probe < size_.probes; ++probe) {
        const auto place = at.next();
        if (stamp_at(place) == 0) {
            on_change(place);
        }
        stamp(place, current_);
    }
}

template <class OnChange>
void stamped_bloom::advance(OnChange&& on_change) {
    sweep(UINT64_MAX, on_change);
    current_ = current_ % stamps + 1;
    swept_ = 0;
}

template <class OnChange>
bool stamped_bloom::sweep(std::uint64_t places, OnChange&& on_change) {
    const auto over = stamp_of(generations_);
    // In fours, as bits are told of.
    const auto left = words_.size() - swept_;
    const auto wanted = places / 64 + (places % 64 != 0 ? 1 : 0);
    const auto end = swept_ + (wanted < left / 4 ? wanted * 4 : left);
    auto* const words = words_.begin();
    for (auto at = swept_; at < end; ++at) {
        const auto found = equal(words[at], over);
        if (found == 0) {
            continue;
        }
        words[at] &= ~(found * stamps);
        for (auto each = found; each != 0; each &= each - 1) {
            --on_;
            on_change(at * per_word + static_cast<unsigned>(std::countr_zero(each)) / 4);
        }
    }
    swept_ = end;
    return !is_swept();
}

}  // namespace reprise::filter
