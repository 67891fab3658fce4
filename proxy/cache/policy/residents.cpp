#include "proxy/cache/policy/residents.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace reprise::proxy::cache {

residents::residents(eviction_kind kind, std::uint64_t capacity, double probation)
    : residents{make_policy(kind, capacity), capacity, probation} {}

residents::residents(std::unique_ptr<eviction_policy> policy,
                     std::uint64_t capacity,
                     double probation)
    : policy_{std::move(policy)},
      capacity_{capacity},
      share_{probation} {
    plan();
}

void residents::plan() {
    probation_share_bytes_ = static_cast<std::uint64_t>(static_cast<double>(capacity_) * share_);
    policy_->set_capacity(capacity_ - std::min(capacity_, probation_share_bytes_));
}

void residents::set_capacity(std::uint64_t bytes) {
    capacity_ = bytes;
    plan();
}

void residents::set_probation(double share) {
    share_ = share;
    plan();
}

void residents::enter(evictable& entry, standing as, unsigned uses_to_admit) {
    if (as == standing::admitted) {
        entry.to_go = 0;
        policy_->inserted(entry);
        admitted_ += entry.charge;
    } else {
        entry.to_go = static_cast<std::uint8_t>(std::clamp(uses_to_admit, 1u, 255u));
        link(entry);
        on_probation_ += entry.charge;
    }
    ++count_;
}

bool residents::use_on_probation(evictable& entry) noexcept {
    policy_->missed(entry.key);
    if (entry.to_go > 1) {
        --entry.to_go;
        return false;
    }
    unlink(entry);
    try {
        policy_->inserted(entry);
    } catch (const std::bad_alloc&) {
        link(entry);
        return false;
    }
    entry.to_go = 0;
    on_probation_ -= entry.charge;
    admitted_ += entry.charge;
    return true;
}

void residents::link(evictable& entry) noexcept {
    entry.newer = nullptr;
    entry.older = youngest_;
    (youngest_ != nullptr ? youngest_->newer : oldest_) = &entry;
    youngest_ = &entry;
}

void residents::unlink(evictable& entry) noexcept {
    (entry.newer != nullptr ? entry.newer->older : youngest_) = entry.older;
    (entry.older != nullptr ? entry.older->newer : oldest_) = entry.newer;
    entry.newer = entry.older = nullptr;
}

void residents::leave(evictable& entry) noexcept {
    --count_;
    if (entry.to_go == 0) {
        admitted_ -= entry.charge;
        policy_->removed(entry);
    } else {
        on_probation_ -= entry.charge;
        unlink(entry);
    }
}

evictable* residents::evict(bool probation_first) noexcept {
    if (!probation_first) {
        if (auto* chosen = policy_->evict()) {
            --count_;
            admitted_ -= chosen->charge;
            return chosen;
        }
    }
    if (auto* waiting = oldest_) {
        --count_;
        on_probation_ -= waiting->charge;
        unlink(*waiting);
        return waiting;
    }
    return probation_first ? evict(false) : nullptr;
}

}  // namespace reprise::proxy::cache
