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
    policy_->set_capacity(has_line() ? capacity_ - std::min(capacity_, probation_share_bytes_)
                                     : capacity_);
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
    const bool waits = as == standing::probation;
    entry.to_go = waits ? std::clamp(uses_to_admit, 1u, evictable::most_to_go) : 0u;
    if (waits && has_line()) {
        link(entry);
    } else {
        entry.in_line = 0;
        policy_->inserted(entry);
    }
    bytes_of(entry) += entry.charge;
    ++count_;
}

void residents::line_up(evictable& entry) noexcept {
    entry.to_go = 1;
    link(entry);
    on_probation_ += entry.charge;
    ++count_;
}

bool residents::use_on_probation(evictable& entry) noexcept {
    if (entry.in_line == 0) {
        policy_->used(entry);
    } else {
        policy_->missed(entry.key);
    }
    if (entry.to_go > 1) {
        --entry.to_go;
        return false;
    }
    if (entry.in_line) {
        unlink(entry);
        try {
            policy_->inserted(entry);
        } catch (const std::bad_alloc&) {
            link(entry);
            return false;
        }
    }
    entry.to_go = 0;
    on_probation_ -= entry.charge;
    admitted_ += entry.charge;
    return true;
}

void residents::link(evictable& entry) noexcept {
    entry.in_line = 1;
    in_line_ += entry.charge;
    entry.next_to = {nullptr, youngest_};
    (youngest_ != nullptr ? youngest_->next_to.newer : oldest_) = &entry;
    youngest_ = &entry;
}

void residents::unlink(evictable& entry) noexcept {
    (entry.next_to.newer != nullptr ? entry.next_to.newer->next_to.older
                                    : youngest_) = entry.next_to.older;
    (entry.next_to.older != nullptr ? entry.next_to.older->next_to.newer
                                    : oldest_) = entry.next_to.newer;
    entry.next_to = {};
    entry.in_line = 0;
    in_line_ -= entry.charge;
}

void residents::leave(evictable& entry) noexcept {
    --count_;
    bytes_of(entry) -= entry.charge;
    if (entry.in_line) {
        unlink(entry);
    } else {
        policy_->removed(entry);
    }
}

evictable* residents::evict(bool probation_first) noexcept {
    probation_first |= !has_line() && oldest_ != nullptr;
    auto* chosen = probation_first ? nullptr : policy_->evict();
    if (chosen == nullptr && oldest_ != nullptr) {
        chosen = oldest_;
        unlink(*chosen);
    }
    if (chosen == nullptr && probation_first) {
        chosen = policy_->evict();
    }
    if (chosen != nullptr) {
        --count_;
        bytes_of(*chosen) -= chosen->charge;
    }
    return chosen;
}

}  // namespace reprise::proxy::cache
