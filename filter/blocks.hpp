#pragma once
// Which bits of a blocked filter (bloom.hpp) a key owns: one in each word of one block.

#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <bit>
#include <cstdint>

namespace reprise::filter {

/// A key's block of `blocks`: Lemire's range reduction, the word read as a fraction of one times
/// the blocks. No division, and any number of blocks.
[[nodiscard]] constexpr std::uint64_t block_of(key_hash key, std::uint64_t blocks) noexcept {
    __extension__ using uint128 = unsigned __int128;  // not ISO C++, but wherever we build
    return static_cast<std::uint64_t>((uint128{key.low} * blocks) >> 64);
}

/// Which bit a key sets in its block's word `lane`.
[[nodiscard]] constexpr unsigned place_in(key_hash key, unsigned lane) noexcept {
    constexpr unsigned shift = std::countr_zero(lane_bits);  // hash bits that pick a lane's bit
    static_assert(lanes * shift <= 64, "one hash word must serve all lanes");
    return static_cast<unsigned>((key.high >> (lane * shift)) % lane_bits);
}

/// Whether all of a key's bits are on in its block, whose word `lane` word_at(lane) gives.
template <class Words>
[[nodiscard]] bool is_on_in_block(key_hash key, const Words& word_at) noexcept {
    // Most questions of a first sight end at the first lanes, but a branch per lane mispredicts;
    // all eight words are in one line or two anyway. Unrolled on request: at -O2 GCC 12 keeps the
    // loop, and a query takes more than twice as long.
    std::uint64_t on = 1;
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < lanes; ++lane) {
        on &= word_at(lane) >> place_in(key, lane);
    }
    return on != 0;
}

}  // namespace reprise::filter
