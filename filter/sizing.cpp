// See sizing.hpp. The searches below lean on one fact each: a rate falls as bits grow and rises as
// keys do.

#include "filter/sizing.hpp"

#include "filter/lane_rates.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace reprise::filter {

namespace {

/// The largest double below 2^63, from where on no filter has its bits.
constexpr double most_bits = 0x1p63 - 1024;

/// As an integer from `least` to most_bits. A tiny rate with few probes asks for 1e300 bits.
std::uint64_t limited(double count, double least, double most = most_bits) noexcept {
    return static_cast<std::uint64_t>(std::clamp(count, least, most));
}

/// -ln(1 - rate^(1/probes)): how many balls a place may get in the mean, when a query of `probes`
/// places is to find them all taken with chance `rate`. Finite though a root of nearly 1 be 1.
double load_for(double rate, unsigned probes) noexcept {
    constexpr double below_one = 1 - 0x1p-53;
    return -std::log1p(-std::min(std::pow(rate, 1.0 / probes), below_one));
}

/// The fewest bits over all numbers of probes, `bits_with` saying how many each needs. For many
/// keys the best number is next to log2(1 / rate); for few, whole bits make it a smaller one.
template <class BitsWith>
bloom_size fewest_bits(double rate, BitsWith bits_with) {
    const auto ideal = static_cast<unsigned>(-std::log2(rate));
    bloom_size best;
    for (unsigned probes = 1; probes <= ideal + 2; ++probes) {
        const std::uint64_t bits = bits_with(probes);
        if (best.bits == 0 || bits < best.bits) {
            best = {bits, probes};
        }
    }
    return best;
}

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
    return fewest_bits(rate, [&](unsigned probes) {
        return limited(std::ceil(probes * count / load_for(rate, probes)), 1);
    });
}

std::uint64_t classic_capacity(bloom_size size, double rate) noexcept {
    assert(size.bits > 0 && size.probes > 0 && rate > 0 && rate < 1);
    return limited(static_cast<double>(size.bits) * load_for(rate, size.probes) / size.probes, 0);
}

double upper_rate(bloom_size size, double keys) noexcept {
    assert(size.bits > 1 && size.probes > 0);
    const double probes = size.probes;
    const double load = probes * (keys + 0.5) / static_cast<double>(size.bits - 1);
    return std::pow(-std::expm1(-load), probes);
}

bloom_size upper_size(std::uint64_t keys, double rate) noexcept {
    assert(keys > 0 && rate > 0 && rate < 1);
    const auto count = static_cast<double>(keys) + 0.5;
    return fewest_bits(rate, [&](unsigned probes) {
        return 1 + limited(std::ceil(probes * count / load_for(rate, probes)), 1);
    });
}

std::uint64_t upper_capacity(bloom_size size, double rate) noexcept {
    assert(size.bits > 1 && size.probes > 0 && rate > 0 && rate < 1);
    const double load = load_for(rate, size.probes);
    const double keys = static_cast<double>(size.bits - 1) * load / size.probes - 0.5;
    return limited(keys, 0);
}

double alias_rate(std::uint64_t bits, double keys) noexcept {
    assert(bits > 0 && keys >= 0);
    if (keys <= 0) {
        return 0;
    }
    const auto sequences = static_cast<double>(bits) * static_cast<double>(bits);
    return -std::expm1(keys * std::log1p(-1 / sequences));
}

double partitioned_rate(bloom_size size, double keys) noexcept {
    assert(size.probes > 0 && size.bits > 0 && size.bits % size.probes == 0);
    if (keys <= 0) {
        return 0;
    }
    const double chance = size.probes / static_cast<double>(size.bits);
    return std::pow(-std::expm1(keys * std::log1p(-chance)), size.probes);
}

bloom_size partitioned_size(std::uint64_t keys, double rate) noexcept {
    assert(keys > 0 && rate > 0 && rate < 1);
    const auto count = static_cast<double>(keys);
    return fewest_bits(rate, [&](unsigned probes) {
        // (1 - 1/s)^keys = e^-load, solved for the bits s of one partition.
        const double chance = -std::expm1(-load_for(rate, probes) / count);
        return probes * limited(std::ceil(1 / chance), 1, most_bits / probes);
    });
}

std::uint64_t partitioned_capacity(bloom_size size, double rate) noexcept {
    assert(size.bits > size.probes && size.probes > 0 && rate > 0 && rate < 1);
    const double chance = size.probes / static_cast<double>(size.bits);
    return limited(load_for(rate, size.probes) / -std::log1p(-chance), 0);
}

double blocked_rate(std::uint64_t blocks, double keys) noexcept {
    assert(blocks > 0 && keys >= 0);
    return lanes_rate(lanes, lane_bits, blocks, keys);
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
