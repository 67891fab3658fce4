#pragma once
// What a test and the shim that it preloads into the program share: a mapped file of switches.

#include <atomic>
#include <cstdint>

namespace reprise::tests {

/// Errors are errno's values; 0: none.
struct disk_fault_switches {
    std::atomic<std::int32_t> write_error{0};  ///< of pwrite and fallocate
    std::atomic<std::int32_t> read_error{0};   ///< of pread and preadv
    std::atomic<std::int32_t> sync_error{0};   ///< of fdatasync
    /// Each of these takes so long, as long as this says so: one that sleeps already wakes when it
    /// is set to 0.
    std::atomic<std::uint32_t> delay_ms{0};
    /// preadv2 has nothing at hand, so that every read may have to wait. As while there is a delay.
    std::atomic<std::uint32_t> uncached{0};
    std::atomic<std::uint64_t> failed{0};   ///< calls that failed by these switches
    std::atomic<std::uint64_t> delayed{0};  ///< calls that slept
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace reprise::tests
