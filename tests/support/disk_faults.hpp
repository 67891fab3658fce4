#pragma once
// The disk of a program under test, which the test makes fail or slow while it runs.

#include "tests/support/disk_fault_switches.hpp"
#include "tests/support/temp_dir.hpp"

#include <string>
#include <vector>

namespace reprise::tests {

/// Must outlive the program that was given environment().
class disk_faults {
public:
    /// @throws std::runtime_error when its file cannot be mapped
    disk_faults();
    disk_faults(const disk_faults&) = delete;
    disk_faults& operator=(const disk_faults&) = delete;
    ~disk_faults();

    /// "NAME=value" of what proxy_process is to be started with.
    [[nodiscard]] std::vector<std::string> environment() const;

    [[nodiscard]] disk_fault_switches& set() const { return *switches_; }
    /// The disk is well again.
    void heal() const;

private:
    temp_dir directory_;
    disk_fault_switches* switches_ = nullptr;
};

}  // namespace reprise::tests
