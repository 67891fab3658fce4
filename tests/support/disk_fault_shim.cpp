// Preloaded into the program under test: its reads, writes and syncs at offsets, which are the disk
// tier's alone, fail or take as long as the test says while it runs.

#include "tests/support/disk_fault_switches.hpp"

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using reprise::tests::disk_fault_switches;

// Looked for once, at the first call.
disk_fault_switches* switches() noexcept {
    static disk_fault_switches* const mapped = []() -> disk_fault_switches* {
        const char* const path = std::getenv("REPRISE_TEST_DISK_FAULTS");
        const int fd = path != nullptr ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
        if (fd < 0) {
            return nullptr;
        }
        void* const at = ::mmap(
            nullptr, sizeof(disk_fault_switches), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        return at == MAP_FAILED ? nullptr : static_cast<disk_fault_switches*>(at);
    }();
    return mapped;
}

void take_time() noexcept {
    auto* const by = switches();
    if (by == nullptr || by->delay_ms.load() == 0) {
        return;
    }
    by->delayed.fetch_add(1);
    for (std::uint32_t slept = 0; slept < by->delay_ms.load(); slept += 10) {
        const timespec step{0, 10'000'000};
        ::nanosleep(&step, nullptr);
    }
}

bool fails(std::atomic<std::int32_t> disk_fault_switches::*which) noexcept {
    auto* const by = switches();
    const auto error = by == nullptr ? 0 : (by->*which).load();
    if (error == 0) {
        return false;
    }
    by->failed.fetch_add(1);
    errno = error;
    return true;
}

}  // namespace

// The names with 64 are the same calls, for whoever was compiled with large offsets.
extern "C" {

ssize_t pread(int fd, void* into, size_t size, off_t at) {
    take_time();
    return fails(&disk_fault_switches::read_error) ? -1
                                                   : ::syscall(SYS_pread64, fd, into, size, at);
}
ssize_t pread64(int fd, void* into, size_t size, off64_t at) {
    return pread(fd, into, size, at);
}

ssize_t preadv(int fd, const iovec* into, int count, off_t at) {
    take_time();
    return fails(&disk_fault_switches::read_error)
               ? -1
               : ::syscall(SYS_preadv, fd, into, count, at, off_t{0});
}
ssize_t preadv64(int fd, const iovec* into, int count, off64_t at) {
    return preadv(fd, into, count, at);
}

ssize_t preadv2(int fd, const iovec* into, int count, off_t at, int flags) {
    const auto* const by = switches();
    if ((flags & RWF_NOWAIT) != 0 && by != nullptr &&
        (by->uncached.load() != 0 || by->delay_ms.load() != 0 || by->read_error.load() != 0)) {
        errno = EAGAIN;
        return -1;
    }
    return ::syscall(SYS_preadv2, fd, into, count, at, off_t{0}, flags);
}
ssize_t preadv64v2(int fd, const iovec* into, int count, off64_t at, int flags) {
    return preadv2(fd, into, count, at, flags);
}

ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
    take_time();
    return fails(&disk_fault_switches::write_error) ? -1
                                                    : ::syscall(SYS_pwrite64, fd, from, size, at);
}
ssize_t pwrite64(int fd, const void* from, size_t size, off64_t at) {
    return pwrite(fd, from, size, at);
}

int fdatasync(int fd) {
    take_time();
    return fails(&disk_fault_switches::sync_error) ? -1
                                                   : static_cast<int>(::syscall(SYS_fdatasync, fd));
}

int fallocate(int fd, int mode, off_t at, off_t size) {
    take_time();
    return fails(&disk_fault_switches::write_error)
               ? -1
               : static_cast<int>(::syscall(SYS_fallocate, fd, mode, at, size));
}
int fallocate64(int fd, int mode, off64_t at, off64_t size) {
    return fallocate(fd, mode, at, size);
}

}  // extern "C"
