#pragma once
// How many keys made these bits, and how many two filters have in common: from the bits alone.
//
// Swamidass and Baldi ("Mathematical Correction for Fingerprint Similarity Measures to Improve
// Chemical Retrieval", 2007): n keys leave (1 - 1/m)^(k n) of m bits off in the mean, so
// n = ln(share off) / (k ln(1 - 1/m)). The union of two filters is the filter of their union, so
// the same says how many keys it has, and inclusion and exclusion give intersection and difference.
// The formula of Papapetrou, Siberski and Nejdl ("Cardinality estimation and dynamic length
// adaptation for Bloom filters", 2010) for the intersection, from the bits that both have, comes to
// the same: the counts of bits on in A, in B and in either determine the count in both.
//
// Standard errors are by the delta method over the occupancy of m places (for one filter that is
// Whang, Vander-Zanden and Taylor, "A Linear-Time Probabilistic Counting Algorithm", 1990, with k
// balls per key; estimators.cpp derives those of pairs). They are good for filters at least a few
// hundred bits large and not nearly full; the intersection's does not shrink with the intersection,
// so that a small one between large filters is lost in it.

#include "filter/counting.hpp"
#include "filter/digest.hpp"
#include "filter/filter_errc.hpp"
#include "filter/partitioned.hpp"
#include "filter/standard.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace reprise::filter {

/// A number of distinct keys, never negative. The truth is within 1.96 standard errors in 95 % of
/// cases and within 3 in 99.7 %.
struct key_estimate {
    double keys = 0;
    /// One sigma. Infinite when all bits of a filter are on: then `keys` is the least that it is
    /// likely to have.
    double standard_error = 0;
};

/// For a filter of which only the number of bits on is known; standard, partitioned or counting.
/// @pre bits > 1, probes > 0, bits_on <= bits
[[nodiscard]] key_estimate estimate_keys(bloom_size size, std::uint64_t bits_on) noexcept;

/// O(bits), but O(1) for a counting filter, whose multiplicities do not count. A filter that was
/// intersected has bits of no key: what is estimated is then how many keys would make as many.
[[nodiscard]] key_estimate estimate_keys(const standard_bloom& filter) noexcept;
[[nodiscard]] key_estimate estimate_keys(const partitioned_bloom& filter) noexcept;
[[nodiscard]] key_estimate estimate_keys(const counting_bloom& filter) noexcept;

/// Two filters side by side: what the estimates of pairs need, counted in one pass.
struct filter_pair {
    bloom_size size;
    std::uint64_t a_on = 0;       ///< bits on in the first
    std::uint64_t b_on = 0;       ///< in the second
    std::uint64_t either_on = 0;  ///< in one or both
};

/// O(bits). @returns sizes_differ or probes_differ
[[nodiscard]] boost::system::result<filter_pair> compare(const standard_bloom& a,
                                                         const standard_bloom& b) noexcept;
[[nodiscard]] boost::system::result<filter_pair> compare(const partitioned_bloom& a,
                                                         const partitioned_bloom& b) noexcept;
/// The words of two filters of one size, for example of two digests. @pre as many words in each
[[nodiscard]] filter_pair compare(bloom_size size,
                                  std::span<const std::uint64_t> a,
                                  std::span<const std::uint64_t> b) noexcept;
/// Two digests. If sizes differ the larger is folded to the smaller, as if it had been made so:
/// `size` is the smaller. O(bits), no allocation. None where their bits say nothing of each other:
/// another secret, other probes, a layout that is not `standard`, or sizes of which one is no
/// multiple of the other in whole words.
[[nodiscard]] std::optional<filter_pair> compare(const digest& a, const digest& b) noexcept;

/// Keys in one or both.
[[nodiscard]] key_estimate estimate_union(const filter_pair& pair) noexcept;
/// Keys in both.
[[nodiscard]] key_estimate estimate_intersection(const filter_pair& pair) noexcept;
/// Keys in the first that are not in the second.
[[nodiscard]] key_estimate estimate_difference(const filter_pair& pair) noexcept;

}  // namespace reprise::filter
