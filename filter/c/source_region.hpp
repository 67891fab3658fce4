#pragma once
// What of a source lies in one piece of memory, at whatever address it is mapped: what it was opened with, its lock, what is counted,
// and behind that the places, the bits as they are and as they were published, and which places turned last. Nothing in it points
// anywhere; so several processes can be at it, one at a time.

#include "filter/bit_words.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <pthread.h>
#include <span>
#include <type_traits>

namespace reprise::filter::c {

/// What a source is opened with, but for its seed.
struct source_shape {
    bloom_size size;
    std::uint32_t generations;  ///< 0: it counts
    std::uint32_t history;
    std::uint64_t news;  ///< places that are remembered
};

struct alignas(64) source_region {
    static constexpr std::uint64_t this_layout = 0x3144'5052'5345'4752;
    static constexpr std::size_t most_steps = 256;

    /// Where a generation of the digest began: what turned from there on makes what follows of it.
    struct step {
        std::uint64_t counter;
        std::uint64_t turned;
        std::uint64_t sum;
    };
    /// What is kept beside places and bits, as the last one left it.
    struct tallies {
        std::uint64_t on, swept_or_stuck, current, changed;
        std::uint64_t keys;  ///< of a counting source; a ring's are estimated
        std::uint64_t room, room_found, written, begun;
        std::uint64_t counter;         ///< of the newest generation
        std::uint64_t published;       ///< the counter of that whose bits lie here as published
        std::uint64_t published_keys;  ///< that it says it has
        std::uint64_t turned;          ///< places, since the beginning
        std::uint64_t sum;             ///< place_sum of the bits
        std::uint64_t steps;           ///< since the beginning
    };

    std::atomic<std::uint64_t> layout;  ///< last of all: 0 until it is open
    std::uint64_t itself;               ///< bytes of this, in which releases and systems differ
    std::uint64_t bytes;
    source_shape shape;
    std::uint64_t epoch;
    hash_seed seed;
    pthread_mutex_t guard;
    tallies told;

    [[nodiscard]] static std::uint64_t bytes_for(const source_shape& shape) noexcept {
        return sizeof(source_region) +
               8 * (lines(words_of_places(shape)) + 2 * lines(words_for(shape.size.bits)) +
                    lines(shape.news) + lines(words_of_steps(shape)));
    }

    // What lies behind it. @pre it lies in bytes_for(shape) bytes
    [[nodiscard]] std::span<std::uint64_t> places() noexcept {
        return {reinterpret_cast<std::uint64_t*>(this + 1), words_of_places(shape)};
    }
    [[nodiscard]] std::span<std::uint64_t> bits() noexcept {
        return {places().data() + lines(words_of_places(shape)), words_for(shape.size.bits)};
    }
    [[nodiscard]] std::span<std::uint64_t> published_bits() noexcept {
        const auto now = bits();
        return {now.data() + lines(now.size()), now.size()};
    }
    /// Places, in a ring.
    [[nodiscard]] std::span<std::uint64_t> turned() noexcept {
        const auto published = published_bits();
        return {published.data() + lines(published.size()), shape.news};
    }
    /// In a ring, too.
    [[nodiscard]] std::span<step> steps() noexcept {
        auto* const first = turned().data() + lines(shape.news);
        return {reinterpret_cast<step*>(first), shape.news > 0 ? most_steps : 0};
    }

private:
    // In words, each piece from a cache line on.
    static constexpr std::uint64_t lines(std::uint64_t words) noexcept {
        return (words + 7) / 8 * 8;
    }
    static std::uint64_t words_of_places(const source_shape& shape) noexcept {
        return words_for(shape.size.bits) * 4;
    }
    static std::uint64_t words_of_steps(const source_shape& shape) noexcept {
        return shape.news > 0 ? most_steps * sizeof(step) / 8 : 0;
    }
};
static_assert(std::is_standard_layout_v<source_region> &&
              std::atomic<std::uint64_t>::is_always_lock_free);

/// Holds a region's lock. Where the one before was killed that held it: is_left says so, and what it left is to be mended.
class region_lock {
public:
    explicit region_lock(source_region& region) noexcept;
    region_lock(const region_lock&) = delete;
    region_lock& operator=(const region_lock&) = delete;
    ~region_lock() { pthread_mutex_unlock(&guard_); }
    [[nodiscard]] bool is_left() const noexcept { return is_left_; }

private:
    pthread_mutex_t& guard_;
    bool is_left_ = false;
};

/// Makes the lock of a region that is not open yet. @param shared by processes
void make_lock(source_region& region, bool shared);

}  // namespace reprise::filter::c
