#pragma once
// An array of cells of 1 to 32 bits each, without gaps: what fingerprints and small counters lie
// in.

#include "filter/big_array.hpp"
#include "tools/mix.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace reprise::alternatives {

/// Memory    count * bits / 8 bytes, and eight for reading past the last; in huge pages where there
///           are (big_array.hpp), as what is judged beside it.
/// Threads   one; const members at once by any number. A write touches its neighbours' bytes.
class cells {
public:
    /// All zero. @pre 1 <= bits <= 32 @throws std::bad_alloc
    cells(std::uint64_t count, unsigned bits)
        : count_{count},
          bits_{bits},
          bytes_{(count * bits + 7) / 8 + sizeof(std::uint64_t)} {
        assert(bits >= 1 && bits <= 32);
    }

    [[nodiscard]] std::uint32_t get(std::uint64_t i) const noexcept {
        assert(i < count_);
        return static_cast<std::uint32_t>(word_at(i * bits_) >> (i * bits_ % 8)) & max();
    }

    /// @pre value <= max()
    void set(std::uint64_t i, std::uint32_t value) noexcept {
        assert(i < count_ && value <= max());
        const auto bit = i * bits_;
        const auto word = word_at(bit) & ~(std::uint64_t{max()} << (bit % 8));
        const auto with = word | std::uint64_t{value} << (bit % 8);
        std::memcpy(bytes_.begin() + bit / 8, &with, sizeof with);
    }

    void clear() noexcept { bytes_.clear(); }

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] unsigned bits() const noexcept { return bits_; }
    /// The largest value of a cell.
    [[nodiscard]] std::uint32_t max() const noexcept {
        return static_cast<std::uint32_t>((std::uint64_t{1} << bits_) - 1);
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.size(); }

    bool operator==(const cells&) const = default;

private:
    // 32 bits from any bit of a byte are within the eight bytes from there. In the machine's order:
    // nothing here is sent or stored.
    [[nodiscard]] std::uint64_t word_at(std::uint64_t bit) const noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes_.begin() + bit / 8, sizeof word);
        return word;
    }

    std::uint64_t count_;
    unsigned bits_;
    filter::big_array<std::byte> bytes_;
};

using tools::mix;  // for what needs more hashes than a key brings

/// Lemire's range reduction: a word read as a fraction of one, times `range`.
constexpr std::uint64_t scaled(std::uint64_t word, std::uint64_t range) noexcept {
    __extension__ typedef unsigned __int128 uint128;
    return static_cast<std::uint64_t>((uint128{word} * range) >> 64);
}

}  // namespace reprise::alternatives
