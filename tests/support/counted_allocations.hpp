#pragma once
// How often a program under test has allocated memory (allocation_shim.cpp), and its workers, or its
// first thread, without any. Not for a program with a sanitizer, which allocates by itself.

#include "tests/support/allocation_switches.hpp"
#include "tests/support/shared_value.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::tests {

class counted_allocations {
public:
    /// "NAME=value" of what proxy_process is to be started with.
    [[nodiscard]] std::vector<std::string> environment() const;

    [[nodiscard]] std::uint64_t now() const { return (*shared_).count.load(); }

    /// While they lack it, the workers' calls of malloc fail.
    void workers_lack_memory(bool lack) { (*shared_).workers_lack = lack ? 1 : 0; }

    void admin_lacks_memory(bool lacks) { (*shared_).admin_lacks = lacks ? 1 : 0; }
    void main_lacks_memory(bool lacks) { (*shared_).main_lacks = lacks ? 1 : 0; }

private:
    shared_value<allocation_switches> shared_;
};

}  // namespace reprise::tests
