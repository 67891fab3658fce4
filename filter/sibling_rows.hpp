#pragma once
// One table of sibling_index: digests of one size as columns, row i holding bit i of each.
//
// A row is a machine word of 8, 16, 32 or 64 bits, the slice: few siblings so take few bytes, and
// their rows stay in nearer caches.

#include "filter/big_array.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace reprise::filter {

/// Memory    size.bits * slice / 8 bytes, in huge pages where there are (big_array.hpp).
/// Threads   `ask` by any number, also while one thread writes: rows are read and written whole. A
///           row read with a write in it happens after all that the writer did before that write.
///           All else by one thread at a time.
class sibling_rows {
public:
    static constexpr unsigned least_slice = 8;
    static constexpr unsigned most_slice = 64;

    /// All columns empty. @pre slice is 8, 16, 32 or 64 @throws std::bad_alloc
    sibling_rows(bloom_size size, unsigned slice);
    /// The columns of `narrower`, and as many empty ones beside them.
    /// @pre narrower.slice() < most_slice @throws std::bad_alloc
    explicit sibling_rows(const sibling_rows& narrower);
    sibling_rows& operator=(const sibling_rows&) = delete;

    /// The columns in which all of the key's places are on: bit c for column c.
    [[nodiscard]] std::uint64_t ask(key_hash key) const noexcept;

    /// Makes `column` the digest in `words`. O(size.bits).
    /// @pre column < slice(), words.size() == ceil(size.bits / 64)
    void write(unsigned column, std::span<const std::uint64_t> words) noexcept;
    /// Turns a column's bits at `places` over. @pre column < slice(), places below size.bits
    void flip(unsigned column, std::span<const std::uint64_t> places) noexcept;
    /// The column as write would take it, bits past the end off. @throws std::bad_alloc
    [[nodiscard]] std::vector<std::uint64_t> read(unsigned column) const;

    [[nodiscard]] bloom_size size() const noexcept { return size_; }
    [[nodiscard]] unsigned slice() const noexcept { return slice_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return size_.bits * (slice_ / 8); }

private:
    template <class Word>
    using table = big_array<Word>;

    bloom_size size_;
    unsigned slice_;
    std::variant<table<std::uint8_t>,
                 table<std::uint16_t>,
                 table<std::uint32_t>,
                 table<std::uint64_t>>
        rows_;
};

}  // namespace reprise::filter
