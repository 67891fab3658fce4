#pragma once
// Latencies in log-linear buckets: every power of two is cut into eight equal parts, so that a
// value is known to within an eighth of itself, from a microsecond to more than an hour, in 240
// cells and without a comparison per bucket (the idea of HdrHistogram, with one digit of three
// bits). Values below 16 have a bucket each; what is longer than the range falls in the last one.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace reprise::proxy {

/// The arithmetic of the buckets, apart from where the counts live. All in whole microseconds.
struct latency_buckets {
    static constexpr unsigned digit_bits = 3;
    static constexpr std::size_t parts = std::size_t{1} << digit_bits;
    static constexpr unsigned top_bit = 31;  ///< 2^32 microseconds: 71 minutes
    static constexpr std::size_t count = 2 * parts + (top_bit - digit_bits) * parts;

    [[nodiscard]] static constexpr std::size_t index_of(std::uint64_t microseconds) noexcept {
        if (microseconds < 2 * parts) {
            return static_cast<std::size_t>(microseconds);
        }
        const auto top = static_cast<unsigned>(std::bit_width(microseconds)) - 1;
        if (top > top_bit) {
            return count - 1;
        }
        const auto shift = top - digit_bits;
        return static_cast<std::size_t>((std::uint64_t{shift} << digit_bits) +
                                        (microseconds >> shift));
    }

    /// The least value that falls in bucket `index`; that of `count` is where the range ends.
    [[nodiscard]] static constexpr std::uint64_t lower_bound_of(std::size_t index) noexcept {
        if (index < 2 * parts) {
            return index;
        }
        const auto shift = index / parts - 1;
        return (std::uint64_t{index % parts} + parts) << shift;
    }
};

/// Counts by bucket, and the sum for the mean. `Cell` is `counter` where one thread writes, or a
/// plain number in what a reader has added up. How many there are is the sum of the buckets: a
/// count of its own could disagree with them while a thread writes.
template <class Cell>
struct basic_histogram {
    std::array<Cell, latency_buckets::count> buckets{};
    Cell sum_microseconds{};
};

using histogram_totals = basic_histogram<std::uint64_t>;

[[nodiscard]] std::uint64_t count_of(const histogram_totals& histogram) noexcept;

/// The value below which the fraction `quantile` (0 to 1) of all lies, in microseconds: the middle
/// of its bucket. 0 when nothing was counted. O(buckets).
[[nodiscard]] double quantile_of(const histogram_totals& histogram, double quantile) noexcept;

/// How many were shorter than 2^`power` microseconds (4 <= power <= 32, where buckets meet).
[[nodiscard]] std::uint64_t count_below(const histogram_totals& histogram, unsigned power) noexcept;

}  // namespace reprise::proxy
