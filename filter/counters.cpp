// See counters.hpp. Sixteen counters per word, the first in the lowest bits, and whole groups of
// four words, so that 64 published bits are made without a test for the end.

#include "filter/counters.hpp"

#include "filter/bit_words.hpp"

#include <algorithm>

namespace reprise::filter {

counters::counters(std::uint64_t places, std::pmr::memory_resource* memory)
    : places_{places},
      words_((places + 63) / 64 * 4, memory) {
    assert(places > 0 && places < std::uint64_t{1} << 60);
}

counters::counters(std::uint64_t places, std::span<std::uint64_t> words) noexcept
    : places_{places},
      words_{words} {
    assert(words.size() == (places + 63) / 64 * 4);
}

void counters::recount() noexcept {
    on_ = 0;
    stuck_ = 0;
    for (const auto word : words_) {
        on_ += static_cast<unsigned>(std::popcount(groups_on(word)));
        stuck_ += per_word - static_cast<unsigned>(std::popcount(groups_on(~word)));
    }
}

counter_step counters::raise(std::uint64_t place) noexcept {
    const auto count = at(place);
    if (count == most) {
        return counter_step::stuck;
    }
    words_[place / per_word] += std::uint64_t{1} << shift_of(place);
    stuck_ += count + 1 == most ? 1 : 0;
    on_ += count == 0 ? 1 : 0;
    return count == 0 ? counter_step::turned_on : counter_step::moved;
}

counter_step counters::lower(std::uint64_t place) noexcept {
    const auto count = at(place);
    if (count == most) {
        return counter_step::stuck;
    }
    if (count == 0) {
        return counter_step::underflow;
    }
    words_[place / per_word] -= std::uint64_t{1} << shift_of(place);
    on_ -= count == 1 ? 1 : 0;
    return count == 1 ? counter_step::turned_off : counter_step::moved;
}

std::uint64_t counters::bits_on(std::uint64_t index) const noexcept {
    assert(index < bit_words());
    return groups_on(&words_[index * 4]);
}

void counters::add_at(std::uint64_t place, unsigned count) noexcept {
    const auto before = at(place);
    const auto after = std::min(before + count, most);
    words_[place / per_word] += std::uint64_t{after - before} << shift_of(place);
    on_ += before == 0 && after != 0 ? 1 : 0;
    stuck_ += before != most && after == most ? 1 : 0;
}

void counters::add(const counters& other) noexcept {
    assert(places_ == other.places_);
    for (std::uint64_t place = 0; place < places_; ++place) {
        add_at(place, other.at(place));
    }
}

counters counters::folded() const {
    assert(places_ % 2 == 0);
    counters half{places_ / 2};
    for (std::uint64_t place = 0; place < half.places_; ++place) {
        half.add_at(place, at(place));
        half.add_at(place, at(place + half.places_));
    }
    return half;
}

void counters::clear() noexcept {
    std::fill(words_.begin(), words_.end(), 0);
    on_ = 0;
    stuck_ = 0;
}

}  // namespace reprise::filter
