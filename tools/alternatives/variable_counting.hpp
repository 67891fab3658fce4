#pragma once
// A variable-increment counting Bloom filter (Rottenstreich, Kanizo, Keslassy: "The
// Variable-Increment Counting Bloom Filter", INFOCOM 2012; its VI-CBF): a key adds not one to each
// of its counters but a number in [L, 2L-1] of its own choice.
//
// A query then looks at more than zero or not: a counter c cannot hold an increment v when
// 0 < c - v < L, since nothing smaller than L was ever added; nor when c < v. So fewer counters err
// as seldom as more that count by ones, at more bits a counter.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"

#include <array>
#include <cstdint>

namespace reprise::alternatives {

struct variable_counting_size {
    std::uint64_t counters = 0;
    unsigned probes = 0;  ///< 1 to 16
    unsigned least = 4;   ///< L: increments are L to 2L - 1; a power of two, 1 to 16
    unsigned bits = 6;    ///< of a counter; it sticks at 2^bits - 1. At most 16
};

/// The fewest counters, with their best number of probes, for `rate`. @pre keys > 0, 0 < rate < 1
[[nodiscard]] variable_counting_size variable_counting_size_for(std::uint64_t keys,
                                                                double rate,
                                                                unsigned least = 4,
                                                                unsigned bits = 6) noexcept;

/// (1 - q0 - q1 (L-1)/L - q2 (L-1)(L+1)/(6 L^2))^k, q_j being the chance that j of k * keys
/// increments met in a counter: one that holds none says no, one that holds one says no unless
/// the increments are equal, of two with excesses a and b over L, and a stranger's v, it says no
/// when a + b < v; from three on it never does. The paper's Theorem 2 in its binomial form.
[[nodiscard]] double variable_counting_rate(variable_counting_size size, double keys) noexcept;

/// Memory    counters * bits / 8 bytes.
/// Threads   one; const members at once by any number.
/// Errs      towards yes, at variable_counting_rate; never no for a key inserted and not erased, as
///           long as nothing is erased that was not inserted.
class variable_counting {
public:
    static constexpr unsigned most_probes = 16;

    /// @pre as variable_counting_size says, and 2 * (2L - 1) < 2^bits @throws std::bad_alloc
    explicit variable_counting(variable_counting_size size);

    void insert(filter::key_hash key) noexcept;
    /// False, and nothing has changed, when the key is certainly not in. Counters that stick stay.
    bool erase(filter::key_hash key) noexcept;
    [[nodiscard]] bool may_contain(filter::key_hash key) const noexcept;
    void clear() noexcept { counters_.clear(); }

    /// Counters that stick: they say maybe to everything until clear. O(counters).
    [[nodiscard]] std::uint64_t stuck() const noexcept;
    [[nodiscard]] variable_counting_size size() const noexcept { return size_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return counters_.bytes(); }

    /// Equal counter for counter.
    bool operator==(const variable_counting& other) const noexcept {
        return counters_ == other.counters_;
    }

private:
    struct increment {
        std::uint64_t place;
        std::uint32_t amount;
    };
    /// A key's increments, each place once: a place that repeats keeps its first amount.
    struct increments {
        std::array<increment, most_probes> each;
        unsigned count = 0;
    };
    [[nodiscard]] increments increments_of(filter::key_hash key) const noexcept;
    [[nodiscard]] bool may_hold(increment one) const noexcept;

    variable_counting_size size_;
    cells counters_;
};

}  // namespace reprise::alternatives
