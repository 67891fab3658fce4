#include "proxy/cache/memory/invalidations.hpp"

#include <algorithm>

namespace reprise::proxy::cache {

invalidations::invalidations() : stripes_{std::make_unique<stripe[]>(stripe_count)} {}

invalidations::stripe& invalidations::stripe_of(const filter::key_hash& key) const noexcept {
    return stripes_[key.high % stripe_count];
}

std::uint64_t invalidations::count(const filter::key_hash& key) const {
    const auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    return home.made;
}

void invalidations::note(const filter::key_hash& key) {
    auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    home.keys[home.made++ % remembered] = key;
    home.last[key.low % slots] = static_cast<std::uint32_t>(home.made);
}

bool invalidations::since(const filter::key_hash& key, std::uint64_t since) const {
    const auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    return home.has_slot_since(key, since) &&
           (home.made - since > remembered || home.holds(key, since));
}

bool invalidations::surely_since(const filter::key_hash& key, std::uint64_t since) const {
    const auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    const auto oldest = home.made - std::min<std::uint64_t>(home.made, remembered);
    return home.holds(key, std::max(since, oldest));
}

bool invalidations::stripe::holds(const filter::key_hash& key, std::uint64_t from) const {
    for (auto i = from; i < made; ++i) {
        if (keys[i % remembered] == key) {
            return true;
        }
    }
    return false;
}

// By how many invalidations ago the slot's last one was: a number modulo 2^32 is never larger than the
// true one, so that none is missed however many there were.
bool invalidations::stripe::has_slot_since(const filter::key_hash& key, std::uint64_t since) const {
    const auto ago = static_cast<std::uint32_t>(made) - last[key.low % slots];
    return ago < made - since;
}

}  // namespace reprise::proxy::cache
