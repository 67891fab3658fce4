#include "tools/fleet/cache_node.hpp"

#include "tools/replay/model.hpp"

#include <chrono>
#include <utility>

namespace reprise::fleet {

using proxy::cache::standing;
using replay::sketch_keys_an_object;

cache_node::cache_node(node_number number, node_parts parts, contents_watch& watch)
    : number_{number},
      watch_{watch},
      requests_{std::move(parts.requests)},
      admission_{std::move(parts.admission)},
      capacity_{parts.capacity},
      residents_{std::move(parts.policy), parts.capacity, 0} {
    if (requests_) {
        admission_->count_by(*requests_);
    }
}

void cache_node::use(entry& kept, const request& wanted) {
    kept.last_used = wanted.seconds;
    admission_->hit(wanted);
    residents_.use(kept);
}

bool cache_node::ask(const request& wanted) {
    if (requests_) {
        requests_->note(wanted.key);
    }
    admission_->asked(wanted);
    const auto found = entries_.find(wanted.object);
    if (found == entries_.end()) {
        residents_.missed(wanted.key);
        return false;
    }
    use(found->second, wanted);
    return true;
}

bool cache_node::lend(const request& wanted) {
    const auto found = entries_.find(wanted.object);
    if (found == entries_.end()) {
        return false;
    }
    if (requests_) {
        requests_->note(wanted.key);
    }
    use(found->second, wanted);
    return true;
}

bool cache_node::admits(const request& wanted, keep how, bool seen_elsewhere) {
    const bool admitted = admission_->admits(wanted) || seen_elsewhere || how == keep::always;
    return admitted && how != keep::never && wanted.bytes <= capacity_;
}

bool cache_node::store(const request& wanted) {
    auto& fresh = entries_[wanted.object];
    fresh.key = wanted.key;
    fresh.charge = wanted.bytes;
    fresh.object = wanted.object;
    fresh.last_used = wanted.seconds;
    residents_.enter(fresh, standing::admitted);
    watch_.stored(number_, wanted.object, wanted.key);
    while (residents_.bytes() > capacity_) {
        evict(wanted);
    }
    if (requests_) {
        requests_->grow_to(sketch_keys_an_object * residents_.count());
    }
    return entries_.contains(wanted.object);
}

void cache_node::evict(const request& now) {
    const auto& gone = *static_cast<entry*>(residents_.evict());
    admission_->evicted(gone.key, std::chrono::seconds{now.seconds - gone.last_used});
    const auto object = gone.object;
    const auto key = gone.key;
    entries_.erase(object);
    watch_.left(number_, object, key);
}

}  // namespace reprise::fleet
