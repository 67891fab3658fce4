#pragma once
// How long a fetch took, as what is stored keeps it: in seven bits, beside others of an entry, a
// response and a record on disk, so that no object grows by it.
//
//     0      not known: stored by a release that kept no time
//     1      100 us or less
//     2-126  9.6 % more with each, so at most 4.8 % off
//     127    10 s or more
//
// It is what the next hit spares: what a client would wait for the whole object, over a line of its
// own that costs nothing, were it not stored. So it runs from the request's being sent until the
// body's end, without the pauses in which the producer waited for slow clients or for the disk: a
// client is not to make an object dear by reading it slowly. Looking up a name and connecting are
// left out, for most misses find a connection that is open.
//
// - Confirmed by a 304, an object keeps the time of its fetch: evicted, it would have to be fetched
//   anew, whatever a validation takes.
// - From a sibling, it is the sibling's answer that took so long. The next miss would find it there
//   too, so what siblings hold is the first to leave here where all else is alike.
// - Those who joined a fetch waited for less, the later the less; what is kept is the whole of it.
//
// Ten seconds is the most that a fetch counts for, so that an origin which stalls on purpose gets no
// more room for its objects than the slowest that somebody would wait for: at the same size and
// as often asked for, such an object is worth 200 of 50 ms, and it is overtaken as they are.
//
// Header only: arithmetic.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace reprise::proxy::cache {

class packed_wait {
public:
    static constexpr unsigned bits = 7;
    static constexpr unsigned most_code = (1u << bits) - 1;
    static constexpr std::chrono::microseconds least{100}, most{10'000'000};

    /// Not known.
    packed_wait() = default;
    explicit packed_wait(std::chrono::microseconds took) noexcept
        : code_{took <= least  ? std::uint8_t{1}
                : took >= most ? std::uint8_t{most_code}
                               : static_cast<std::uint8_t>(
                                     1 + std::lround(std::log(static_cast<double>(took.count()) /
                                                              least.count()) /
                                                     std::log(step)))} {}

    /// As code() gave it; any other number is not known.
    [[nodiscard]] static packed_wait of_code(unsigned code) noexcept {
        packed_wait read;
        read.code_ = static_cast<std::uint8_t>(code <= most_code ? code : 0);
        return read;
    }
    [[nodiscard]] unsigned code() const noexcept { return code_; }
    [[nodiscard]] bool is_known() const noexcept { return code_ != 0; }
    /// 0 of one that is not known.
    [[nodiscard]] double seconds() const noexcept { return table[code_]; }
    [[nodiscard]] std::chrono::microseconds microseconds() const noexcept {
        return std::chrono::microseconds{whole_microseconds[code_]};
    }

    bool operator==(const packed_wait&) const = default;

private:
    static constexpr double step = 1.095676986044887;  // the 126th root of most / least
    static constexpr auto table = [] {
        std::array<double, most_code + 1> seconds{};
        double next = 1e-6 * least.count();
        for (std::size_t code = 1; code < most_code; ++code) {
            seconds[code] = next;
            next *= step;
        }
        seconds[most_code] = 1e-6 * most.count();
        return seconds;
    }();

    // Every hit adds one to what clients were spared.
    static constexpr auto whole_microseconds = [] {
        std::array<std::int32_t, most_code + 1> out{};
        for (std::size_t code = 0; code <= most_code; ++code) {
            out[code] = static_cast<std::int32_t>(table[code] * 1e6 + 0.5);
        }
        return out;
    }();

    std::uint8_t code_ = 0;
};

/// The longer of the two; what is not known is shorter than all else.
[[nodiscard]] inline packed_wait longer(packed_wait one, packed_wait other) noexcept {
    return packed_wait::of_code(std::max(one.code(), other.code()));
}

/// What a fetch took that nobody has timed, is guessed to be the mean of those that were: of about
/// the last 64.
///
/// Threads  any: one that meets another loses its sample.
class wait_mean {
public:
    void note(packed_wait took) noexcept {
        if (took.is_known()) {
            const auto before = mean_.load(std::memory_order_relaxed);
            mean_.store(before + (took.seconds() - before) / samples, std::memory_order_relaxed);
        }
    }
    [[nodiscard]] double seconds_of(packed_wait took) const noexcept {
        return took.is_known() ? took.seconds() : mean_.load(std::memory_order_relaxed);
    }

private:
    static constexpr double samples = 64;
    std::atomic<double> mean_{0.1};  // while nothing was timed
};

}  // namespace reprise::proxy::cache
