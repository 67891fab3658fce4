#pragma once
// One table of sibling_index: digests of one size as columns, row i holding bit i of each.
//
// A row is a machine word of 8, 16, 32 or 64 bits, the slice: few siblings so take few bytes, and
// their rows stay in nearer caches.

#include "filter/big_array.hpp"
#include "filter/indices.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <atomic>
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
    /// Twice the columns of `narrower`, the digest of its column c in column_of[c].
    /// @pre narrower.slice() < most_slice, column_of has an entry for each of its columns, all of
    ///      them different and below twice its slice @throws std::bad_alloc
    sibling_rows(const sibling_rows& narrower, std::span<const std::uint8_t> column_of);

    sibling_rows(const sibling_rows&) = delete;
    sibling_rows& operator=(const sibling_rows&) = delete;

    /// The columns in which all of the key's places are on: bit c for column c.
    [[nodiscard]] std::uint64_t ask(key_hash key) const noexcept;

    /// Makes `column` the digest in `words`; bits that are as they were are not written. O(size.bits).
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
    using tables = std::variant<big_array<std::uint8_t>,
                                big_array<std::uint16_t>,
                                big_array<std::uint32_t>,
                                big_array<std::uint64_t>>;

    [[nodiscard]] static tables make(std::uint64_t bits, unsigned slice);

    template <class Word>
    [[nodiscard]] std::uint64_t ask_in(const Word* rows, key_hash key) const noexcept;

    bloom_size size_;
    unsigned slice_;
    tables rows_;
    const void* first_;  // of rows_, whichever it is: for ask
};

/// A row as it is, from an array that one thread may be writing.
template <class Word>
[[nodiscard]] Word load_row(const Word& row, std::memory_order order) noexcept {
    // An atomic_ref of const is C++26's; nothing is written through this one.
    return std::atomic_ref<Word>{const_cast<Word&>(row)}.load(order);  // NOLINT
}

template <class Word>
std::uint64_t sibling_rows::ask_in(const Word* rows, key_hash key) const noexcept {
    // No early end: with several siblings some bit is on nearly to the last row, and reads overlap
    // when none waits for what another said.
    indices places{key, size_.bits};
    std::uint64_t on = load_row(rows[places.next()], std::memory_order_acquire);
    if (size_.probes == 2) {  // the default; unrolled, the places that nobody asks for fall away
        return on & load_row(rows[places.next()], std::memory_order_acquire);
    }
    for (unsigned probe = 1; probe < size_.probes; ++probe) {
        on &= load_row(rows[places.next()], std::memory_order_acquire);
    }
    return on;
}

// Here to be inlined: what a look-up waits for is memory, and the fewer instructions it has, the
// more look-ups wait at once.
inline std::uint64_t sibling_rows::ask(key_hash key) const noexcept {
    switch (slice_) {
    case 8: return ask_in(static_cast<const std::uint8_t*>(first_), key);
    case 16: return ask_in(static_cast<const std::uint16_t*>(first_), key);
    case 32: return ask_in(static_cast<const std::uint32_t*>(first_), key);
    default: return ask_in(static_cast<const std::uint64_t*>(first_), key);
    }
}

}  // namespace reprise::filter
