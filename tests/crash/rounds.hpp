#pragma once
// The runs of this tool: start, load, kill, start, check, again; the same with damage done to the
// files in between; and once under strace.

#include "tests/crash/calls.hpp"
#include "tests/crash/report.hpp"

#include <chrono>
#include <memory>

namespace reprise::tests::crash {

class runs {
public:
    explicit runs(const run_options& options);
    ~runs();
    runs(const runs&) = delete;
    runs& operator=(const runs&) = delete;

    /// Kills until `kills` of them fell at pace, and then the rounds with damage.
    /// @throws std::runtime_error when the program ends by itself or does not start
    void run();
    /// Loads a started program under strace for some seconds.
    [[nodiscard]] call_figures trace(std::chrono::seconds how_long);

    [[nodiscard]] const run_figures& figures() const;
    [[nodiscard]] const sightings& seen() const;

private:
    struct inside;
    std::unique_ptr<inside> inside_;
};

}  // namespace reprise::tests::crash
