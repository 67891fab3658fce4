#pragma once
// Small counters in a row, four bits each, that stick at 15: what a counting filter is made of.
//
// Four bits, as Fan, Cao, Almeida and Broder chose for Summary Cache (ToN 2000): in a filter with
// the best number of probes one place in 6e14 reaches 15 (counter_odds.hpp). One that does is never
// moved again: a counter that had forgotten a key could go to zero while another key still needs
// it, and a false negative would follow; one that sticks costs a bit that stays on. There is no
// hashing here: a place is whatever the owner says it is.

#include "filter/word_array.hpp"

#include <cassert>
#include <cstdint>
#include <memory_resource>
#include <span>

namespace reprise::filter {

/// What raising or lowering one counter did.
enum class counter_step {
    turned_on,   ///< from 0 to 1: the place's published bit goes on
    turned_off,  ///< from 1 to 0: it goes off
    moved,       ///< another count, the same bit
    stuck,       ///< at 15: nothing changes there any more
    underflow,   ///< lowering 0: nothing changed. Something was taken out that was never put in
};

/// Memory    half a byte per place, rounded up to 32 bytes; allocated and zeroed at construction, from
///           the resource that is given, which outlives this. Copies have the default one's.
/// Threads   one; const members may run at once.
class counters {
public:
    static constexpr unsigned most = 15;  ///< where a counter sticks

    /// @pre 0 < places < 2^60
    /// @throws std::bad_alloc
    explicit counters(std::uint64_t places,
                      std::pmr::memory_resource* memory = std::pmr::get_default_resource());

    /// What is kept beside the counters.
    struct tally {
        std::uint64_t on = 0;
        std::uint64_t stuck = 0;
    };
    /// Counters that lie elsewhere, as they are: for memory that several share, one at a time.
    /// Whose tally is that of the last one: resume(); where nobody has one: recount(), O(places).
    /// @pre four words for each of bit_words(), which outlive this
    counters(std::uint64_t places, std::span<std::uint64_t> words) noexcept;
    [[nodiscard]] tally counted() const noexcept { return {on_, stuck_}; }
    void resume(tally counted) noexcept {
        on_ = counted.on;
        stuck_ = counted.stuck;
    }
    void recount() noexcept;

    /// One up, one down. @pre place < places()
    counter_step raise(std::uint64_t place) noexcept;
    counter_step lower(std::uint64_t place) noexcept;

    /// The count at a place, 0 to 15; at 15 it stands for "15 or more, ever". @pre place < places()
    [[nodiscard]] unsigned at(std::uint64_t place) const noexcept {
        assert(place < places_);
        return static_cast<unsigned>(words_[place / per_word] >> shift_of(place)) & most;
    }
    [[nodiscard]] bool is_on(std::uint64_t place) const noexcept { return at(place) != 0; }

    [[nodiscard]] std::uint64_t places() const noexcept { return places_; }
    /// Places whose counter is not zero, and those whose counter sticks. Kept, not counted.
    [[nodiscard]] std::uint64_t places_on() const noexcept { return on_; }
    [[nodiscard]] std::uint64_t places_stuck() const noexcept { return stuck_; }

    /// Which of the places [64 * index, 64 * index + 64) are on, the first in the lowest bit; those
    /// past the end are off. The bits of a published filter. @pre index < bit_words()
    [[nodiscard]] std::uint64_t bits_on(std::uint64_t index) const noexcept;
    /// How many words of 64 bits that takes: places() / 64, rounded up.
    [[nodiscard]] std::uint64_t bit_words() const noexcept { return (places_ + 63) / 64; }

    /// Adds each counter of `other` to ours, sticking. O(places). @pre equal places()
    void add(const counters& other) noexcept;

    /// Counters for half as many places, each the sum of places i and i + places() / 2, sticking.
    /// O(places). @pre places() is even @throws std::bad_alloc
    [[nodiscard]] counters folded() const;

    /// Every counter to zero, stuck ones too.
    void clear() noexcept;

    /// Memory of the counters themselves.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }

    bool operator==(const counters&) const = default;

private:
    static constexpr unsigned per_word = 16;

    static constexpr unsigned shift_of(std::uint64_t place) noexcept {
        return static_cast<unsigned>(place % per_word) * 4;
    }
    /// Adds `count` at a place, sticking. @pre place < places()
    void add_at(std::uint64_t place, unsigned count) noexcept;

    std::uint64_t places_;
    std::uint64_t on_ = 0;
    std::uint64_t stuck_ = 0;
    word_array words_;  ///< four of them for each word of bits_on
};

}  // namespace reprise::filter
