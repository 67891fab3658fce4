#pragma once
// A d-left counting filter (Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese: "An Improved
// Construction for Counting Bloom Filters", ESA 2006): remainders with small counters, in the least
// loaded of d buckets.
//
// A key is hashed once, to a value in [0, buckets * 2^remainder_bits), a bucket and a remainder; a
// permutation for each of the d tables makes another such pair of it. Keys that meet in one table
// so have equal values and meet in all: a remainder that is found is the key's, and erasing cannot
// take another's away, which it could with d independent hashes (section 3 of the paper). Its
// permutations are multiplications modulo a power of two; ours turn the bucket by a hash of the
// remainder and keep that: as one to one, cheaper, and any number of buckets will do.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"

#include <array>
#include <cstdint>

namespace reprise::alternatives {

struct dleft_size {
    std::uint64_t buckets = 0;    ///< of each of the four tables, at most 2^32
    unsigned remainder_bits = 0;  ///< 1 to 30
};

/// Buckets filled with six of eight cells on average, as in the paper, at which all four of a key's
/// being full was never seen, and the fewest bits for `rate`.
/// @pre keys > 0, 0 < rate < 1
[[nodiscard]] dleft_size dleft_size_for(std::uint64_t keys, double rate) noexcept;

/// 1 - (1 - 1 / (buckets * 2^remainder_bits))^keys: a stranger is taken for a key whose value it
/// shares. At six a bucket that is 24 * 2^-remainder_bits.
[[nodiscard]] double dleft_rate(dleft_size size, double keys) noexcept;

/// Memory    4 * buckets * 8 * (remainder_bits + 2) / 8 bytes.
/// Threads   one; const members at once by any number.
/// Errs      towards yes, at dleft_rate; never no for a key inserted and not erased. A cell counts
///           to 3 and sticks there, as a counter of a counting Bloom filter does at 15, but at
///           the third copy of one key: for sets, whose keys are inserted once.
class dleft_filter {
public:
    static constexpr unsigned tables = 4;
    static constexpr unsigned depth = 8;  ///< cells of a bucket
    static constexpr std::uint32_t stuck = 3;

    /// @pre as dleft_size says @throws std::bad_alloc
    explicit dleft_filter(dleft_size size);

    /// False when all four buckets are full, and nothing has changed.
    [[nodiscard]] bool insert(filter::key_hash key) noexcept;
    /// False, and nothing has changed, when the key is certainly not in.
    bool erase(filter::key_hash key) noexcept;
    [[nodiscard]] bool may_contain(filter::key_hash key) const noexcept;
    void clear() noexcept;

    /// Cells in use: distinct values.
    [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
    [[nodiscard]] dleft_size size() const noexcept { return {buckets_, remainder_bits_}; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return cells_.bytes(); }

    /// Equal cell for cell.
    bool operator==(const dleft_filter& other) const noexcept { return cells_ == other.cells_; }

private:
    /// A key's bucket in each table, as the index of its first cell, and its remainder in all.
    struct places {
        std::array<std::uint64_t, tables> first;
        std::uint32_t remainder;
    };
    [[nodiscard]] places places_of(filter::key_hash key) const noexcept;
    /// The cell that holds the remainder, or cells_.count().
    [[nodiscard]] std::uint64_t find(const places& at) const noexcept;

    std::uint64_t buckets_;
    unsigned remainder_bits_;
    cells cells_;  // remainder above, count in the low two bits; count 0: empty
    std::uint64_t used_ = 0;
};

}  // namespace reprise::alternatives
