#include "proxy/cache/memory/store_stripe.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace reprise::proxy::cache {

namespace {

// What the index spends on one entry beside the response itself: the entry, its place in `variants`
// (which doubles, and begins with an allocation of its own), the resource's map node, two buckets
// (a table just grown is half empty) and the URL. The resource is charged to each variant: simpler
// than exact, never less.
std::uint64_t index_charge(const store_stripe::resource& r) noexcept {
    constexpr std::size_t node = heap_cost(sizeof(store_stripe::entry));
    constexpr std::size_t place = heap_cost(2 * sizeof(store_stripe::entry_ptr));
    constexpr std::size_t map_node = heap_cost(sizeof(store_stripe::resource) +
                                               sizeof(filter::key_hash) + 2 * sizeof(void*));
    constexpr std::size_t buckets = 2 * sizeof(void*);
    return node + place + map_node + buckets + heap_cost(r.url);
}

}  // namespace

store_stripe::resource* store_stripe::resource_of(const filter::key_hash& key,
                                                  std::string_view url) {
    const auto it = resources.find(key);
    return it == resources.end() || it->second.url != url ? nullptr : &it->second;
}

store_stripe::resource* store_stripe::settled(const filter::key_hash& key,
                                              std::string_view url,
                                              const purge_list& purges,
                                              std::uint64_t& purged,
                                              released& gone) {
    auto* owner = resource_of(key, url);
    if (owner == nullptr) {
        return nullptr;
    }
    const auto epoch = purges.epoch();
    if (std::all_of(owner->variants.begin(), owner->variants.end(), [epoch](const auto& variant) {
            return variant->checked == epoch;
        })) {
        return owner;
    }
    for (std::size_t i = 0; i < owner->variants.size();) {
        auto& variant = *owner->variants[i];
        const auto said = purges.judge(url, variant.response->tags, variant.checked);
        variant.checked = said.checked;
        purged += said.none() ? 0 : 1;
        if (said.hard) {
            const bool last = owner->variants.size() == 1;
            gone.push_back(remove(variant));
            if (last) {
                return nullptr;
            }
            continue;
        }
        if (said.soft) {
            gone.push_back(
                std::exchange(variant.response, ended_at(*variant.response, *said.soft)));
            tell(key, *owner);
        }
        ++i;
    }
    return owner;
}

store_stripe::entry* store_stripe::selected(const resource& from, http::field_list request) {
    entry* newest = nullptr;
    for (const auto& variant : from.variants) {
        const auto& candidate = *variant->response;
        if (!http::matches(candidate.vary, candidate.selecting, request)) {
            continue;
        }
        if (newest == nullptr ||
            candidate.freshness.response_time >= newest->response->freshness.response_time) {
            newest = variant.get();
        }
    }
    return newest;
}

store_stripe::entry* store_stripe::variant_of(const resource& from, const stored_response& like) {
    for (const auto& variant : from.variants) {
        const auto& kept = *variant->response;
        if (kept.vary == like.vary && kept.selecting == like.selecting) {
            return variant.get();
        }
    }
    return nullptr;
}

store_stripe::entry* store_stripe::place_of(const resource& from, const stored_ptr& response) {
    for (const auto& variant : from.variants) {
        if (variant->response == response) {
            return variant.get();
        }
    }
    return nullptr;
}

void store_stripe::erase(const filter::key_hash& key) {
    resources.erase(key);
    if (told_ != nullptr) {
        told_->gone(tier_name::memory, key);
    }
}

void store_stripe::tell(const filter::key_hash& key, const resource& of) const {
    if (told_ == nullptr || of.variants.empty()) {
        return;
    }
    auto until = wall_time::min();
    for (const auto& variant : of.variants) {
        const auto& one = *variant->response;
        until = std::max(until, useful_until(one.freshness, one.directives));
    }
    told_->held(tier_name::memory, key, of.url, until);
}

stored_ptr store_stripe::take(resource& owner, std::size_t at) {
    const auto it = owner.variants.begin() + static_cast<std::ptrdiff_t>(at);
    auto gone = std::move((*it)->response);
    owner.variants.erase(it);
    return gone;
}

