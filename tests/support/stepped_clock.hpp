#pragma once
// The wall clock of a program under test, which the test sets forward while it runs.

#include "tests/support/temp_dir.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::tests {

/// Must outlive the program that was given environment().
class stepped_clock {
public:
    /// @throws std::runtime_error when its file cannot be made
    stepped_clock();
    stepped_clock(const stepped_clock&) = delete;
    stepped_clock& operator=(const stepped_clock&) = delete;
    ~stepped_clock();

    /// "NAME=value" of what proxy_process is to be started with.
    [[nodiscard]] std::vector<std::string> environment() const;

    void advance(std::int64_t seconds);
    /// Seconds since the epoch, as the program reads them.
    [[nodiscard]] std::int64_t now() const;

private:
    temp_dir directory_;
    std::int64_t* offset_ = nullptr;
};

}  // namespace reprise::tests
