#pragma once
// The disk of a program under test, which the test makes fail or slow while it runs.

#include "tests/support/disk_fault_switches.hpp"
#include "tests/support/shared_value.hpp"

#include <string>
#include <vector>

namespace reprise::tests {

/// Must outlive the program that was given environment().
class disk_faults {
public:
    /// "NAME=value" of what proxy_process is to be started with.
    [[nodiscard]] std::vector<std::string> environment() const;

    [[nodiscard]] disk_fault_switches& set() const { return *switches_; }
    /// The disk is well again.
    void heal() const;

private:
    shared_value<disk_fault_switches> switches_;
};

}  // namespace reprise::tests