stored_ptr store_stripe::detach(entry& one) {
    auto& owner = *one.owner;
    const auto key = one.key;
    std::size_t at = 0;
    while (owner.variants[at].get() != &one) {
        ++at;
    }
    auto gone = take(owner, at);
    if (owner.variants.empty()) {
        erase(key);
    } else {
        tell(key, owner);
    }
    return gone;
}

stored_ptr store_stripe::remove(entry& one) {
    waiting -= one.to_go != 0 ? 1 : 0;
    held.leave(one);
    return detach(one);
}

stored_ptr store_stripe::replace(entry& one, stored_ptr response) {
    const auto charge = response->footprint() + index_charge(*one.owner);
    if (charge != one.charge) {
        // A policy knows an entry's size from its coming in. The place that it had earned goes
        // with it but for one use: seldom, since heads that are freshened keep their length.
        const auto as = residents::standing_of(one);
        const auto to_go = one.to_go;
        held.leave(one);
        one.charge = charge;
        try {
            held.enter(one, as, to_go);
        } catch (const std::bad_alloc&) {
            held.enter(one, standing::probation);  // which needs no memory
            ++waiting;
        }
        if (one.to_go == 0 && one.found_since) {
            (void)held.use(one);
        }
    }
    auto before = std::exchange(one.response, std::move(response));
    tell(one.key, *one.owner);
    return before;
}

store_stripe::placing store_stripe::put(const filter::key_hash& key,
                                        std::string_view url,
                                        stored_ptr response,
                                        std::uint64_t checked,
                                        std::uint64_t most,
                                        std::size_t most_variants,
                                        standing as,
                                        unsigned uses_to_admit,
                                        std::uint32_t now,
                                        released& gone) {
    auto& owner = resources.try_emplace(key).first->second;
    // Not remove(): the last variant's would take the resource from under our feet.
    const auto drop = [&](std::size_t at) {
        auto& old = *owner.variants[at];
        waiting -= old.to_go != 0 ? 1 : 0;
        held.leave(old);
        gone.push_back(take(owner, at));
    };
    if (owner.url != url) {
        while (!owner.variants.empty()) {
            drop(0);
        }
        owner.url = url;
    }
    placing done;
    for (std::size_t i = 0; i < owner.variants.size(); ++i) {
        const auto& old = *owner.variants[i]->response;
        if (old.vary == response->vary && old.selecting == response->selecting) {
            // What has earned its place keeps it, whatever the new one enters as.
            if (owner.variants[i]->to_go == 0) {
                as = standing::admitted;
            }
            drop(i);
            done.in_place = true;
            break;
        }
    }
    while (owner.variants.size() >= most_variants) {
        drop(0);
    }
    const auto charge = response->footprint() + index_charge(owner);
    if (charge > most) {
        if (owner.variants.empty()) {
            erase(key);
        } else {
            tell(key, owner);
        }
        return done;
    }
    auto made = std::make_unique<entry>();
    made->key = key;
    made->charge = charge;
    made->response = std::move(response);
    made->owner = &owner;
    made->checked = checked;
    made->last_used = now;
    auto& added = *made;
    try {
        owner.variants.push_back(std::move(made));
        held.enter(added, as, uses_to_admit);
    } catch (...) {
        if (!owner.variants.empty() && owner.variants.back().get() == &added) {
            owner.variants.pop_back();
        }
        if (owner.variants.empty()) {
            erase(key);
        }
        throw;
    }
    waiting += added.to_go != 0 ? 1 : 0;
    tell(key, owner);
    done.fits = true;
    return done;
}

store_stripe::evicted store_stripe::evict(bool probation_first, const stripe_outlook& at) {
    plan_for(at);
    auto* chosen = held.evict(probation_first);
    if (chosen == nullptr) {
        return {};
    }
    auto& one = static_cast<entry&>(*chosen);
    evicted out;
    out.key = one.key;
    out.charge = one.charge;
    out.last_used = one.last_used;
    out.was_found = one.found_since;
    out.was_admitted = one.to_go == 0;
    out.checked = one.checked;
    waiting -= out.was_admitted ? 0 : 1;
    if (one.owner->variants.size() == 1) {
        out.url = std::move(one.owner->url);
    } else {
        out.url = one.owner->url;
    }
    out.response = detach(one);
    return out;
}

}  // namespace reprise::proxy::cache
