#pragma once
// A stable Bloom filter: an endless stream in fixed memory, with no generations and no moment at
// which much is forgotten at once.
//
// Cells of d bits instead of bits. Every insert first decrements P cells that chance picks, then
// sets the key's K cells to their maximum; a key is contained when none of its cells is zero. What
// is set and what decays come to a balance, the stable point: from there on the share of zeroes,
// and with it the rate of false positives, stays where it is however long the stream. (Deng and
// Rafiei, "Approximately Detecting Duplicates for Streaming Data using Stable Bloom Filters",
// SIGMOD 2006.) As the paper advises, chance picks one cell and the P - 1 after it are decremented
// too: each cell has the chance P/m either way, and one line of memory is touched instead of P.
//
// The price: **it has false negatives**. A key that was inserted may be answered as absent, the
// sooner the more keys came after it; there is no span for which it is surely remembered, only a
// probability (stable_memory), and even a key inserted just now may be lost to the next insert
// where cells have one bit. Where "never forgets sooner than" matters take two_active_buffers
// (aging.hpp). Unlike there, a key inserted again and again stays whatever the others do.

#include "filter/key_hash.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::filter {

/// Shape and pace of a stable filter.
struct stable_size {
    std::uint64_t cells = 0;       ///< m
    unsigned cell_bits = 1;        ///< d: 1, 2, 4 or 8; a cell counts down from 2^d - 1
    unsigned probes = 0;           ///< K, the cells of a key
    std::uint64_t decrements = 0;  ///< P, at most `cells`
    bool operator==(const stable_size&) const = default;
};

/// The share of cells that are zero at the stable point:
/// (1 / (1 + 1 / (P (1/K - 1/m))))^(2^d - 1). @pre every member > 0, probes < cells
[[nodiscard]] double stable_zeroes(stable_size size) noexcept;

/// The rate of false positives at the stable point, (1 - stable_zeroes)^K; an upper bound before
/// it, for a filter begins with zeroes only. @pre as above
[[nodiscard]] double stable_rate(stable_size size) noexcept;

/// The probability that a key is still contained when `gap` inserts of other keys came after it.
/// One cell is a chain of 2^d states: an insert decrements it with probability P/m, then sets it
/// with 1 - (1 - 1/m)^K. K cells are taken to be independent, which consecutive decrements make
/// nearly true for m much larger than P. O(gap * 2^d), not for hot paths. @pre as above
[[nodiscard]] double stable_memory(stable_size size, std::uint64_t gap);

/// The pace that keeps the rate at `rate`: stable_rate solved for P, rounded up, so that the rate
/// is not exceeded; but at most all cells per insert, which the lowest rates would not do with.
/// @pre cells > probes > 0, cell_bits as above, 0 < rate < 1
[[nodiscard]] stable_size stable_size_for(std::uint64_t cells,
                                          unsigned cell_bits,
                                          unsigned probes,
                                          double rate) noexcept;

/// Memory    cells * cell_bits / 8 bytes, rounded up to words of 8.
/// Threads   one, or any number that only ask.
/// Cost      an insert writes probes + decrements cells.
/// Errs      both ways: see above.
class stable_bloom {
public:
    /// The same seed and inserts give the same filter, bit for bit: chance is a generator of its
    /// own (SplitMix64), begun at `seed`. Whoever wants keys not to be made forgotten on purpose
    /// gives a seed that nobody knows.
    /// @pre size's members > 0, cell_bits 1, 2, 4 or 8, probes and decrements at most cells,
    ///      cells < 2^48
    /// @throws std::bad_alloc
    stable_bloom(stable_size size, std::uint64_t seed);

    void insert(key_hash key) noexcept { (void)insert_and_test(key); }

    /// Inserts, and returns what may_contain would have returned before.
    bool insert_and_test(key_hash key) noexcept;

    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

    /// Every cell zero; chance goes on from where it is.
    void clear() noexcept;

    [[nodiscard]] const stable_size& size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }

    /// Cells that are zero, of size().cells. O(cells).
    [[nodiscard]] std::uint64_t zeroes() const noexcept;

private:
    [[nodiscard]] std::uint64_t cell(std::uint64_t place) const noexcept;
    [[nodiscard]] unsigned offset_of(std::uint64_t place) const noexcept;
    void decay() noexcept;

    stable_size size_;
    std::uint64_t state_;  // of chance
    std::uint64_t full_;   // 2^d - 1
    unsigned shift_;       // cells per word, as a power of two
    std::vector<std::uint64_t> words_;
};

}  // namespace reprise::filter
