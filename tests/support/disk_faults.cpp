#include "tests/support/disk_faults.hpp"

#include "tests/support/under_test.hpp"

#include <fcntl.h>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

#ifndef REPRISE_DISK_FAULT_SHIM
#error "REPRISE_DISK_FAULT_SHIM must be the path of the library made of disk_fault_shim.cpp"
#endif

namespace reprise::tests {

disk_faults::disk_faults() {
    const auto file = directory_.write("switches", std::string(sizeof *switches_, '\0'));
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    void* const at =
        fd < 0 ? MAP_FAILED
               : ::mmap(nullptr, sizeof *switches_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) {
        throw std::runtime_error("the switches' file cannot be mapped");
    }
    switches_ = ::new (at) disk_fault_switches;
}

disk_faults::~disk_faults() {
    ::munmap(switches_, sizeof *switches_);
}

std::vector<std::string> disk_faults::environment() const {
    return {"LD_PRELOAD=" + told("REPRISE_DISK_FAULT_SHIM", REPRISE_DISK_FAULT_SHIM),
            "REPRISE_TEST_DISK_FAULTS=" + directory_.file("switches")};
}

void disk_faults::heal() const {
    switches_->write_error = 0;
    switches_->read_error = 0;
    switches_->sync_error = 0;
    switches_->delay_ms = 0;
    switches_->uncached = 0;
}

}  // namespace reprise::tests
