#pragma once
// The rate of filters whose keys own one block and set one bit in each word (lane) of it, whatever
// the widths, and the search that turns such a rate into a size. Internal to sizing.cpp and
// split_block.cpp.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace reprise::filter {

/// More keys than any memory has bits for.
inline constexpr std::uint64_t most_keys = std::uint64_t{1} << 52;

/// The least value in [low, high] for which `holds` is true, given that it stays true from there
/// on; `high` when it is true for none.
template <class Holds>
[[nodiscard]] std::uint64_t least(std::uint64_t low, std::uint64_t high, Holds holds) {
    while (low < high) {
        const auto middle = low + (high - low) / 2;
        if (holds(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/// The mean of (1 - q^i)^words over a block's number of keys i, q = 1 - 1 / word_bits: binomial,
/// `keys` trials of chance 1 / blocks. Expand the power into the sum over j of
/// (-1)^j C(words, j) q^(i j); the mean of q^(i j) is (1 - (1 - q^j) / blocks)^keys. With eight
/// words the terms alternate and reach 70, which in long double leaves about 1e-17 of absolute
/// error.
[[nodiscard]] inline double lanes_rate(unsigned words,
                                       unsigned word_bits,
                                       std::uint64_t blocks,
                                       double keys) noexcept {
    const long double q = 1.0L - 1.0L / word_bits;
    long double sum = 1;
    long double choose = 1;
    long double power = 1;
    for (unsigned j = 1; j <= words; ++j) {
        choose = -choose * static_cast<long double>(words - j + 1) / j;
        power *= q;
        sum += choose * std::exp(static_cast<long double>(keys) *
                                 std::log1p(-(1 - power) / static_cast<long double>(blocks)));
    }
    return static_cast<double>(std::clamp(sum, 0.0L, 1.0L));
}

}  // namespace reprise::filter
