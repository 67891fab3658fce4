#pragma once
// A set of places in the table of siblings.

#include "filter/sibling_index.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace reprise::proxy::peer {

/// Siblings at most: four sibling_indexes of them.
inline constexpr unsigned most_slots = 256;
inline constexpr unsigned slot_blocks = most_slots / filter::sibling_index::capacity;

struct slot_set {
    std::array<filter::sibling_mask, slot_blocks> blocks{};

    [[nodiscard]] static constexpr slot_set all() noexcept { return ~slot_set{}; }

    [[nodiscard]] constexpr bool has(unsigned slot) const noexcept {
        return (blocks[slot / width] >> (slot % width) & 1) != 0;
    }
    constexpr void add(unsigned slot) noexcept {
        blocks[slot / width] |= filter::sibling_mask{1} << (slot % width);
    }
    [[nodiscard]] constexpr bool empty() const noexcept { return *this == slot_set{}; }
    [[nodiscard]] constexpr std::size_t count() const noexcept {
        std::size_t sum = 0;
        for (const auto block : blocks) {
            sum += static_cast<std::size_t>(std::popcount(block));
        }
        return sum;
    }

    /// Calls `visit(slot)` for each, rising.
    template <class Visit>
    constexpr void for_each(Visit&& visit) const {
        for (unsigned block = 0; block < slot_blocks; ++block) {
            for (auto left = blocks[block]; left != 0; left &= left - 1) {
                visit(block * width + static_cast<unsigned>(std::countr_zero(left)));
            }
        }
    }

    constexpr slot_set& operator&=(const slot_set& other) noexcept {
        for (unsigned block = 0; block < slot_blocks; ++block) {
            blocks[block] &= other.blocks[block];
        }
        return *this;
    }
    constexpr slot_set& operator|=(const slot_set& other) noexcept {
        for (unsigned block = 0; block < slot_blocks; ++block) {
            blocks[block] |= other.blocks[block];
        }
        return *this;
    }
    [[nodiscard]] constexpr slot_set operator~() const noexcept {
        slot_set out;
        for (unsigned block = 0; block < slot_blocks; ++block) {
            out.blocks[block] = ~blocks[block];
        }
        return out;
    }
    [[nodiscard]] friend constexpr slot_set operator&(slot_set a, const slot_set& b) noexcept {
        return a &= b;
    }
    [[nodiscard]] friend constexpr slot_set operator|(slot_set a, const slot_set& b) noexcept {
        return a |= b;
    }
    bool operator==(const slot_set&) const = default;

private:
    static constexpr unsigned width = filter::sibling_index::capacity;
};

}  // namespace reprise::proxy::peer
