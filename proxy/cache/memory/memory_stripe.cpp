#include "proxy/cache/memory/memory_stripe.hpp"

#include "proxy/cache/partial_response.hpp"
#include "proxy/cache/recency.hpp"

#include <algorithm>
#include <new>
#include <utility>

// All of it under the stripe's lock. A response that goes is not destroyed under it, but handed out
// (released), for it may be large. A purge by prefix or tag is met when a resource is looked at next
// (settled), and not when it is told.

namespace reprise::proxy::cache {

namespace {

std::uint64_t charge_of(const stored_response& response, std::string_view url) noexcept {
    return response.footprint() + memory_entry::footprint(url) + entry_table::bytes_an_entry;
}

bool are_of_one_variant(const stored_response& one, const stored_response& other) noexcept {
    return one.vary() == other.vary() && one.selecting() == other.selecting();
}

}  // namespace

void memory_stripe::let_go(released& gone, stored_ptr one) noexcept {
    try {
        gone.push_back(std::move(one));
    } catch (const std::bad_alloc&) {
        // What was to go is gone all the same.
    }
}

memory_stripe::resource memory_stripe::resource_of(const filter::key_hash& key,
                                                   std::string_view url) const noexcept {
    const auto found = entries.find(key);
    return found.empty() || found.front().url() != url ? resource{} : found;
}

memory_stripe::resource memory_stripe::settled(const filter::key_hash& key,
                                               std::string_view url,
                                               const purge_list& purges,
                                               std::uint64_t& purged,
                                               released& gone) {
    const auto found = resource_of(key, url);
    const auto now = purges.counted_from_start(purges.epoch());
    if (std::all_of(found.begin(), found.end(), [now](const entry& variant) {
            return variant.checked() == now;
        })) {
        return found;
    }
    for (auto at = found.begin(); at != found.end();) {
        auto& variant = *at++;
        const auto since = purges.epoch_of(variant.checked());
        const auto said = purges.judge(url, variant.response().tags(), since);
        if (said.hard) {
            let_go(gone, remove(variant));
        } else {
            // What may throw comes first: what is noted as checked is never held against them again.
            auto next = said.soft ? ended_at(variant.response(), *said.soft) : nullptr;
            variant.note_checked(purges.counted_from_start(said.checked));
            if (next) {
                let_go(gone, variant.exchange(std::move(next)));
                tell(key);
            }
        }
        purged += said.none() ? 0 : 1;
    }
    return resource_of(key, url);
}

memory_stripe::entry* memory_stripe::selected(resource from, http::field_list request) {
    entry* newest = nullptr;
    for (auto& variant : from) {
        const auto& candidate = variant.response();
        if (!http::matches(candidate.vary(), candidate.selecting(), request)) {
            continue;
        }
        if (newest == nullptr ||
            candidate.freshness().response_time >= newest->response().freshness().response_time) {
            newest = &variant;
        }
    }
    return newest;
}

memory_stripe::entry* memory_stripe::variant_of(resource from, const stored_response& like) {
    for (auto& variant : from) {
        if (are_of_one_variant(variant.response(), like)) {
            return &variant;
        }
    }
    return nullptr;
}

memory_stripe::entry* memory_stripe::place_of(resource from, const stored_ptr& response) {
    for (auto& variant : from) {
        if (&variant.response() == response.get()) {
            return &variant;
        }
    }
    return nullptr;
}

// What is held under the key now.
void memory_stripe::tell(const filter::key_hash& key) const noexcept {
    if (told_ == nullptr) {
        return;
    }
    const auto left = entries.find(key);
    if (left.empty()) {
        told_->gone(holder::memory, key);
        return;
    }
    auto until = wall_time::min();
    for (const auto& variant : left) {
        const auto& one = variant.response();
        until = std::max(until, useful_until(one.freshness(), one.directives()));
    }
    told_->held(holder::memory, key, left.front().url(), until);
}

memory_entry_ptr memory_stripe::detach(entry& one) noexcept {
    auto gone = entries.take(one);
    tell(gone->key);
    return gone;
}

stored_ptr memory_stripe::remove(entry& one) noexcept {
    waiting -= one.to_go != 0 ? 1 : 0;
    held.leave(one);
    return detach(one)->exchange(nullptr);
}

stored_ptr memory_stripe::replace(entry& one, stored_ptr response) {
    const auto charge = charge_of(*response, one.url());
    if (charge != one.charge || response->wait() != one.wait()) {
        // A policy knows an entry's size and wait from its coming in. The place that it had earned goes
        // with it but for one use: seldom, since heads that are freshened keep their length.
        const auto as = residents::standing_of(one);
        const auto to_go = one.to_go;
        held.leave(one);
        one.charge = charge;
        one.set_wait(response->wait());
        try {
            held.enter(one, as, to_go);
        } catch (const std::bad_alloc&) {
            held.line_up(one);
            waiting += as == standing::admitted ? 1 : 0;
        }
        if (one.to_go == 0 && one.was_found()) {
            (void)held.use(one);
        }
    }
    auto before = one.exchange(std::move(response));
    tell(one.key);
    return before;
}

memory_stripe::placing memory_stripe::put(const filter::key_hash& key,
                                          std::string_view url,
                                          stored_ptr response,
                                          std::uint64_t checked,
                                          std::uint64_t most,
                                          std::size_t most_variants,
                                          standing as,
                                          unsigned uses_to_admit,
                                          std::uint32_t now,
                                          released& gone) {
    // Not remove(): what is held is told once, when all is done.
    const auto drop = [&](entry& old) {
        waiting -= old.to_go != 0 ? 1 : 0;
        held.leave(old);
        let_go(gone, entries.take(old)->exchange(nullptr));
    };
    auto found = entries.find(key);
    const bool is_another = !found.empty() && found.front().url() != url;
    while (is_another && !found.empty()) {
        drop(found.front());
        found = entries.find(key);
    }
    placing done;
    if (auto* const old = variant_of(found, *response)) {
        // What has earned its place keeps it, whatever the new one enters as.
        if (old->to_go == 0) {
            as = standing::admitted;
        }
        drop(*old);
        done.in_place = true;
        found = entries.find(key);
    }
    for (auto count = found.size(); count >= most_variants; --count) {
        drop(found.front());
        found = entries.find(key);
    }
    const auto charge = charge_of(*response, url);
    if (charge > most) {
        tell(key);
        return done;
    }
    entry* added = nullptr;
    try {
        added = &entries.add(entry::make(key, url));
        added->charge = charge;
        added->set_wait(response->wait());
        added->exchange(std::move(response));
        added->note_checked(checked);
        added->last_used = now;
        held.enter(*added, as, uses_to_admit);
    } catch (...) {
        if (added != nullptr) {
            (void)entries.take(*added);
        }
        tell(key);
        throw;
    }
    waiting += added->to_go != 0 ? 1 : 0;
    tell(key);
    done.fits = true;
    return done;
}

bool memory_stripe::can_hand_on() noexcept {
    try {
        handed_on.reserve(handed_on.size() + 1);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

bool memory_stripe::is_behind_handed(const filter::key_hash& key,
                                     const stored_response& newcomer) const {
    return std::any_of(handed_on.begin(), handed_on.end(), [&](const handed& one) {
        return one.key == key && are_of_one_variant(*one.what, newcomer) &&
               is_outdated_by(newcomer, *one.what);
    });
}

void memory_stripe::outrun(const filter::key_hash& key, const stored_response& newer) {
    for (auto& one : handed_on) {
        const bool is_met = one.key == key && one.what != &newer &&
                            are_of_one_variant(*one.what, newer);
        if (is_met && !(newer.parts() && are_of_one_representation(newer, *one.what))) {
            one.outrun = true;
        }
    }
}

void memory_stripe::outrun(const stored_response* one) noexcept {
    for (auto& each : handed_on) {
        each.outrun |= each.what == one;
    }
}

memory_stripe::evicted memory_stripe::evict(bool probation_first, const stripe_outlook& at) {
    plan_for(at);
    auto* chosen = held.evict(probation_first);
    if (chosen == nullptr) {
        return {};
    }
    auto& one = static_cast<entry&>(*chosen);
    const bool was_admitted = one.to_go == 0;
    waiting -= was_admitted ? 0 : 1;
    return {detach(one), was_admitted};
}

}  // namespace reprise::proxy::cache
