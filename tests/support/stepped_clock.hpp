#pragma once
// The wall clock of a program under test, which the test sets forward while it runs.

#include "tests/support/shared_value.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::tests {

/// Must outlive the program that was given environment().
class stepped_clock {
public:
    /// "NAME=value" of what proxy_process is to be started with.
    [[nodiscard]] std::vector<std::string> environment() const;

    void advance(std::int64_t seconds);
    /// Seconds since the epoch, as the program reads them.
    [[nodiscard]] std::int64_t now() const;

private:
    shared_value<std::atomic<std::int64_t>> offset_;
};

}  // namespace reprise::tests
