#include "tests/support/stepped_clock.hpp"

#include "tests/support/under_test.hpp"

#include <cstdlib>
#include <ctime>

#ifndef REPRISE_WALL_CLOCK_SHIM
#error "REPRISE_WALL_CLOCK_SHIM must be the path of the library made of wall_clock_shim.cpp"
#endif

namespace reprise::tests {

std::vector<std::string> stepped_clock::environment() const {
    // AddressSanitizer wants to be loaded before whatever is preloaded; the shim stands in front of
    // nothing but the clock.
    const char* const known = std::getenv("ASAN_OPTIONS");
    return {"LD_PRELOAD=" + told("REPRISE_WALL_CLOCK_SHIM", REPRISE_WALL_CLOCK_SHIM),
            "REPRISE_TEST_CLOCK=" + offset_.file(),
            "ASAN_OPTIONS=" + (known != nullptr ? std::string{known} + ":" : std::string{}) +
                "verify_asan_link_order=0"};
}

void stepped_clock::advance(std::int64_t seconds) {
    (*offset_).fetch_add(seconds);
}

std::int64_t stepped_clock::now() const {
    return ::time(nullptr) + (*offset_).load();
}

}  // namespace reprise::tests
