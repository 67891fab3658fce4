#include "tests/support/disk_faults.hpp"

#include "tests/support/under_test.hpp"

#ifndef REPRISE_DISK_FAULT_SHIM
#error "REPRISE_DISK_FAULT_SHIM must be the path of the library made of disk_fault_shim.cpp"
#endif

namespace reprise::tests {

std::vector<std::string> disk_faults::environment() const {
    return {"LD_PRELOAD=" + told("REPRISE_DISK_FAULT_SHIM", REPRISE_DISK_FAULT_SHIM),
            "REPRISE_TEST_DISK_FAULTS=" + switches_.file()};
}

void disk_faults::heal() const {
    set().write_error = 0;
    set().read_error = 0;
    set().sync_error = 0;
    set().delay_ms = 0;
    set().uncached = 0;
}

}  // namespace reprise::tests
