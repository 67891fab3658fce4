#pragma once
// What a run was asked for, what it counted, and what that says of the promises.

#include "tests/crash/checker.hpp"
#include "tests/crash/damage.hpp"
#include "tests/crash/load.hpp"

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::tests::crash {

struct run_options {
    std::uint64_t seed = 1;
    std::uint64_t kills = 200;
    std::uint64_t damages = 0;      ///< rounds with damage done, after the kills
    std::uint64_t size = 64 << 20;  ///< disk.size
    double least_pace = 1'000;      ///< writes a second for a kill to count
    double least_rounds = 2;        ///< of the log, before the first kill
    double may_hold = 0.7;  ///< of the store's size: README.md, "What the store can still hold"
    bool disk = true;       ///< false: without a store, to see that nothing is owed
    bool verbose = false;
    load_options load;
};

struct run_figures {
    std::uint64_t kills = 0, kills_at_pace = 0, kills_while_loading = 0;
    double least_pace = 0, median_pace = 0;  ///< of the kills at pace
    double rounds = 0;                       ///< of the log
    std::uint64_t written = 0, puts = 0, skipped = 0, carried = 0, evicted = 0, invalidated = 0;
    std::uint64_t damaged = 0, errors = 0;
    std::uint64_t most_on_disk = 0;
    std::uint64_t origin_asked_while_checking = 0;
    /// The oldest that the store said waits to be written, and that look's age, at a kill.
    std::chrono::steady_clock::duration most_behind{0};
    check_figures checks;  ///< after kills
    damage_done done;
    std::uint64_t damage_rounds = 0;
    check_figures damage_checks;  ///< after damage
    std::chrono::seconds took{0};
};

/// What of it breaks a promise, in words; empty when none is broken.
[[nodiscard]] std::vector<std::string> broken_promises(const run_options& asked,
                                                       const run_figures& figures,
                                                       const sightings& seen);
/// Whether what was done wrong on purpose was found.
[[nodiscard]] bool saw(sabotage wrong, const run_figures& figures, const sightings& seen);
/// The table.
void print(std::ostream& out,
           const run_options& asked,
           const run_figures& figures,
           const sightings& seen);

}  // namespace reprise::tests::crash
