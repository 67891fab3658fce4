#include "proxy/cache/policy/sieve.hpp"

namespace reprise::proxy::cache {

void sieve_policy::set_capacity(std::uint64_t) {}

void sieve_policy::inserted(evictable& entry) {
    entry.uses = 0;
    entries_.push(entry);
}

void sieve_policy::used(evictable& entry) noexcept {
    entry.uses = 1;  // the mark
}

void sieve_policy::removed(evictable& entry) noexcept {
    take_out(entry);
}

// The hand goes on where it was: with the next younger entry, or at the oldest anew.
void sieve_policy::take_out(evictable& entry) noexcept {
    if (hand_ == &entry) {
        hand_ = entry.next_to.newer;
    }
    entries_.remove(entry);
}

evictable* sieve_policy::evict() noexcept {
    if (entries_.empty()) {
        return nullptr;
    }
    // Ends: a whole round leaves no mark.
    auto* victim = hand_ != nullptr ? hand_ : entries_.oldest();
    while (victim->uses != 0) {
        victim->uses = 0;
        victim = victim->next_to.newer != nullptr ? victim->next_to.newer : entries_.oldest();
    }
    hand_ = victim;
    take_out(*victim);
    return victim;
}

}  // namespace reprise::proxy::cache
