// See sibling_rows.hpp. Rows are plain words in one array, reached through std::atomic_ref, since
// one writes while others read. Acquire and release cost nothing beside plain access on x86-64.

#include "filter/sibling_rows.hpp"

#include <bit>
#include <cassert>
#include <type_traits>

namespace reprise::filter {

namespace {

constexpr unsigned word_bits = 64;

/// There is one writer, so that what it reads is the latest and needs no read-modify-write.
template <class Word>
void store(Word& row, Word value) noexcept {
    std::atomic_ref<Word>{row}.store(value, std::memory_order_release);
}

}  // namespace

sibling_rows::tables sibling_rows::make(std::uint64_t bits, unsigned slice) {
    switch (slice) {
    case 8: return big_array<std::uint8_t>{bits};
    case 16: return big_array<std::uint16_t>{bits};
    case 32: return big_array<std::uint32_t>{bits};
    default: return big_array<std::uint64_t>{bits};
    }
}

sibling_rows::sibling_rows(bloom_size size, unsigned slice)
    : size_{size},
      slice_{slice},
      rows_{make(size.bits, slice)},
      first_{std::visit([](const auto& rows) -> const void* { return rows.begin(); }, rows_)} {
    assert(size.bits > 0 && size.probes > 0);
    assert(slice == 8 || slice == 16 || slice == 32 || slice == 64);
}

sibling_rows::sibling_rows(const sibling_rows& narrower, std::span<const std::uint8_t> column_of)
    : sibling_rows{narrower.size_, narrower.slice_ * 2} {
    std::visit(
        [&](auto& wide, const auto& narrow) {
            using word = std::remove_reference_t<decltype(wide[0])>;
            for (std::uint64_t row = 0; row < size_.bits; ++row) {
                std::uint64_t bits = load_row(narrow[row], std::memory_order_relaxed);
                for (; bits != 0; bits &= bits - 1) {
                    const auto column = column_of[static_cast<unsigned>(std::countr_zero(bits))];
                    // Only one pair of types ever meets here; the others must compile all the same.
                    wide[row] = static_cast<word>(wide[row] | std::uint64_t{1} << column);
                }
            }
        },
        rows_,
        narrower.rows_);
}

void sibling_rows::write(unsigned column, std::span<const std::uint64_t> words) noexcept {
    assert(column < slice_ && words.size() == (size_.bits + word_bits - 1) / word_bits);
    std::visit(
        [&](auto& rows) {
            using word = std::remove_reference_t<decltype(rows[0])>;
            const auto others = static_cast<word>(~(word{1} << column));
            for (std::uint64_t row = 0; row < size_.bits; ++row) {
                const auto bit = words[row / word_bits] >> (row % word_bits) & 1;
                const auto before = load_row(rows[row], std::memory_order_relaxed);
                const auto after = static_cast<word>((before & others) | bit << column);
                if (after != before) {
                    store(rows[row], after);
                }
            }
        },
        rows_);
}

void sibling_rows::flip(unsigned column, std::span<const std::uint64_t> places) noexcept {
    assert(column < slice_);
    std::visit(
        [&](auto& rows) {
            using word = std::remove_reference_t<decltype(rows[0])>;
            const auto bit = static_cast<word>(word{1} << column);
            for (const auto place : places) {
                const auto before = load_row(rows[place], std::memory_order_relaxed);
                store(rows[place], static_cast<word>(before ^ bit));
            }
        },
        rows_);
}

std::vector<std::uint64_t> sibling_rows::read(unsigned column) const {
    assert(column < slice_);
    std::vector<std::uint64_t> words((size_.bits + word_bits - 1) / word_bits);
    std::visit(
        [&](const auto& rows) {
            for (std::uint64_t row = 0; row < size_.bits; ++row) {
                const std::uint64_t bits = load_row(rows[row], std::memory_order_relaxed);
                words[row / word_bits] |= (bits >> column & 1) << (row % word_bits);
            }
        },
        rows_);
    return words;
}

}  // namespace reprise::filter
