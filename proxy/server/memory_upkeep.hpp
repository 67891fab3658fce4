#pragma once
// The process's memory, kept small: what a peak took goes back to the system, and a store that is made
// much smaller gives its own back as it shrinks. What is worth it, and when, base/memory_return.hpp knows.

#include "proxy/base/memory_return.hpp"

#include <cstdint>

namespace reprise::proxy::cache {
class store;
}  // namespace reprise::proxy::cache

namespace reprise::proxy::server {

/// Threads: one. Cost: a look at /proc each five seconds; as memory_return says where something is given.
class memory_upkeep {
public:
    /// To be called again and again, from before the first client on.
    void look(steady_time now);

private:
    steady_time next_look_{};
    memory_return memory_return_;
};

/// Memory is to hold `bytes` at most: step by step where that is much less than it has. What leaves for the disk is
/// waited for between steps, or most of it would find no room in the disk's queue and be in neither tier; for five
/// seconds in all, as at the end (store::leave_to_disk). Any thread but a loop's: blocks as long.
void resize(cache::store& store, std::uint64_t bytes);

}  // namespace reprise::proxy::server
