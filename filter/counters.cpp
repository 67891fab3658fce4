// See counters.hpp. Sixteen counters per word, the first in the lowest bits, and whole groups of
// four words, so that 64 published bits are made without a test for the end.

#include "filter/counters.hpp"

#include <algorithm>

namespace reprise::filter {

namespace {

/// Bit i is on when the i-th group of four bits is not zero.
constexpr std::uint64_t groups_on(std::uint64_t word) noexcept {
    word |= word >> 2;
    word |= word >> 1;
    word &= 0x1111111111111111;
    // Each step halves the gaps: one bit in 4, two in 8, four in 16, eight in 32, sixteen.
    word = (word | word >> 3) & 0x0303030303030303;
    word = (word | word >> 6) & 0x000f000f000f000f;
    word = (word | word >> 12) & 0x000000ff000000ff;
    return (word | word >> 24) & 0xffff;
}
static_assert(groups_on(0xf080'0002'0100'0004) == 0b1010'0001'0100'0001);

}  // namespace

counters::counters(std::uint64_t places, std::pmr::memory_resource* memory)
    : places_{places},
      words_((places + 63) / 64 * 4, memory) {
    assert(places > 0 && places < std::uint64_t{1} << 60);
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
    const auto* group = &words_[index * 4];
    return groups_on(group[0]) | groups_on(group[1]) << 16 | groups_on(group[2]) << 32 |
           groups_on(group[3]) << 48;
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
