#pragma once
// Spans of time in log-linear buckets: every power of two nanoseconds is cut into 32 equal parts, so
// that a span is known to within 3 %, from a nanosecond to 68 seconds, in 1,024 cells. The longest
// is kept exactly beside. (proxy/base/histogram.hpp counts latencies to within an eighth: too
// coarse where 5 % more is to be found.)
//
// It lives in memory that two processes share: the cells are atomic words without a constructor
// that matters, since all zero is an empty one.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace reprise::bench {

/// The arithmetic of the buckets, in whole nanoseconds.
struct span_buckets {
    static constexpr unsigned digit_bits = 5;
    static constexpr std::size_t parts = std::size_t{1} << digit_bits;
    static constexpr unsigned top_bit = 35;
    static constexpr std::size_t count = 2 * parts + (top_bit - digit_bits) * parts;

    [[nodiscard]] static constexpr std::size_t index_of(std::uint64_t span) noexcept {
        if (span < 2 * parts) {
            return static_cast<std::size_t>(span);
        }
        const auto top = static_cast<unsigned>(std::bit_width(span)) - 1;
        if (top > top_bit) {
            return count - 1;
        }
        const auto shift = top - digit_bits;
        return static_cast<std::size_t>((std::uint64_t{shift} << digit_bits) + (span >> shift));
    }

    /// The least span that falls in bucket `index`; that of `count` is where the range ends.
    [[nodiscard]] static constexpr std::uint64_t lower_bound_of(std::size_t index) noexcept {
        if (index < 2 * parts) {
            return index;
        }
        const auto shift = index / parts - 1;
        return (std::uint64_t{index % parts} + parts) << shift;
    }
};

/// Counts of spans. Threads: one writes (note, clear), any number read; what a reader sees of a
/// histogram that is being written is off by the spans noted meanwhile.
class span_histogram {
public:
    void note(std::uint64_t span) noexcept {
        add(cells_[span_buckets::index_of(span)], 1);
        add(sum_, span);
        if (span > longest_.load(std::memory_order_relaxed)) {
            longest_.store(span, std::memory_order_relaxed);
        }
    }

    void clear() noexcept {
        for (auto& cell : cells_) {
            cell.store(0, std::memory_order_relaxed);
        }
        sum_.store(0, std::memory_order_relaxed);
        longest_.store(0, std::memory_order_relaxed);
    }

    /// Adds what `other` has counted. The caller is the one that writes here.
    void take_in(const span_histogram& other) noexcept {
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            add(cells_[i], other.cells_[i].load(std::memory_order_relaxed));
        }
        add(sum_, other.sum_.load(std::memory_order_relaxed));
        longest_.store(std::max(longest(), other.longest()), std::memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t count() const noexcept {
        std::uint64_t all = 0;
        for (const auto& cell : cells_) {
            all += cell.load(std::memory_order_relaxed);
        }
        return all;
    }

    /// Nanoseconds.
    [[nodiscard]] std::uint64_t longest() const noexcept {
        return longest_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t sum() const noexcept {
        return sum_.load(std::memory_order_relaxed);
    }

    /// The span, in nanoseconds, that the fraction `quantile` (0 to 1) of all does not exceed: the
    /// upper end of its bucket, and never more than the longest. 0 when nothing was counted.
    [[nodiscard]] std::uint64_t quantile(double quantile) const noexcept {
        const auto all = count();
        const auto wanted = std::ceil(std::clamp(quantile, 0.0, 1.0) * static_cast<double>(all));
        const auto rank = std::max<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1);
        std::uint64_t passed = 0;
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            passed += cells_[i].load(std::memory_order_relaxed);
            if (passed >= rank) {
                return std::min(span_buckets::lower_bound_of(i + 1) - 1, longest());
            }
        }
        return 0;
    }

    /// How many spans lie in buckets at or above that of `least`.
    [[nodiscard]] std::uint64_t count_from(std::uint64_t least) const noexcept {
        std::uint64_t all = 0;
        for (auto i = span_buckets::index_of(least); i < cells_.size(); ++i) {
            all += cells_[i].load(std::memory_order_relaxed);
        }
        return all;
    }

private:
    using cell = std::atomic<std::uint64_t>;
    static_assert(cell::is_always_lock_free);

    static void add(cell& to, std::uint64_t more) noexcept {  // one writer: no locked instruction
        to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }

    std::array<cell, span_buckets::count> cells_{};
    cell sum_{0}, longest_{0};
};

}  // namespace reprise::bench
