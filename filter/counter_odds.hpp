#pragma once
// How high a counting filter's counters go: how many will stick, and how high the highest one is.
//
// A counter's value after n keys of k places in m is binomial: n * k trials with chance 1 / m. So
// the mean number that reach a height is exact, whatever the counters have to do with one another;
// only the height of the highest one depends on that, and is given as a bound and as a mean.
//
// All functions are pure: any thread.

#include "filter/sizing.hpp"

#include <cstdint>

namespace reprise::filter {

/// The chance that the counter of one given place is `height` or more: the binomial's tail, summed
/// without cancellation. @pre size.bits > 1, size.probes > 0,
/// keys * probes / bits < 10,000
[[nodiscard]] double counter_tail(bloom_size size, std::uint64_t keys, unsigned height) noexcept;

/// The expected number of places whose counter is `height` or more, that is, of overflows when
/// counters end below it: bits * counter_tail. Exact. counting_bloom's counters stick at 15.
/// @pre as above
[[nodiscard]] double expected_overflows(bloom_size size,
                                        std::uint64_t keys,
                                        unsigned height) noexcept;

/// Summary Cache's bound (Fan, Cao, Almeida, Broder, ToN 2000) on the chance that any counter is
/// `height` or more: bits * (e * keys * probes / (height * bits))^height, at most 1. With the best
/// number of probes, keys * probes / bits = ln 2 and a height of 16 it is 1.37e-15 * bits. About
/// twenty times too high there, and simple. @pre as above, height > 0
[[nodiscard]] double overflow_bound(bloom_size size, std::uint64_t keys, unsigned height) noexcept;

/// The expected height of the highest counter: the sum over heights of the chance that one is
/// reached, which is 1 up to the mean and beyond it taken as 1 - (1 - counter_tail)^bits. That is
/// for independent counters; as these are negatively associated (Dubhashi and Ranjan, "Balls and
/// Bins: A Study in Negative Dependence", 1998) the truth is no lower, and at most the same sum
/// with the union bound, min(1, expected_overflows). @pre as above
[[nodiscard]] double expected_highest(bloom_size size, std::uint64_t keys) noexcept;

}  // namespace reprise::filter
