#pragma once
// What the store says of itself, and how the program that has it is ended.

#include "tests/support/proxy_process.hpp"

#include <cstdint>
#include <string>

namespace reprise::tests::crash {

/// It starts, serves and ends at once on a machine that has time for it. A run of half an hour does
/// not fail because a machine has none for ten seconds.
inline constexpr std::chrono::minutes busy_machine{1};

struct store_figures {
    std::string state = "none";  ///< without a store on disk
    std::uint64_t objects = 0, written = 0, puts = 0, skipped = 0, evicted = 0, damaged = 0;
    std::uint64_t carried = 0, invalidated = 0, errors = 0, segments = 0;
    double behind = 0;  ///< seconds that the oldest of what waits to be written has waited
};
/// @throws std::runtime_error when it does not answer
[[nodiscard]] store_figures figures_of(const proxy_process& program);
/// Waits until the index is loaded. False: it is not in time, or the store does not work.
[[nodiscard]] bool wait_until_loaded(const proxy_process& program);

/// SIGKILL, now; waits for the end.
/// @throws std::runtime_error when it had ended by itself
void kill(proxy_process& program);
/// SIGTERM.
/// @throws std::runtime_error when it does not end well
void stop(proxy_process& program);

}  // namespace reprise::tests::crash
