// See estimators.hpp. The errors, derived once for all three estimates of pairs:
//
// Each is m/k times a sum of logarithms of shares of places that are off: p in the first filter, q
// in the second, u in both. Were the numbers of balls Poisson, places would be independent, and by
// the delta method ln p, ln q, ln u have variances (1/p - 1)/m and so on and covariances
//     cov(ln p, ln u) = (1/p - 1)/m    (a place off in the union is off in the first)
//     cov(ln p, ln q) = (u/(p q) - 1)/m
// The numbers are fixed instead: with c the true value of what is estimated, of which c k balls
// move the estimate by 1/k each, that takes c/k off the variance (Poisson minus what the varying
// number contributes). So, with c estimated:
//     union         m/k^2 (1/u - 1) - c/k
//     intersection  m/k^2 (1/u - 1/p - 1/q + 2 u/(p q) - 1) - c/k
//     difference    m/k^2 (1/u - 1/q) - c/k
// A partitioned filter has k occupancies of m/k places with n balls each; the same sums come out.

#include "filter/estimators.hpp"

#include "filter/bit_words.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

namespace reprise::filter {

namespace {

/// The share of bits that are off. None off says only "very many"; one is the most it can tell.
double share_off(bloom_size size, std::uint64_t on) noexcept {
    assert(size.bits > 1 && size.probes > 0 && on <= size.bits);
    return static_cast<double>(std::max<std::uint64_t>(1, size.bits - on)) /
           static_cast<double>(size.bits);
}

/// The keys that leave this share of bits off.
double keys_for(bloom_size size, double off) noexcept {
    return std::log(off) / (size.probes * std::log1p(-1 / static_cast<double>(size.bits)));
}

/// An estimate from its value and the bracket of its variance in the derivation above. A filter
/// that is full has no error that one could state.
key_estimate judged(bloom_size size, double keys, double bracket, bool full) noexcept {
    keys = std::max(0.0, keys);
    if (full) {
        return {keys, std::numeric_limits<double>::infinity()};
    }
    const double probes = size.probes;
    const double variance = static_cast<double>(size.bits) / (probes * probes) * bracket -
                            keys / probes;
    return {keys, std::sqrt(std::max(0.0, variance))};
}

}  // namespace

key_estimate estimate_keys(bloom_size size, std::uint64_t bits_on) noexcept {
    const double off = share_off(size, bits_on);
    return judged(size, keys_for(size, off), 1 / off - 1, bits_on == size.bits);
}

key_estimate estimate_keys(const standard_bloom& filter) noexcept {
    return estimate_keys(filter.size(), filter.bits_on());
}

key_estimate estimate_keys(const partitioned_bloom& filter) noexcept {
    return estimate_keys(filter.size(), filter.bits_on());
}

key_estimate estimate_keys(const counting_bloom& filter) noexcept {
    return estimate_keys(filter.size(), filter.bits_on());
}

boost::system::result<filter_pair> compare(const standard_bloom& a,
                                           const standard_bloom& b) noexcept {
    if (const auto checked = combinable(a.size(), b.size()); !checked) {
        return checked.error();
    }
    return compare(a.size(), a.words(), b.words());
}

boost::system::result<filter_pair> compare(const partitioned_bloom& a,
                                           const partitioned_bloom& b) noexcept {
    if (const auto checked = combinable(a.size(), b.size()); !checked) {
        return checked.error();
    }
    return compare(a.size(), a.words(), b.words());
}

filter_pair compare(bloom_size size,
                    std::span<const std::uint64_t> a,
                    std::span<const std::uint64_t> b) noexcept {
    assert(a.size() == b.size());
    filter_pair pair{.size = size};
    for (std::size_t i = 0; i < a.size(); ++i) {
        pair.a_on += static_cast<unsigned>(std::popcount(a[i]));
        pair.b_on += static_cast<unsigned>(std::popcount(b[i]));
        pair.either_on += static_cast<unsigned>(std::popcount(a[i] | b[i]));
    }
    return pair;
}

std::optional<filter_pair> compare(const digest& a, const digest& b) noexcept {
    const auto& one = a.shape();
    const auto& other = b.shape();
    const auto least = std::min(one.bits, other.bits);
    const bool folds = one.bits == other.bits ||
                       (least % 64 == 0 && one.bits % least == 0 && other.bits % least == 0);
    if (a.stamp().seed != b.stamp().seed || one.layout != digest_layout::standard ||
        other.layout != digest_layout::standard || one.probes != other.probes || !folds ||
        least < 2) {
        return std::nullopt;
    }
    const auto words = std::min(a.words().size(), b.words().size());
    const auto folded = [words](std::span<const std::uint64_t> of, std::size_t at) {
        std::uint64_t word = 0;
        for (; at < of.size(); at += words) {
            word |= of[at];
        }
        return word;
    };
    filter_pair pair{.size = {.bits = least, .probes = one.probes}};
    for (std::size_t i = 0; i < words; ++i) {
        const auto in_a = folded(a.words(), i);
        const auto in_b = folded(b.words(), i);
        pair.a_on += static_cast<unsigned>(std::popcount(in_a));
        pair.b_on += static_cast<unsigned>(std::popcount(in_b));
        pair.either_on += static_cast<unsigned>(std::popcount(in_a | in_b));
    }
    return pair;
}

key_estimate estimate_union(const filter_pair& pair) noexcept {
    return estimate_keys(pair.size, pair.either_on);
}

key_estimate estimate_intersection(const filter_pair& pair) noexcept {
    const double p = share_off(pair.size, pair.a_on);
    const double q = share_off(pair.size, pair.b_on);
    const double u = share_off(pair.size, pair.either_on);
    return judged(pair.size,
                  keys_for(pair.size, p) + keys_for(pair.size, q) - keys_for(pair.size, u),
                  1 / u - 1 / p - 1 / q + 2 * u / (p * q) - 1,
                  pair.either_on == pair.size.bits);
}

key_estimate estimate_difference(const filter_pair& pair) noexcept {
    const double q = share_off(pair.size, pair.b_on);
    const double u = share_off(pair.size, pair.either_on);
    return judged(pair.size,
                  keys_for(pair.size, u) - keys_for(pair.size, q),
                  1 / u - 1 / q,
                  pair.either_on == pair.size.bits);
}

}  // namespace reprise::filter
