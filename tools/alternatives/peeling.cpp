// See peeling.hpp.

#include "tools/alternatives/peeling.hpp"

#include <algorithm>

namespace reprise::alternatives {

std::vector<filter::key_hash> distinct(std::span<const filter::key_hash> keys) {
    std::vector<filter::key_hash> all{keys.begin(), keys.end()};
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return a.low != b.low ? a.low < b.low : a.high < b.high;
    });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

bool peel(std::span<const std::uint64_t> hashes,
          const std::function<peel_places(std::uint64_t)>& places_of,
          cells& slots) {
    const auto fingerprint = [&](std::uint64_t hash) { return fingerprint_of(hash, slots.bits()); };
    return peel(hashes, places_of, fingerprint, slots);
}

bool peel(std::span<const std::uint64_t> hashes,
          const std::function<peel_places(std::uint64_t)>& places_of,
          const std::function<std::uint32_t(std::uint64_t)>& wanted,
          cells& slots) {
    /// The hashes that still use a slot: how many, and their XOR, which is the hash when it is one.
    struct users {
        std::uint64_t together = 0;
        std::uint32_t count = 0;
    };
    std::vector<users> of(slots.count());
    for (const auto hash : hashes) {
        const auto places = places_of(hash);
        for (unsigned i = 0; i < places.count; ++i) {
            auto& slot = of[places.slot[i]];
            slot.together ^= hash;
            ++slot.count;
        }
    }
    std::vector<std::uint64_t> alone;  // slots that had one user when they were noted
    for (std::uint64_t slot = 0; slot < of.size(); ++slot) {
        if (of[slot].count == 1) {
            alone.push_back(slot);
        }
    }
    struct peeled {
        std::uint64_t hash;
        std::uint64_t slot;
    };
    std::vector<peeled> order;
    order.reserve(hashes.size());
    while (!alone.empty()) {
        const auto slot = alone.back();
        alone.pop_back();
        if (of[slot].count != 1) {
            continue;  // its user went by another of its slots
        }
        const auto hash = of[slot].together;
        order.push_back({hash, slot});
        const auto places = places_of(hash);
        for (unsigned i = 0; i < places.count; ++i) {
            auto& left = of[places.slot[i]];
            left.together ^= hash;
            if (--left.count == 1) {
                alone.push_back(places.slot[i]);
            }
        }
    }
    if (order.size() != hashes.size()) {
        return false;
    }
    for (auto last = order.rbegin(); last != order.rend(); ++last) {
        auto value = wanted(last->hash);
        const auto places = places_of(last->hash);
        for (unsigned i = 0; i < places.count; ++i) {
            value ^= slots.get(places.slot[i]);  // its own is zero yet
        }
        slots.set(last->slot, value);
    }
    return true;
}

}  // namespace reprise::alternatives
