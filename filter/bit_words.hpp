#pragma once
// What filters do to rows of bits kept in 64-bit words, place i in word i / 64 at bit i % 64.

#include "filter/filter_errc.hpp"
#include "filter/sizing.hpp"

#include <bit>
#include <cassert>
#include <cstdint>
#include <span>

namespace reprise::filter {

/// Whether filters of one kind and these sizes may be combined bit by bit: sizes_differ or
/// probes_differ when not.
[[nodiscard]] inline boost::system::result<void> combinable(bloom_size a, bloom_size b) noexcept {
    if (a.bits != b.bits) {
        return filter_errc::sizes_differ;
    }
    if (a.probes != b.probes) {
        return filter_errc::probes_differ;
    }
    return {};
}

/// The bit of `place` within its word.
[[nodiscard]] constexpr std::uint64_t bit_at(std::uint64_t place) noexcept {
    return std::uint64_t{1} << (place % 64);
}

/// How many words hold so many bits.
[[nodiscard]] constexpr std::uint64_t words_for(std::uint64_t bits) noexcept {
    return bits / 64 + (bits % 64 != 0 ? 1 : 0);
}

/// Bit i is on when the i-th group of four bits of a word is not zero.
[[nodiscard]] constexpr std::uint64_t groups_on(std::uint64_t word) noexcept {
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

/// The same of four words, 64 places: which of them are on. @pre four words there
[[nodiscard]] constexpr std::uint64_t groups_on(const std::uint64_t* four) noexcept {
    return groups_on(four[0]) | groups_on(four[1]) << 16 | groups_on(four[2]) << 32 |
           groups_on(four[3]) << 48;
}

[[nodiscard]] inline std::uint64_t count_on(std::span<const std::uint64_t> words) noexcept {
    std::uint64_t on = 0;
    for (const auto word : words) {
        on += static_cast<unsigned>(std::popcount(word));
    }
    return on;
}

/// The 64 bits from `place` on, those past the last word off. @pre place < 64 * words.size()
[[nodiscard]] inline std::uint64_t bits_from(std::span<const std::uint64_t> words,
                                             std::uint64_t place) noexcept {
    assert(place / 64 < words.size());
    const auto shift = place % 64;
    const auto low = words[place / 64] >> shift;
    if (shift == 0 || place / 64 + 1 == words.size()) {
        return low;
    }
    return low | words[place / 64 + 1] << (64 - shift);
}

/// The lowest `bits` of a word. @pre bits <= 64
[[nodiscard]] constexpr std::uint64_t lowest(std::uint64_t word, std::uint64_t bits) noexcept {
    return bits >= 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
}

/// ORs 64 bits into `to` from `place` on. @pre no bit that is on lies past the last word
inline void merge_bits(std::span<std::uint64_t> to,
                       std::uint64_t place,
                       std::uint64_t bits) noexcept {
    assert(place / 64 < to.size());
    to[place / 64] |= bits << (place % 64);
    if (place % 64 != 0 && place / 64 + 1 < to.size()) {
        to[place / 64 + 1] |= bits >> (64 - place % 64);
    }
}

}  // namespace reprise::filter
