#include "filter/counter_odds.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace reprise::filter {

namespace {

/// Balls thrown: a key throws as many as it has probes.
double balls(bloom_size size, std::uint64_t keys) noexcept {
    return static_cast<double>(keys) * size.probes;
}

}  // namespace

double counter_tail(bloom_size size, std::uint64_t keys, unsigned height) noexcept {
    assert(size.bits > 1 && size.probes > 0);
    if (height == 0) {
        return 1;
    }
    const long double trials = balls(size, keys);
    const long double others = static_cast<long double>(size.bits) - 1;
    if (height > trials) {
        return 0;
    }
    // The chance of exactly h is that of h - 1 times (trials - h + 1) / (h * (bits - 1)). From the
    // chance of none upwards no logarithm of a factorial is needed, in which the digits of large
    // numbers of keys would be lost; and all terms are positive. Far above the mean they are too
    // small for any number, and so are all that follow.
    long double exactly = std::exp(trials * std::log1p(-1 / (others + 1)));
    long double tail = 0;
    for (unsigned h = 0; h <= trials && exactly > 0; ++h) {
        if (h >= height) {
            tail += exactly;
            if (exactly < tail * 1e-20L) {
                break;
            }
        }
        exactly *= (trials - h) / ((h + 1) * others);
    }
    return static_cast<double>(std::min(tail, 1.0L));
}

double expected_overflows(bloom_size size, std::uint64_t keys, unsigned height) noexcept {
    return static_cast<double>(size.bits) * counter_tail(size, keys, height);
}

double overflow_bound(bloom_size size, std::uint64_t keys, unsigned height) noexcept {
    assert(size.bits > 0 && size.probes > 0 && height > 0);
    const auto bits = static_cast<double>(size.bits);
    const auto base = std::exp(1.0) * balls(size, keys) / (height * bits);
    return std::min(1.0, bits * std::pow(base, height));
}

double expected_highest(bloom_size size, std::uint64_t keys) noexcept {
    const auto bits = static_cast<double>(size.bits);
    // However the balls fall, one place gets as many as the mean.
    const double sure = std::ceil(balls(size, keys) / bits);
    double sum = sure;
    for (auto height = static_cast<unsigned>(sure) + 1;; ++height) {
        const auto tail = counter_tail(size, keys, height);
        if (bits * tail < 1e-12) {
            return sum;
        }
        sum += -std::expm1(bits * std::log1p(-tail));
    }
}

}  // namespace reprise::filter
