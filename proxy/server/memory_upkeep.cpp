#include "proxy/server/memory_upkeep.hpp"

#include "proxy/base/heap_use.hpp"
#include "proxy/base/log.hpp"
#include "proxy/cache/memory/memory_tier.hpp"

#include <chrono>

namespace reprise::proxy::server {

// A much smaller store gives its memory back as it shrinks: in one piece that would hold the heap's lock
// for 0.15 ms per MiB and more, and all loops that want memory meanwhile.
void resize(cache::memory_tier& store, std::uint64_t bytes) {
    const auto held = store.figures();
    steps_of_return steps;
    for (auto left = held.bytes + held.overhead; left > bytes + steps.next();) {
        left -= steps.next();
        store.set_capacity(left);
        const auto from = steady_now();
        give_memory_back();
        steps.note(steady_now() - from);
    }
    store.set_capacity(bytes);
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
