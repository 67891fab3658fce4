// See sizing.hpp. The searches below lean on one fact each: a rate falls as bits grow and rises as
// keys do.

#include "filter/sizing.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace reprise::filter {

namespace {

/// The least value in [low, high] for which `holds` is true, given that it stays true from there
/// on; `high` when it is true for none.
template <class Holds>
std::uint64_t least(std::uint64_t low, std::uint64_t high, Holds holds) {
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

/// More keys than any memory has bits for.
constexpr std::uint64_t most_keys = std::uint64_t{1} << 52;

}  // namespace

double classic_rate(bloom_size size, double keys) noexcept {
    assert(size.bits > 0 && size.probes > 0);
    const double probes = size.probes;
    return std::pow(-std::expm1(-probes * keys / static_cast<double>(size.bits)), probes);
}

unsigned best_probes(std::uint64_t bits, double keys) noexcept {
    assert(bits > 0 && keys > 0);
    // The continuous optimum is a minimum of a function falling before and rising after it, so the
    // integral one is next to it.
    const double ideal = std::min(static_cast<double>(bits) / keys * std::log(2.0), 255.0);
    const auto below = std::max(1u, static_cast<unsigned>(ideal));
    const auto above = below + 1;
    return classic_rate({bits, below}, keys) <= classic_rate({bits, above}, keys) ? below : above;
}

bloom_size classic_size(std::uint64_t keys, double rate) noexcept {
    assert(keys > 0 && rate > 0 && rate < 1);
    const auto count = static_cast<double>(keys);
    // With a whole number of probes the bits needed follow directly from the rate; the best number
    // is next to log2(1 / rate).
    const auto bits_with = [&](unsigned probes) {
        const double load = -std::log1p(-std::pow(rate, 1.0 / probes));
        return static_cast<std::uint64_t>(std::ceil(probes * count / load));
    };
    const auto below = std::max(1u, static_cast<unsigned>(-std::log2(rate)));
    const auto above = below + 1;
    return bits_with(below) <= bits_with(above) ? bloom_size{bits_with(below), below}
                                                : bloom_size{bits_with(above), above};
}

std::uint64_t classic_capacity(bloom_size size, double rate) noexcept {
    assert(size.bits > 0 && size.probes > 0 && rate > 0 && rate < 1);
    const double load = -std::log1p(-std::pow(rate, 1.0 / size.probes));
    return static_cast<std::uint64_t>(static_cast<double>(size.bits) * load / size.probes);
}

double blocked_rate(std::uint64_t blocks, double keys) noexcept {
    assert(blocks > 0 && keys >= 0);
    // With q = 63/64, expand (1 - q^i)^8 into the sum over j of (-1)^j C(8, j) q^(i j). For a
    // binomial i with `keys` trials of probability 1 / blocks, the mean of q^(i j) is
    // (1 - (1 - q^j) / blocks)^keys. The terms alternate and reach 70, which in long double leaves
    // about 1e-17 of absolute error.
    constexpr long double q = 1.0L - 1.0L / lane_bits;
    long double sum = 1;
    long double choose = 1;
    long double power = 1;
    for (unsigned j = 1; j <= lanes; ++j) {
        choose = -choose * static_cast<long double>(lanes - j + 1) / j;
        power *= q;
        sum += choose * std::exp(static_cast<long double>(keys) *
                                 std::log1p(-(1 - power) / static_cast<long double>(blocks)));
    }
    return static_cast<double>(std::clamp(sum, 0.0L, 1.0L));
}

std::uint64_t blocks_for(std::uint64_t keys, double rate) noexcept {
    assert(keys > 0 && rate > 0 && rate < 1);
    const auto count = static_cast<double>(keys);
    return least(1, UINT32_MAX, [&](auto blocks) { return blocked_rate(blocks, count) <= rate; });
}

std::uint64_t blocked_capacity(std::uint64_t blocks, double rate) noexcept {
    assert(blocks > 0 && rate > 0 && rate < 1);
    return least(
               1,
               most_keys,
               [&](auto keys) { return blocked_rate(blocks, static_cast<double>(keys)) > rate; }) -
           1;
}

}  // namespace reprise::filter
