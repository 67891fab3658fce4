#pragma once
// What a test and the shim that it preloads into the program share: a mapped file.

#include <atomic>
#include <cstdint>

namespace reprise::tests {

struct allocation_switches {
    std::atomic<std::uint64_t> count{0};         ///< of allocations since the program's start
    std::atomic<std::uint32_t> workers_lack{0};  ///< not 0: the workers' calls of malloc fail
    std::atomic<std::uint32_t> admin_lacks{0};   ///< the administrators' thread's
    std::atomic<std::uint32_t> main_lacks{0};    ///< the first thread's, and of aligned_alloc
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace reprise::tests
