#pragma once
// How often a program under test has allocated memory (allocation_shim.cpp). Not for a program with
// a sanitizer, which allocates by itself.

#include "tests/support/shared_value.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::tests {

class counted_allocations {
public:
    /// "NAME=value" of what proxy_process is to be started with.
    [[nodiscard]] std::vector<std::string> environment() const;

    [[nodiscard]] std::uint64_t now() const { return (*count_).load(); }

private:
    shared_value<std::atomic<std::uint64_t>> count_;
};

}  // namespace reprise::tests
