#pragma once
// What a query and an insert do to one block of split_block_bloom (split_block.hpp, which callers
// want), plainly and for AVX2. The two agree bit for bit; a test holds them against each other.
//
// The query for AVX2 is ten instructions of assembly, because it must be part of its caller: a
// compiler that builds for any x86-64 inlines no function with intrinsics for more. As a call it
// takes twice the instructions, and out of cache, where a core looks only so many instructions
// ahead, a query then costs 1.6 times as much (10^7 keys and more; in cache 1.5 times).

#include <array>
#include <bit>
#include <cstdint>

namespace reprise::filter::split_block_kernels {

inline constexpr unsigned lanes = 8;
inline constexpr unsigned lane_bits = 32;
using block_words = std::array<std::uint32_t, lanes>;

/// Whether this processor has AVX2; false until this library's statics are made. Without it the
/// functions for it must not be called.
extern const bool has_avx2;

inline constexpr unsigned lane_shift = std::countr_zero(lane_bits);
static_assert(lanes / 2 * lane_shift <= 32, "one half of a hash word must serve four lanes");

/// Which bit a key sets in its block's word `lane`. Even lanes take five bits each from the low
/// half of the hash's high word, odd lanes from the high half: what AVX2 has after one broadcast.
[[nodiscard]] constexpr unsigned place_in(std::uint64_t hash, unsigned lane) noexcept {
    const auto half = static_cast<std::uint32_t>(hash >> (lane % 2 * 32));
    return (half >> (lane / 2 * lane_shift)) % lane_bits;
}

/// Whether all of the hash's eight bits are on.
[[nodiscard]] inline bool has_all_plain(const block_words& words, std::uint64_t hash) noexcept {
    std::uint32_t on = 1;
    // Unrolled on request: at -O2 GCC 12 keeps the loop, and a query takes twice as long.
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < lanes; ++lane) {
        on &= words[lane] >> place_in(hash, lane);
    }
    return on != 0;
}

/// Puts the hash's eight bits on; whether they were all on before.
bool put_all_plain(block_words& words, std::uint64_t hash) noexcept;
/// @pre has_avx2, words on a boundary of 32 bytes
bool put_all_avx2(block_words& words, std::uint64_t hash) noexcept;

#if defined(__x86_64__)

struct alignas(32) vector_words {
    block_words each;
};
inline constexpr vector_words lane_counts{
    {0, 0, lane_shift, lane_shift, 2 * lane_shift, 2 * lane_shift, 3 * lane_shift, 3 * lane_shift}};
inline constexpr vector_words last_places{{31, 31, 31, 31, 31, 31, 31, 31}};
inline constexpr vector_words first_bits{{1, 1, 1, 1, 1, 1, 1, 1}};

/// @pre has_avx2, words on a boundary of 32 bytes
[[nodiscard]] inline bool has_all_avx2(const block_words& words, std::uint64_t hash) noexcept {
    bool all_on;
    asm("vmovq %[hash], %%xmm0\n\t"
        "vpbroadcastq %%xmm0, %%ymm0\n\t"
        "vpsrlvd %[counts], %%ymm0, %%ymm0\n\t"  // each lane's run of the hash comes lowest
        "vpand %[last], %%ymm0, %%ymm0\n\t"      // and is cut to five bits: its place
        "vmovdqa %[first], %%ymm1\n\t"
        "vpsllvd %%ymm0, %%ymm1, %%ymm0\n\t"  // one bit per lane, in its place
        "vmovdqa %[words], %%ymm1\n\t"
        "vptest %%ymm0, %%ymm1\n\t"  // carry: no bit of ymm0 is missing from ymm1
        "setc %[all_on]\n\t"
        "vzeroupper"  // clears the upper halves of all registers, so all are named below
        : [all_on] "=r"(all_on)
        : [hash] "r"(hash),
          [counts] "m"(lane_counts),
          [last] "m"(last_places),
          [first] "m"(first_bits),
          [words] "m"(words)
        : "cc",
          "xmm0",
          "xmm1",
          "xmm2",
          "xmm3",
          "xmm4",
          "xmm5",
          "xmm6",
          "xmm7",
          "xmm8",
          "xmm9",
          "xmm10",
          "xmm11",
          "xmm12",
          "xmm13",
          "xmm14",
          "xmm15");
    return all_on;
}

#else

[[nodiscard]] inline bool has_all_avx2(const block_words& words, std::uint64_t hash) noexcept {
    return has_all_plain(words, hash);
}

#endif

}  // namespace reprise::filter::split_block_kernels
