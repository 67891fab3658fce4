#include "proxy/net/kept_leaves.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::net {

kept_leaves::kept_leaves(leaf_maker maker, std::size_t most)
    : maker_{std::move(maker)},
      most_{std::max<std::size_t>(most, 1)} {}

tls_identity_ptr kept_leaves::identity_for(std::string_view host, wall_time now, bool* made_anew) {
    if (auto found = find(host, now)) {
        reused_.fetch_add(1, relaxed);
        return found;
    }
    std::string name{host};
    auto made = maker_.make(name, now);
    if (!made) {
        return nullptr;
    }
    made_.fetch_add(1, relaxed);
    if (made_anew != nullptr) {
        *made_anew = true;
    }
    return keep({std::move(name), std::move(*made)}, now);
}

tls_identity_ptr kept_leaves::find(std::string_view host, wall_time now) {
    const std::lock_guard lock{guard_};
    const auto found = by_host_.find(host);
    if (found == by_host_.end() || !found->second->leaf.is_good_at(now)) {
        return nullptr;
    }
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return found->second->leaf.identity;
}

tls_identity_ptr kept_leaves::keep(entry made, wall_time now) {
    list fresh;
    fresh.push_back(std::move(made));
    list gone;  // freed when the lock is let go
    const std::lock_guard lock{guard_};
    const auto known = by_host_.find(fresh.front().host);
    if (known != by_host_.end()) {
        auto& leaf = known->second->leaf;
        if (!leaf.is_good_at(now)) {
            std::swap(leaf, fresh.front().leaf);
        }
        by_use_.splice(by_use_.begin(), by_use_, known->second);
        gone.splice(gone.begin(), fresh);
        return leaf.identity;
    }
    by_host_.emplace(fresh.front().host, fresh.begin());
    by_use_.splice(by_use_.begin(), fresh);
    if (by_use_.size() > most_) {
        by_host_.erase(by_use_.back().host);
        gone.splice(gone.begin(), by_use_, std::prev(by_use_.end()));
    }
    return by_use_.front().leaf.identity;
}

std::size_t kept_leaves::size() const {
    const std::lock_guard lock{guard_};
    return by_use_.size();
}

}  // namespace reprise::proxy::net
