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
}

bool invalidations::since(const filter::key_hash& key, std::uint64_t since) const {
    const auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    return home.made - since > remembered || home.holds(key, since);
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

}  // namespace reprise::proxy::cache
