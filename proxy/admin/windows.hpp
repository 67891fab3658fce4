#pragma once
// Hit ratios over the last minute and the last ten, from a ring of readings.
// The counters only grow, so the ratio over a window is the difference of two readings: now, and
// the one nearest to the window's beginning. A reading every five seconds bounds the ring, and the
// window's beginning is off by at most that much: `span` says what was really covered.

#include "proxy/base/clock.hpp"
#include "proxy/base/counters.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace reprise::proxy::admin {

/// What came to pass within some span of time.
struct window_figures {
    std::chrono::nanoseconds span{0};
    std::uint64_t requests = 0;  ///< answered_requests
    std::uint64_t hits = 0;
    std::uint64_t body_bytes = 0;  ///< to clients, of proxied responses
    std::uint64_t body_bytes_from_store = 0;

    /// None when there was nothing to divide by: no ratio is not a ratio of zero.
    [[nodiscard]] std::optional<double> hit_ratio() const noexcept;
    [[nodiscard]] std::optional<double> byte_hit_ratio() const noexcept;
};

/// Threads: one (that of the admin server's handlers, which ticks it and reads it). Memory: fixed,
/// 5 KiB.
class ratio_windows {
public:
    static constexpr std::chrono::seconds every{5};
    static constexpr std::chrono::seconds longest{600};

    /// Everything is counted from `start`, when the counters were zero.
    explicit ratio_windows(steady_time start) noexcept;

    /// Takes a reading if the last one is `every` old; call it about once a second.
    void tick(steady_time now, const totals& counts) noexcept;

    [[nodiscard]] window_figures since_start(steady_time now, const totals& counts) const noexcept;

    /// The last `wanted` (at most `longest`), or since the start where that is less long ago.
    [[nodiscard]] window_figures last(std::chrono::seconds wanted,
                                      steady_time now,
                                      const totals& counts) const noexcept;

private:
    struct reading {
        steady_time at{};
        std::uint64_t requests = 0, hits = 0, body_bytes = 0, body_bytes_from_store = 0;
    };
    static reading read(steady_time at, const totals& counts) noexcept;
    static window_figures between(const reading& first, const reading& second) noexcept;

    steady_time start_;
    std::array<reading, longest / every + 2> ring_{};
    std::size_t newest_ = 0;
    std::size_t kept_ = 1;  ///< how many of the ring are filled; the first is the start
};

}  // namespace reprise::proxy::admin
