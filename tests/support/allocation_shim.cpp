// Preloaded into the program under test: counts what it allocates, for the test to read, and lets
// its workers, or the thread that keeps house, run out of memory.

#include "tests/support/allocation_switches.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

// glibc's own, which it exports for libraries like this one.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_realloc(void* memory, std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);

namespace {

using reprise::tests::allocation_switches;

allocation_switches* switches() noexcept {
    static allocation_switches* const mapped = []() -> allocation_switches* {
        const char* const file = std::getenv("REPRISE_TEST_ALLOCATIONS");
        const int fd = file != nullptr ? ::open(file, O_RDWR | O_CLOEXEC) : -1;
        if (fd < 0) {
            return nullptr;
        }
        void* const at = ::mmap(
            nullptr, sizeof(allocation_switches), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        return at == MAP_FAILED ? nullptr : static_cast<allocation_switches*>(at);
    }();
    return mapped;
}

void count() noexcept {
    if (auto* const shared = switches()) {
        shared->count.fetch_add(1, std::memory_order_relaxed);
    }
}

bool is_main_refused() noexcept {
    auto* const shared = switches();
    return shared != nullptr && shared->main_lacks.load(std::memory_order_relaxed) != 0 &&
           ::gettid() == ::getpid();
}

bool is_refused() noexcept {
    auto* const shared = switches();
    if (shared == nullptr) {
        return false;
    }
    const bool workers = shared->workers_lack.load(std::memory_order_relaxed) != 0;
    const bool admin = shared->admin_lacks.load(std::memory_order_relaxed) != 0;
    if (!workers && !admin) {
        return is_main_refused();
    }
    char name[17] = {};
    return ::prctl(PR_GET_NAME, name) == 0 && ((workers && std::strcmp(name, "worker") == 0) ||
                                               (admin && std::strcmp(name, "admin") == 0));
}

}  // namespace

extern "C" void* malloc(std::size_t size) noexcept {
    count();
    if (is_refused()) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_malloc(size);
}

extern "C" void* realloc(void* memory, std::size_t size) noexcept {
    count();
    return __libc_realloc(memory, size);
}

extern "C" void* calloc(std::size_t number, std::size_t size) noexcept {
    count();
    return __libc_calloc(number, size);
}

extern "C" void* memalign(std::size_t alignment, std::size_t size) noexcept {
    count();
    return __libc_memalign(alignment, size);
}

// By which Asio takes its operations.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    count();
    if (is_main_refused()) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_memalign(alignment, size);
}

extern "C" int posix_memalign(void** into, std::size_t alignment, std::size_t size) noexcept {
    count();
    *into = __libc_memalign(alignment, size);
    return *into != nullptr ? 0 : ENOMEM;
}
