#include "proxy/cache/memory/memory_tier.hpp"

#include "proxy/base/relaxed.hpp"
#include "proxy/cache/memory/memory_stripes.hpp"
#include "proxy/cache/recency.hpp"

#include <algorithm>
#include <utility>

// What is found, put and taken out: each call is one visit to the stripe of its key, under whose lock it is judged
// what is newer, what was purged and what is on its way to the disk. What a put needs beyond the budget is
// made room for behind the visit (memory_tier_room.cpp), for it may have to leave another stripe.

namespace reprise::proxy::cache {

memory_tier::memory_tier(const memory_plan& plan)
    : stripes_{std::make_unique<stripes>(plan)},
      capacity_{plan.capacity},
      probation_{plan.probation} {
    for (std::size_t i = 0; i < stripes_->count; ++i) {
        locked_stripe{*this, i}.note_overhead();
    }
}

memory_tier::~memory_tier() = default;

lookup_result memory_tier::find(const filter::key_hash& key,
                                std::string_view url,
                                http::field_list request) const {
    locked_stripe home{*this, key};
    const auto found = home.settled(key, url);
    auto* one = memory_stripe::selected(found, request);
    if (one == nullptr) {
        home->held.missed(key);
        return {found.empty() ? lookup::absent : lookup::other_variant, nullptr};
    }
    one->note_found();
    one->last_used = tick_.load(relaxed);
    lookup_result result{lookup::present, one->held_response(), home->held.use(*one)};
    if (result.just_admitted) {
        // Under the lock, as in evict_one: a purge from now on is seen by whoever gives it to the disk.
        result.asked = {invalidated_keys_.count(key), purges_.epoch_of(one->checked())};
        --home->waiting;
        promoted_.fetch_add(1, relaxed);
        const auto parts = one->response().parts();
        promoted_bytes_.fetch_add(parts ? parts->bytes() : one->response().size(), relaxed);
        home.note_overhead();
    }
    return result;
}

std::vector<stored_ptr> memory_tier::variants(const filter::key_hash& key,
                                              std::string_view url) const {
    std::vector<stored_ptr> all;
    locked_stripe home{*this, key};
    for (const auto& variant : home->resource_of(key, url)) {
        auto response = variant.held_response();
        const auto since = purges_.epoch_of(variant.checked());
        const auto said = purges_.judge(url, response->tags(), since);
        if (said.hard) {
            continue;
        }
        if (said.soft) {
            response = ended_at(*response, *said.soft);
        }
        all.push_back(std::move(response));
    }
    return all;
}

lookup_result memory_tier::peek(const filter::key_hash& key,
                                std::string_view url,
                                http::field_list request) const {
    const auto all = variants(key, url);
    lookup_result out{all.empty() ? lookup::absent : lookup::other_variant, nullptr};
    for (const auto& one : all) {
        if (http::matches(one->vary(), one->selecting(), request) &&
            (!out.response ||
             one->freshness().response_time >= out.response->freshness().response_time)) {
            out = {lookup::present, one};
        }
    }
    return out;
}

invalidation_mark memory_tier::mark(const filter::key_hash& key) const {
    return {invalidated_keys_.count(key), purges_.epoch()};
}

bool memory_tier::put(const filter::key_hash& key,
                      std::string_view url,
                      stored_ptr response,
                      invalidation_mark asked,
                      standing as,
                      unsigned uses_to_admit,
                      handing* to) {
    return put_if(key, url, nullptr, std::move(response), asked, as, uses_to_admit, to) ==
           placement::stored;
}

bool memory_tier::put_over(const filter::key_hash& key,
                           std::string_view url,
                           const stored_ptr& expected,
                           stored_ptr response,
                           invalidation_mark asked,
                           standing as,
                           unsigned uses_to_admit,
                           handing* to) {
    return put_if(key, url, &expected, std::move(response), asked, as, uses_to_admit, to) ==
           placement::stored;
}

placement memory_tier::put_if(const filter::key_hash& key,
                              std::string_view url,
                              const stored_ptr* expected,
                              stored_ptr response,
                              invalidation_mark asked,
                              standing as,
                              unsigned uses_to_admit,
                              handing* to) {
    const auto needed = response->footprint();
    {
        locked_stripe home{*this, key};
        const auto* const older = memory_stripe::variant_of(home.settled(key, url), *response);
        if (expected != nullptr) {
            if ((older == nullptr ? nullptr : &older->response()) != expected->get()) {
                return placement::refused;
            }
        }
        const auto said = purges_.judge(url, response->tags(), asked.purges);
        if (!said.none() || invalidated_keys_.since(key, asked.count)) {
            refused_.fetch_add(1, relaxed);
            return placement::refused;
        }
        if ((older != nullptr && is_outdated_by(*response, older->response())) ||
            home->is_behind_handed(key, *response)) {
            refused_.fetch_add(1, relaxed);
            return placement::refused;
        }
        if (to != nullptr) {
            begin(*to, *home, key, response.get());
        }
        home->outrun(key, *response);
        const auto done = home->put(key,
                                    url,
                                    std::move(response),
                                    purges_.counted_from_start(said.checked),
                                    capacity_.load(relaxed),
                                    most_variants,
                                    as,
                                    uses_to_admit,
                                    tick_.load(relaxed),
                                    home.gone);
        home.note_overhead();
        if (!done.fits) {
            refused_.fetch_add(1, relaxed);
            return placement::too_large;
        }
        (done.in_place ? replaced_ : inserted_).fetch_add(1, relaxed);
    }
    make_room(needed);
    return placement::stored;
}

// With the stripe's lock held.
void memory_tier::begin(handing& to,
                        memory_stripe& home,
                        const filter::key_hash& key,
                        const stored_response* what) {
    home.handed_on.push_back({key, what});
    to.home_ = &home;
    to.what_ = what;
}

bool memory_tier::handing::end() noexcept {
    if (home_ == nullptr) {
        return false;
    }
    auto& home = *std::exchange(home_, nullptr);
    const std::lock_guard lock{home.guard};
    const auto at = std::find_if(home.handed_on.begin(),
                                 home.handed_on.end(),
                                 [this](const auto& one) { return one.what == what_; });
    const bool outrun = at->outrun;
    home.handed_on.erase(at);
    return outrun;
}

void memory_tier::hand_on(const filter::key_hash& key,
                          std::string_view url,
                          const stored_ptr& response,
                          handing& to) {
    locked_stripe home{*this, key};
    if (memory_stripe::place_of(home->resource_of(key, url), response) != nullptr) {
        begin(to, *home, key, response.get());
    }
}

bool memory_tier::freshen(const filter::key_hash& key,
                          std::string_view url,
                          const stored_ptr& current,
                          stored_ptr updated,
                          invalidation_mark asked) {
    const auto needed = updated->footprint();
    {
        locked_stripe home{*this, key};
        home->outrun(current.get());
        auto* kept = memory_stripe::place_of(home->resource_of(key, url), current);
        if (kept == nullptr) {
            return false;
        }
        const auto said = purges_.judge(url, updated->tags(), asked.purges);
        const auto since = purges_.epoch_of(kept->checked());
        if (!said.none() || !purges_.judge(url, current->tags(), since).none()) {
            return false;
        }
        kept->note_checked(purges_.counted_from_start(said.checked));
        home.let_go(home->replace(*kept, std::move(updated)));
        freshened_.fetch_add(1, relaxed);
    }
    make_room(needed);
    return true;
}

stored_ptr memory_tier::variant_of(const filter::key_hash& key,
                                   std::string_view url,
                                   const stored_response& like) const {
    locked_stripe home{*this, key};
    const auto* kept = memory_stripe::variant_of(home.settled(key, url), like);
    return kept == nullptr ? nullptr : kept->held_response();
}

stored_ptr memory_tier::ended_by(const filter::key_hash& key,
                                 std::string_view url,
                                 const newcomer& by) const {
    locked_stripe home{*this, key};
    for (const auto& variant : home.settled(key, url)) {
        if (puts_an_end_to(by, variant.response())) {
            return variant.held_response();
        }
    }
    return nullptr;
}

bool memory_tier::drop(const filter::key_hash& key,
                       std::string_view url,
                       const stored_ptr& outdated) {
    locked_stripe home{*this, key};
    home->outrun(outdated.get());
    auto* kept = memory_stripe::place_of(home->resource_of(key, url), outdated);
    if (kept == nullptr) {
        return false;
    }
    home.let_go(home->remove(*kept));
    invalidated_.fetch_add(1, relaxed);
    return true;
}

std::size_t memory_tier::invalidate(const filter::key_hash& key, std::string_view url) {
    locked_stripe home{*this, key};
    invalidated_keys_.note(key);
    std::size_t count = 0;
    for (auto left = home.settled(key, url); !left.empty(); left = home->resource_of(key, url)) {
        home.let_go(home->remove(left.front()));
        ++count;
    }
    invalidated_.fetch_add(count, relaxed);
    return count;
}

std::size_t memory_tier::expire(const filter::key_hash& key, std::string_view url, wall_time now) {
    locked_stripe home{*this, key};
    invalidated_keys_.note(key);
    const auto found = home.settled(key, url);
    memory_stripe::released ended;
    ended.reserve(found.size());
    for (const auto& variant : found) {
        ended.push_back(ended_at(variant.response(), now));
    }
    auto next = ended.begin();  // from here on nothing throws: all of them, or none
    for (auto& variant : found) {
        home.let_go(variant.exchange(std::move(*next++)));
    }
    return found.size();
}

}  // namespace reprise::proxy::cache
