#include "proxy/cache/policy/lru.hpp"

namespace reprise::proxy::cache {

void lru_policy::set_capacity(std::uint64_t) {}

void lru_policy::inserted(evictable& entry) {
    entries_.push(entry);
}

void lru_policy::used(evictable& entry) noexcept {
    entries_.make_newest(entry);
}

void lru_policy::removed(evictable& entry) noexcept {
    entries_.remove(entry);
}

evictable* lru_policy::evict() noexcept {
    auto* const victim = entries_.oldest();
    if (victim != nullptr) {
        entries_.remove(*victim);
    }
    return victim;
}

}  // namespace reprise::proxy::cache
