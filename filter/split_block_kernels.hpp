#pragma once
// What a query and an insert do to one block of split_block_bloom, plainly and for AVX2. Apart from
// the class only so that a test can hold the two against each other; callers want split_block.hpp.

#include <array>
#include <cstdint>

namespace reprise::filter::split_block_kernels {

using block_words = std::array<std::uint32_t, 8>;

/// Whether this processor has AVX2. Without it the functions for it must not be called.
[[nodiscard]] bool has_avx2() noexcept;

/// Whether all of the hash's eight bits are on.
[[nodiscard]] bool has_all_plain(const block_words& words, std::uint64_t hash) noexcept;
/// @pre has_avx2(), words on a boundary of 32 bytes
[[nodiscard]] bool has_all_avx2(const block_words& words, std::uint64_t hash) noexcept;

/// Puts the hash's eight bits on; whether they were all on before.
bool put_all_plain(block_words& words, std::uint64_t hash) noexcept;
/// @pre has_avx2(), words on a boundary of 32 bytes
bool put_all_avx2(block_words& words, std::uint64_t hash) noexcept;

}  // namespace reprise::filter::split_block_kernels
