#include "proxy/cache/policy/sieve.hpp"

namespace reprise::proxy::cache {

void sieve_policy::set_capacity(std::uint64_t) {}

// Another request: what came last is one of the queue from now on.
void sieve_policy::missed(const filter::key_hash&) noexcept {
    newcomer_ = nullptr;
}

void sieve_policy::inserted(evictable& entry) {
    entry.uses = 0;
    entries_.push(entry);
    newcomer_ = &entry;
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
    if (newcomer_ == &entry) {
        newcomer_ = nullptr;
    }
    entries_.remove(entry);
}

// The newcomer is the youngest of all: the round ends before it.
evictable* sieve_policy::or_oldest(evictable* entry) const noexcept {
    return entry != nullptr && entry != newcomer_ ? entry : entries_.oldest();
}

evictable* sieve_policy::evict() noexcept {
    if (entries_.empty()) {
        return nullptr;
    }
    // Ends: a whole round leaves no mark. The newcomer leaves only when nothing else is in.
    auto* victim = or_oldest(hand_);
    for (unsigned passed = 0; victim->uses != 0 && passed < most_passed; ++passed) {
        victim->uses = 0;
        victim = or_oldest(victim->next_to.newer);
    }
    auto* const next = victim->next_to.newer;
    take_out(*victim);
    hand_ = next != newcomer_ ? next : nullptr;
    return victim;
}

}  // namespace reprise::proxy::cache
