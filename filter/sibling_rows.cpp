// See sibling_rows.hpp. Rows are plain words in one array, reached through std::atomic_ref, since
// one writes while others read. Acquire and release cost nothing beside plain access on x86-64.

#include "filter/sibling_rows.hpp"

#include "filter/indices.hpp"

#include <atomic>
#include <cassert>

namespace reprise::filter {

namespace {

constexpr unsigned word_bits = 64;

template <class Word>
Word load(const Word& row, std::memory_order order) noexcept {
    // atomic_ref of const is C++26's; nothing is written through this one.
    return std::atomic_ref<Word>{const_cast<Word&>(row)}.load(order);  // NOLINT
}

/// There is one writer, so that what it reads is the latest and needs no read-modify-write.
template <class Word>
void store(Word& row, Word value) noexcept {
    std::atomic_ref<Word>{row}.store(value, std::memory_order_release);
}

}  // namespace

sibling_rows::sibling_rows(bloom_size size, unsigned slice)
    : size_{size},
      slice_{slice},
      rows_{[&]() -> decltype(rows_) {
          switch (slice) {
          case 8: return table<std::uint8_t>{size.bits};
          case 16: return table<std::uint16_t>{size.bits};
          case 32: return table<std::uint32_t>{size.bits};
          default: return table<std::uint64_t>{size.bits};
          }
      }()} {
    assert(size.bits > 0 && size.probes > 0);
    assert(slice == 8 || slice == 16 || slice == 32 || slice == 64);
}

sibling_rows::sibling_rows(const sibling_rows& narrower)
    : sibling_rows{narrower.size_, narrower.slice_ * 2} {
    std::visit(
        [&](auto& wide, const auto& narrow) {
            for (std::uint64_t row = 0; row < size_.bits; ++row) {
                const auto bits = load(narrow[row], std::memory_order_relaxed);
                // Only one pair of types ever meets here; the others must compile all the same.
                wide[row] = static_cast<std::remove_reference_t<decltype(wide[row])>>(bits);
            }
        },
        rows_,
        narrower.rows_);
}

std::uint64_t sibling_rows::ask(key_hash key) const noexcept {
    return std::visit(
        [&](const auto& rows) {
            // No early end: with several siblings some bit is on nearly to the last row, and the
            // reads overlap when none waits for what another said.
            indices places{key, size_.bits};
            std::uint64_t on = UINT64_MAX;
            for (unsigned probe = 0; probe < size_.probes; ++probe) {
                on &= load(rows[places.next()], std::memory_order_acquire);
            }
            return on;
        },
        rows_);
}

void sibling_rows::write(unsigned column, std::span<const std::uint64_t> words) noexcept {
    assert(column < slice_ && words.size() == (size_.bits + word_bits - 1) / word_bits);
    std::visit(
        [&](auto& rows) {
            using word = std::remove_reference_t<decltype(rows[0])>;
            const auto others = static_cast<word>(~(word{1} << column));
            for (std::uint64_t row = 0; row < size_.bits; ++row) {
                const auto bit = words[row / word_bits] >> (row % word_bits) & 1;
                const auto kept = load(rows[row], std::memory_order_relaxed) & others;
                store(rows[row], static_cast<word>(kept | bit << column));
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
                const auto before = load(rows[place], std::memory_order_relaxed);
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
                const std::uint64_t bits = load(rows[row], std::memory_order_relaxed);
                words[row / word_bits] |= (bits >> column & 1) << (row % word_bits);
            }
        },
        rows_);
    return words;
}

}  // namespace reprise::filter
