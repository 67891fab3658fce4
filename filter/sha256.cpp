// See sha256.hpp. Its constants are what the standard defines them as: the first 32 bits of the
// fractional parts of square and cube roots of the first primes, computed here in whole numbers.

#include "filter/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace reprise::filter {

namespace {

constexpr std::size_t sha_block_bytes = 64;
constexpr std::size_t rounds = 64;

/// floor(2^32 * root) modulo 2^32, where root is the square or cube root of `of`: the largest r
/// with r^power <= of * 2^(32 * power), found bit by bit.
constexpr std::uint32_t fraction_of_root(unsigned of, unsigned power) {
    __extension__ using uint128 = unsigned __int128;
    std::uint64_t root = 0;
    for (int bit = 36; bit-- > 0;) {
        const auto tried = root | std::uint64_t{1} << bit;
        // Only 128 bits of the cube root fit: r^3 <= of * 2^96 is r^2 <= of * 2^96 / r.
        const auto fits = power == 2 ? uint128{tried} * tried <= uint128{of} << 64
                                     : uint128{tried} * tried <= (uint128{of} << 96) / tried;
        root = fits ? tried : root;
    }
    return static_cast<std::uint32_t>(root);
}

template <std::size_t Count>
constexpr std::array<std::uint32_t, Count> fractions_of_roots(unsigned power) {
    std::array<std::uint32_t, Count> out{};
    std::size_t found = 0;
    for (unsigned number = 2; found < Count; ++number) {
        bool is_prime = true;
        for (unsigned divisor = 2; divisor * divisor <= number; ++divisor) {
            is_prime = is_prime && number % divisor != 0;
        }
        if (is_prime) {
            out[found++] = fraction_of_root(number, power);
        }
    }
    return out;
}

constexpr auto initial = fractions_of_roots<8>(2);
constexpr auto of_round = fractions_of_roots<rounds>(3);
static_assert(initial[0] == 0x6a09e667 && of_round[rounds - 1] == 0xc67178f2);

void take_block(std::array<std::uint32_t, 8>& state, const std::byte* block) noexcept {
    std::array<std::uint32_t, rounds> words{};
    for (std::size_t i = 0; i < 16; ++i) {
        for (std::size_t byte = 0; byte < 4; ++byte) {
            words[i] = words[i] << 8 | std::to_integer<std::uint32_t>(block[4 * i + byte]);
        }
    }
    for (std::size_t i = 16; i < rounds; ++i) {
        const auto a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + words[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
                   (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < rounds; ++i) {
        const auto one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                         ((e & f) ^ (~e & g)) + of_round[i] + words[i];
        const auto other = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                           ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + other;
    }
    const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) {
        state[i] += added[i];
    }
}

}  // namespace

std::array<std::byte, 32> sha256(std::span<const std::byte> text) noexcept {
    auto state = initial;
    auto rest = text;
    for (; rest.size() >= sha_block_bytes; rest = rest.subspan(sha_block_bytes)) {
        take_block(state, rest.data());
    }
    // What is left, a one bit, zeroes, and how many bits there were: in one block or two.
    std::array<std::byte, 2 * sha_block_bytes> last{};
    std::copy(rest.begin(), rest.end(), last.begin());
    last[rest.size()] = std::byte{0x80};
    const auto blocks = rest.size() + 9 <= sha_block_bytes ? 1U : 2U;
    const auto bits = std::uint64_t{text.size()} * 8;
    for (std::size_t i = 0; i < 8; ++i) {
        last[blocks * sha_block_bytes - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
    }
    for (unsigned block = 0; block < blocks; ++block) {
        take_block(state, last.data() + block * sha_block_bytes);
    }
    std::array<std::byte, 32> out{};
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::byte>(state[i / 4] >> (24 - i % 4 * 8));
    }
    return out;
}

}  // namespace reprise::filter
