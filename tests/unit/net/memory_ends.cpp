#include "tests/unit/net/memory_ends.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr unsigned no_end = std::numeric_limits<unsigned>::max();
thread_local unsigned still_allocated = no_end;
thread_local unsigned still_refused = 0;
thread_local std::size_t least_counted = 0;

bool has_memory(std::size_t size) noexcept {
    if (still_allocated == no_end || size < least_counted) {
        return true;
    }
    if (still_allocated == 0) {
        if (still_refused != no_end && --still_refused == 0) {
            still_allocated = no_end;
        }
        return false;
    }
    --still_allocated;
    return true;
}

}  // namespace

// Not inlined: GCC 12 would see new beside free and warn of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
    void* const memory = has_memory(size) ? std::malloc(size == 0 ? 1 : size) : nullptr;
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    return memory;
}
// A filter's words are aligned. AddressSanitizer's own would not come by aligned_alloc below.
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
    const auto least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
    void* const memory = ::aligned_alloc(least, size);
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    return memory;
}
// Sorting asks so for its room; AddressSanitizer's own would be freed by ours.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*unused*/) noexcept {
    return has_memory(size) ? std::malloc(size == 0 ? 1 : size) : nullptr;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    void* memory = nullptr;
    return has_memory(size) && ::posix_memalign(&memory, alignment, size) == 0 ? memory : nullptr;
}

namespace reprise::proxy::net {

memory_ends::memory_ends(unsigned still, unsigned refused, std::size_t least) noexcept {
    least_counted = least;
    still_refused = refused;
    still_allocated = still;
}

memory_ends::~memory_ends() {
    still_allocated = no_end;
}

}  // namespace reprise::proxy::net
