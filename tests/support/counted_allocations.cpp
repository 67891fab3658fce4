#include "tests/support/counted_allocations.hpp"

#include "tests/support/under_test.hpp"

#ifndef REPRISE_ALLOCATION_SHIM
#error "REPRISE_ALLOCATION_SHIM must be the path of the library made of allocation_shim.cpp"
#endif

namespace reprise::tests {

std::vector<std::string> counted_allocations::environment() const {
    return {"LD_PRELOAD=" + told("REPRISE_ALLOCATION_SHIM", REPRISE_ALLOCATION_SHIM),
            "REPRISE_TEST_ALLOCATIONS=" + shared_.file()};
}

}  // namespace reprise::tests
