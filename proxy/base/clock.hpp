#pragma once
// The two clocks, passed in so that tests can hold them still.
// Wall time dates messages; steady time measures waits and latencies. What is stored is aged by
// neither alone: resident time is wall time that is never set back, so that no time passes twice
// for a response, or backwards.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace reprise::proxy {

using wall_time = std::chrono::sys_time<std::chrono::milliseconds>;
using steady_time = std::chrono::steady_clock::time_point;

[[nodiscard]] inline wall_time wall_now() noexcept {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}
[[nodiscard]] inline steady_time steady_now() noexcept {
    return std::chrono::steady_clock::now();
}

namespace detail {
/// The furthest, in milliseconds, that wall time has been seen ahead of steady time.
inline std::atomic<std::int64_t> furthest_ahead{std::numeric_limits<std::int64_t>::min() / 2};

[[nodiscard]] inline std::int64_t milliseconds_of(steady_time at) noexcept {
    return std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
}
}  // namespace detail

/// Resident time at a moment lately (by the caller's own look at the clocks), for comparisons: one
/// load more than wall time costs. What is recorded is taken from resident_now().
[[nodiscard]] inline wall_time resident_at(wall_time wall, steady_time steady) noexcept {
    const auto ahead = detail::furthest_ahead.load(std::memory_order_relaxed);
    return std::max(wall,
                    wall_time{std::chrono::milliseconds{detail::milliseconds_of(steady) + ahead}});
}

/// Wall time while that goes forward; where it was set back steady time goes on from what it had
/// been. So between two of these at least as much lies as by either clock, and never less than
/// nothing. It begins anew with the process: whoever keeps one over a restart must ask whether it
/// lies ahead.
[[nodiscard]] inline wall_time resident_now() noexcept {
    const auto wall = wall_now();
    const auto steady = steady_now();  // read last: a pause in between widens nothing
    const auto ahead = wall.time_since_epoch().count() - detail::milliseconds_of(steady);
    auto furthest = detail::furthest_ahead.load(std::memory_order_relaxed);
    while (ahead > furthest && !detail::furthest_ahead.compare_exchange_weak(
                                   furthest, ahead, std::memory_order_relaxed)) {
    }
    return resident_at(wall, steady);
}

}  // namespace reprise::proxy
