#include "proxy/server/memory_upkeep.hpp"

#include "proxy/base/heap_use.hpp"
#include "proxy/base/log.hpp"
#include "proxy/cache/store.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace reprise::proxy::server {

namespace {

/// What leaves memory at once where it goes to a disk: the smallest queue of one holds half as much again, which small
/// objects need there.
constexpr std::uint64_t portion_for_disk = 8u << 20;

void wait_for_disk(const cache::store& store, steady_time until) {
    const auto* const disk = store.disk();
    while (store.leaves_for_disk() && disk->takes_puts() &&
           !disk->has_room_for(portion_for_disk / 2 * 3) && steady_now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
}

}  // namespace

// A much smaller store gives its memory back as it shrinks: in one piece that would hold the heap's lock
// for 0.15 ms per MiB and more, and all loops that want memory meanwhile.
void resize(cache::store& store, std::uint64_t bytes) {
    auto& memory = store.memory();
    const auto until = steady_now() + std::chrono::seconds{5};
    const auto held = memory.figures();
    steps_of_return steps;
    std::uint64_t freed = 0;
    const auto portion = [&] {
        return store.leaves_for_disk() ? std::min(steps.next(), portion_for_disk) : steps.next();
    };
    for (auto left = held.bytes + held.overhead; left > bytes + portion();) {
        left -= portion();
        freed += portion();
        memory.set_capacity(left);
        if (freed >= steps.next()) {
            freed = 0;
            const auto from = steady_now();
            give_memory_back();
            steps.note(steady_now() - from);
        }
        wait_for_disk(store, until);
    }
    memory.set_capacity(bytes);
}

void memory_upkeep::look(steady_time now) {
    if (now < next_look_) {
        return;
    }
    next_look_ = now + std::chrono::seconds{5};
    const auto figures = [] {
        return memory_return::look{.resident = resident_bytes(), .in_use = heap::in_use()};
    };
    if (const auto before = figures(); memory_return_.is_due(before, now)) {
        give_memory_back();
        const auto after = figures();
        memory_return_.note_done(after);
        if (after.resident < before.resident) {
            log::debug("memory given back: ", (before.resident - after.resident) >> 20, " MiB");
        }
    }
}

}  // namespace reprise::proxy::server
