#include "proxy/cache/memory/invalidations.hpp"

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
    if (home.made - since > remembered) {
        return true;
    }
    for (auto i = since; i < home.made; ++i) {
        if (home.keys[i % remembered] == key) {
            return true;
        }
    }
    return false;
}

}  // namespace reprise::proxy::cache
