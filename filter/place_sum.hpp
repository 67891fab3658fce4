#pragma once
// A checksum of which bits are on that follows each bit that turns, in O(1): the sum, modulo 2^64,
// of a mark of each place that is on (Bellare and Micciancio's AdHash, EUROCRYPT 1997). Both sides
// of news keep one, so that whatever made them differ is found at the next news, where a checksum
// of all bits would cost all bits. Against accidents alone: sums can be made to agree.

#include "filter/bit_words.hpp"

#include <bit>
#include <cstdint>
#include <span>

namespace reprise::filter {

/// A place's mark is SplitMix64's output for it (Steele, Lea and Flood 2014). Part of the wire
/// format.
[[nodiscard]] constexpr std::uint64_t mark_of(std::uint64_t place) noexcept {
    auto mixed = place + 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

/// The sum after the bit at `place` turned, which is `is_on` now.
[[nodiscard]] constexpr std::uint64_t turned(std::uint64_t sum,
                                             std::uint64_t place,
                                             bool is_on) noexcept {
    return is_on ? sum + mark_of(place) : sum - mark_of(place);
}

/// O(bits on).
[[nodiscard]] inline std::uint64_t place_sum(std::span<const std::uint64_t> words) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        for (auto left = words[i]; left != 0; left &= left - 1) {
            sum += mark_of(i * 64 + static_cast<unsigned>(std::countr_zero(left)));
        }
    }
    return sum;
}

}  // namespace reprise::filter
