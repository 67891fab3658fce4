#pragma once
// The two clocks, passed in so that tests can hold them still.
// Wall time dates messages and ages stored responses (RFC 9111 4.2.3); steady time measures waits
// and latencies.

#include <chrono>

namespace reprise::proxy {

using wall_time = std::chrono::sys_time<std::chrono::milliseconds>;
using steady_time = std::chrono::steady_clock::time_point;

[[nodiscard]] inline wall_time wall_now() noexcept {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}
[[nodiscard]] inline steady_time steady_now() noexcept {
    return std::chrono::steady_clock::now();
}

}  // namespace reprise::proxy
