#include "tests/support/stepped_clock.hpp"

#include "tests/support/under_test.hpp"

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

#ifndef REPRISE_WALL_CLOCK_SHIM
#error "REPRISE_WALL_CLOCK_SHIM must be the path of the library made of wall_clock_shim.cpp"
#endif

namespace reprise::tests {

stepped_clock::stepped_clock() {
    const auto file = directory_.write("clock", std::string(sizeof *offset_, '\0'));
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    void* const at =
        fd < 0 ? MAP_FAILED
               : ::mmap(nullptr, sizeof *offset_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) {
        throw std::runtime_error("the clock's file cannot be mapped");
    }
    offset_ = static_cast<std::int64_t*>(at);
}

stepped_clock::~stepped_clock() {
    ::munmap(offset_, sizeof *offset_);
}

std::vector<std::string> stepped_clock::environment() const {
    // AddressSanitizer wants to be loaded before whatever is preloaded; the shim stands in front of
    // nothing but the clock.
    const char* const known = std::getenv("ASAN_OPTIONS");
    return {"LD_PRELOAD=" + told("REPRISE_WALL_CLOCK_SHIM", REPRISE_WALL_CLOCK_SHIM),
            "REPRISE_TEST_CLOCK=" + directory_.file("clock"),
            "ASAN_OPTIONS=" + (known != nullptr ? std::string{known} + ":" : std::string{}) +
                "verify_asan_link_order=0"};
}

void stepped_clock::advance(std::int64_t seconds) {
    std::atomic_ref<std::int64_t>{*offset_}.fetch_add(seconds);
}

std::int64_t stepped_clock::now() const {
    return ::time(nullptr) + *offset_;
}

}  // namespace reprise::tests
