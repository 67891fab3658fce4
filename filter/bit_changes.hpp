#pragma once
// A counting filter's bits, kept beside it as they change, and how many differ from those last
// published: what a digest's owner asks to know whether it is time to publish again.
//
// A place that went on and off again since has not changed, so a count of events would not do. One
// bit per place for the bits as they are and one for the bits as published; a change costs one bit
// turned and one compared, and nothing is ever searched.

#include "filter/standard.hpp"
#include "filter/word_array.hpp"

#include <cassert>
#include <cstdint>
#include <memory_resource>
#include <span>

namespace reprise::filter {

/// Memory    two bits per place, in two pieces of words, from the resource that is given, which
///           outlives this. Copies have the default one's.
/// Threads   one; const members may run at once. What publish() returned is the caller's own.
class bit_changes {
public:
    /// All bits off, and published so. @pre as standard_bloom's
    /// @throws std::bad_alloc
    explicit bit_changes(bloom_size size,
                         std::pmr::memory_resource* memory = std::pmr::get_default_resource());

    /// The bits of `now`, all of them unpublished changes. For a filter that is not empty.
    /// @throws std::bad_alloc
    explicit bit_changes(const standard_bloom& now,
                         std::pmr::memory_resource* memory = std::pmr::get_default_resource());

    /// Bits that lie elsewhere, as they are and as they were published: for memory that several
    /// share, one at a time. @pre as many words in each as the size takes; they outlive this
    bit_changes(bloom_size size,
                std::span<std::uint64_t> now,
                std::span<std::uint64_t> published) noexcept;
    /// How many differ, as the last one had it in changed().
    void resume(std::uint64_t changed) noexcept { changed_ = changed; }
    /// Sets 64 bits; how many differ is not kept up. @pre index < now().size()
    void put(std::uint64_t index, std::uint64_t bits) noexcept { now_[index] = bits; }

    /// The place's bit turned: on if it was off, off if it was on. What counting_bloom's insert and
    /// erase report. O(1). @pre place < size().bits
    void turn(std::uint64_t place) noexcept {
        assert(place < size_.bits);
        const auto bit = std::uint64_t{1} << (place % 64);
        now_[place / 64] ^= bit;
        if (((now_[place / 64] ^ published_[place / 64]) & bit) != 0) {
            ++changed_;
        } else {
            --changed_;
        }
    }

    /// How many bits differ from those last published. O(1).
    [[nodiscard]] std::uint64_t changed() const noexcept { return changed_; }

    /// The bits as they are; from now on they are the published ones. O(bits).
    /// @throws std::bad_alloc, and then nothing is changed
    [[nodiscard]] standard_bloom publish();

    /// The same without a copy. O(bits), and allocates nothing.
    void mark_published() noexcept;

    /// The bits as they are.
    [[nodiscard]] std::span<const std::uint64_t> now() const noexcept { return now_; }
    /// Those last published.
    [[nodiscard]] std::span<const std::uint64_t> published() const noexcept { return published_; }
    [[nodiscard]] bloom_size size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return (now_.size() * 2) * 8; }

private:
    bloom_size size_;
    std::uint64_t changed_ = 0;
    word_array now_;
    word_array published_;
};

}  // namespace reprise::filter
