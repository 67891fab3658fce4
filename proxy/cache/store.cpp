#include "proxy/cache/store.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

struct resource;

struct entry {
    stored_ptr response;
    resource* owner = nullptr;
    std::uint64_t charge = 0;
    bool used = false;          // SIEVE's mark
    std::uint64_t checked = 0;  // against the purges, up to this epoch
};

// In order of arrival, newest in front. A list, because an entry leaves from the middle without
// touching the others.
using queue = std::list<entry>;

struct resource {
    filter::key_hash key;
    std::string url;
    std::vector<queue::iterator> variants;  // least recently stored first
};

struct hash_of_key {
    std::size_t operator()(const filter::key_hash& key) const noexcept { return key.low; }
};

// What the index spends on one entry beside the response itself: the list node, its place in
// `variants` (which doubles, and begins with an allocation of its own), the resource's map node,
// two buckets (a table just grown is half empty) and the URL. The resource is charged to each
// variant: simpler than exact, never less.
std::uint64_t index_charge(const resource& r) noexcept {
    constexpr std::size_t list_node = heap_cost(sizeof(entry) + 2 * sizeof(void*));
    constexpr std::size_t place = heap_cost(2 * sizeof(queue::iterator));
    constexpr std::size_t map_node = heap_cost(sizeof(resource) + sizeof(filter::key_hash) +
                                               2 * sizeof(void*));
    constexpr std::size_t buckets = 2 * sizeof(void*);
    return list_node + place + map_node + buckets + heap_cost(r.url);
}

/// What a stripe changes beside itself when it drops what was purged.
struct account {
    const purge_list& purges;
    std::atomic<std::uint64_t>& used;
    std::atomic<std::uint64_t>& objects;
    std::atomic<std::uint64_t>& purged;
};

}  // namespace

struct response_store::stripe {
    mutable std::mutex guard;
    std::unordered_map<filter::key_hash, resource, hash_of_key> resources;
    queue entries;
    queue::iterator hand = entries.end();  // end(): starts at the oldest

    // The resource as the purges have left it, null if nothing is: what was not yet held against
    // the last of them is now. `gone` is for destroying after the lock.
    resource* settled(const filter::key_hash& key,
                      std::string_view url,
                      const account& sums,
                      std::vector<stored_ptr>& gone) {
        const auto it = resources.find(key);
        if (it == resources.end() || it->second.url != url) {
            return nullptr;
        }
        auto& owner = it->second;
        const auto epoch = sums.purges.epoch();
        const bool up_to_date = std::all_of(
            owner.variants.begin(), owner.variants.end(), [epoch](const auto& variant) {
                return variant->checked == epoch;
            });
        if (up_to_date) {
            return &owner;
        }
        const auto variants = owner.variants;
        auto left = variants.size();
        for (const auto& variant : variants) {
            const auto said = sums.purges.judge(url, variant->response->tags, variant->checked);
            variant->checked = said.checked;
            if (said.none()) {
                continue;
            }
            sums.purged.fetch_add(1, relaxed);
            if (said.hard) {
                std::uint64_t freed = 0;
                gone.push_back(remove(variant, freed));
                sums.used.fetch_sub(freed, relaxed);
                sums.objects.fetch_sub(1, relaxed);
                --left;
            } else {
                auto ended = ended_at(*variant->response, *said.soft);
                gone.push_back(std::exchange(variant->response, std::move(ended)));
            }
        }
        return left == 0 ? nullptr : &owner;  // the last took its owner with it
    }

    // The caller gets what was removed, to destroy it after the lock is gone.
    stored_ptr remove(queue::iterator it, std::uint64_t& charge) {
        auto& owner = *it->owner;
        std::erase(owner.variants, it);
        if (owner.variants.empty()) {
            resources.erase(owner.key);
        }
        charge += it->charge;
        if (hand == it) {
            hand = hand == entries.begin() ? entries.end() : std::prev(hand);
        }
        auto gone = std::move(it->response);
        entries.erase(it);
        return gone;
    }

    [[nodiscard]] stored_ptr variant_of(const filter::key_hash& key,
                                        std::string_view url,
                                        const stored_response& like) const {
        const auto it = resources.find(key);
        if (it == resources.end() || it->second.url != url) {
            return nullptr;
        }
        for (const auto& variant : it->second.variants) {
            const auto& kept = variant->response;
            if (kept->vary == like.vary && kept->selecting == like.selecting) {
                return kept;
            }
        }
        return nullptr;
    }

    // SIEVE: from the hand towards the newest, clear marks until one entry has none.
    queue::iterator victim() {
        auto it = hand;
        for (std::size_t steps = 0; steps <= 2 * entries.size(); ++steps) {
            if (it == entries.end()) {
                it = std::prev(entries.end());
            }
            if (!it->used) {
                break;
            }
            it->used = false;
            it = it == entries.begin() ? entries.end() : std::prev(it);
        }
        if (it == entries.end()) {
            it = std::prev(entries.end());
        }
        hand = it;
        return it;
    }
};

reservation& reservation::operator=(reservation&& other) noexcept {
    if (this != &other) {
        reset();
        store_ = std::exchange(other.store_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
}

bool reservation::grow_to(std::uint64_t bytes) {
    if (store_ == nullptr) {
        return false;
    }
    if (bytes <= bytes_) {
        return true;
    }
    const auto more = bytes - bytes_;
    const auto promised = store_->reserved_.fetch_add(more, relaxed) + more;
    if (promised > store_->capacity_.load(relaxed) / 4) {
        store_->reserved_.fetch_sub(more, relaxed);
        return false;
    }
    bytes_ = bytes;
    store_->make_room();
    return true;
}

void reservation::reset() noexcept {
    if (store_ != nullptr && bytes_ != 0) {
        store_->reserved_.fetch_sub(bytes_, relaxed);
    }
    bytes_ = 0;
}

response_store::response_store(std::uint64_t capacity_bytes)
    : stripes_{std::make_unique<stripe[]>(stripe_count)},
      capacity_{capacity_bytes} {}

response_store::~response_store() = default;

response_store::stripe& response_store::stripe_of(const filter::key_hash& key) const noexcept {
    return stripes_[key.high % stripe_count];
}

found response_store::find(const filter::key_hash& key,
                           std::string_view url,
                           http::field_list request) const {
    std::vector<stored_ptr> gone;
    auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    const auto* owner = home.settled(key, url, {purges_, used_, objects_, purged_}, gone);
    if (owner == nullptr) {
        return {};
    }
    entry* newest = nullptr;
    for (const auto& variant : owner->variants) {
        const auto& candidate = *variant->response;
        if (!http::matches(candidate.vary, candidate.selecting, request)) {
            continue;
        }
        if (newest == nullptr ||
            candidate.freshness.response_time >= newest->response->freshness.response_time) {
            newest = &*variant;
        }
    }
    if (newest == nullptr) {
        return {lookup::other_variant, nullptr};
    }
    newest->used = true;
    return {lookup::present, newest->response};
}

std::vector<stored_ptr> response_store::variants(const filter::key_hash& key,
                                                 std::string_view url) const {
    std::vector<stored_ptr> all;
    auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    const auto it = home.resources.find(key);
    if (it == home.resources.end() || it->second.url != url) {
        return all;
    }
    for (const auto& variant : it->second.variants) {
        auto response = variant->response;
        const auto said = purges_.judge(url, response->tags, variant->checked);
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

found response_store::peek(const filter::key_hash& key,
                           std::string_view url,
                           http::field_list request) const {
    const auto all = variants(key, url);
    found out{all.empty() ? lookup::absent : lookup::other_variant, nullptr};
    for (const auto& one : all) {
        if (http::matches(one->vary, one->selecting, request) &&
            (!out.response ||
             one->freshness.response_time >= out.response->freshness.response_time)) {
            out = {lookup::present, one};
        }
    }
    return out;
}

invalidation_mark response_store::mark(const filter::key_hash& key) const {
    return {invalidated_keys_.count(key), purges_.epoch()};
}

bool response_store::put(const filter::key_hash& key,
                         std::string_view url,
                         stored_ptr response,
                         invalidation_mark asked) {
    return put_if(key, url, nullptr, std::move(response), asked);
}

bool response_store::put_over(const filter::key_hash& key,
                              std::string_view url,
                              const stored_ptr& expected,
                              stored_ptr response,
                              invalidation_mark asked) {
    return put_if(key, url, &expected, std::move(response), asked);
}

bool response_store::put_if(const filter::key_hash& key,
                            std::string_view url,
                            const stored_ptr* expected,
                            stored_ptr response,
                            invalidation_mark asked) {
    std::vector<stored_ptr> gone;  // destroyed after the lock
    {
        auto& home = stripe_of(key);
        const std::lock_guard lock{home.guard};
        (void)home.settled(key, url, {purges_, used_, objects_, purged_}, gone);
        if (expected != nullptr && home.variant_of(key, url, *response) != *expected) {
            return false;
        }
        const auto said = purges_.judge(url, response->tags, asked.purges);
        if (!said.none() || invalidated_keys_.since(key, asked.count)) {
            refused_.fetch_add(1, relaxed);
            return false;
        }
        auto [it, is_new] = home.resources.try_emplace(key);
        auto& owner = it->second;
        std::uint64_t freed = 0;
        std::uint64_t removed = 0;
        const auto drop = [&](queue::iterator old) {
            // The last variant's removal would erase the resource under our feet: empty it by hand.
            freed += old->charge;
            ++removed;
            std::erase(owner.variants, old);
            if (home.hand == old) {
                home.hand = home.hand == home.entries.begin() ? home.entries.end()
                                                              : std::prev(home.hand);
            }
            gone.push_back(std::move(old->response));
            home.entries.erase(old);
        };
        if (is_new) {
            owner.key = key;
            owner.url = url;
        } else if (owner.url != url) {
            // Two URLs with one 128-bit hash: the newer wins, as for any full slot.
            while (!owner.variants.empty()) {
                drop(owner.variants.front());
            }
            owner.url = url;
        }
        bool in_place = false;
        for (std::size_t i = 0; i < owner.variants.size();) {
            const auto variant = owner.variants[i];
            if (variant->response->vary == response->vary &&
                variant->response->selecting == response->selecting) {
                drop(variant);
                in_place = true;
            } else {
                ++i;
            }
        }
        while (owner.variants.size() >= most_variants) {
            drop(owner.variants.front());
        }
        const auto charge = response->footprint() + index_charge(owner);
        if (charge > capacity_.load(relaxed)) {
            if (owner.variants.empty()) {
                home.resources.erase(key);
            }
            used_.fetch_sub(freed, relaxed);
            objects_.fetch_sub(removed, relaxed);
            refused_.fetch_add(1, relaxed);
            return false;
        }
        home.entries.push_front(entry{std::move(response), &owner, charge, false, said.checked});
        owner.variants.push_back(home.entries.begin());
        used_.fetch_add(charge, relaxed);
        used_.fetch_sub(freed, relaxed);
        objects_.fetch_add(1, relaxed);
        objects_.fetch_sub(removed, relaxed);
        (in_place ? replaced_ : inserted_).fetch_add(1, relaxed);
    }
    make_room();
    return true;
}

bool response_store::freshen(const filter::key_hash& key,
                             std::string_view url,
                             const stored_ptr& current,
                             stored_ptr updated,
                             invalidation_mark asked) {
    stored_ptr gone;
    {
        auto& home = stripe_of(key);
        const std::lock_guard lock{home.guard};
        const auto it = home.resources.find(key);
        if (it == home.resources.end() || it->second.url != url) {
            return false;
        }
        const auto& variants = it->second.variants;
        const auto place = std::find_if(variants.begin(), variants.end(), [&](const auto& variant) {
            return variant->response == current;
        });
        if (place == variants.end()) {
            return false;
        }
        auto& kept = **place;
        const auto said = purges_.judge(url, updated->tags, asked.purges);
        if (!said.none() || !purges_.judge(url, current->tags, kept.checked).none()) {
            return false;
        }
        kept.checked = said.checked;
        const auto charge = updated->footprint() + index_charge(it->second);
        used_.fetch_add(charge, relaxed);
        used_.fetch_sub(kept.charge, relaxed);
        kept.charge = charge;
        gone = std::exchange(kept.response, std::move(updated));
        freshened_.fetch_add(1, relaxed);
    }
    make_room();
    return true;
}

stored_ptr response_store::variant_of(const filter::key_hash& key,
                                      std::string_view url,
                                      const stored_response& like) const {
    std::vector<stored_ptr> gone;
    auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    (void)home.settled(key, url, {purges_, used_, objects_, purged_}, gone);
    return home.variant_of(key, url, like);
}

bool response_store::drop(const filter::key_hash& key,
                          std::string_view url,
                          const stored_ptr& outdated) {
    stored_ptr gone;
    auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    const auto it = home.resources.find(key);
    if (it == home.resources.end() || it->second.url != url) {
        return false;
    }
    const auto& variants = it->second.variants;
    const auto place = std::find_if(variants.begin(), variants.end(), [&](const auto& variant) {
        return variant->response == outdated;
    });
    if (place == variants.end()) {
        return false;
    }
    std::uint64_t freed = 0;
    gone = home.remove(*place, freed);
    used_.fetch_sub(freed, relaxed);
    objects_.fetch_sub(1, relaxed);
    invalidated_.fetch_add(1, relaxed);
    return true;
}

std::size_t response_store::invalidate(const filter::key_hash& key, std::string_view url) {
    std::vector<stored_ptr> gone;
    auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    invalidated_keys_.note(key);
    const auto* owner = home.settled(key, url, {purges_, used_, objects_, purged_}, gone);
    if (owner == nullptr) {
        return 0;
    }
    std::uint64_t freed = 0;
    const auto variants = owner->variants;  // the last takes its owner with it
    for (const auto& variant : variants) {
        gone.push_back(home.remove(variant, freed));
    }
    used_.fetch_sub(freed, relaxed);
    objects_.fetch_sub(variants.size(), relaxed);
    invalidated_.fetch_add(variants.size(), relaxed);
    return variants.size();
}

std::size_t response_store::expire(const filter::key_hash& key,
                                   std::string_view url,
                                   wall_time now) {
    std::vector<stored_ptr> gone;
    auto& home = stripe_of(key);
    const std::lock_guard lock{home.guard};
    invalidated_keys_.note(key);
    const auto* owner = home.settled(key, url, {purges_, used_, objects_, purged_}, gone);
    if (owner == nullptr) {
        return 0;
    }
    for (const auto& variant : owner->variants) {
        gone.push_back(std::exchange(variant->response, ended_at(*variant->response, now)));
    }
    return owner->variants.size();
}

void response_store::make_room() {
    // Bounded: each turn removes an entry or finds a stripe empty.
    std::size_t empty_stripes = 0;
    while (used_.load(relaxed) + reserved_.load(relaxed) > capacity_.load(relaxed) &&
           empty_stripes < stripe_count) {
        empty_stripes = evict_one() ? 0 : empty_stripes + 1;
    }
}

bool response_store::evict_one() {
    stored_ptr gone;
    auto& home = stripes_[next_stripe_.fetch_add(1, relaxed) % stripe_count];
    const std::lock_guard lock{home.guard};
    if (home.entries.empty()) {
        return false;
    }
    std::uint64_t freed = 0;
    gone = home.remove(home.victim(), freed);
    used_.fetch_sub(freed, relaxed);
    objects_.fetch_sub(1, relaxed);
    evicted_.fetch_add(1, relaxed);
    evicted_bytes_.fetch_add(freed, relaxed);
    return true;
}

void response_store::set_capacity(std::uint64_t bytes) {
    capacity_.store(bytes, relaxed);
    make_room();
}

store_figures response_store::figures() const noexcept {
    store_figures f;
    f.objects = objects_.load(relaxed);
    f.bytes = used_.load(relaxed);
    f.reserved = reserved_.load(relaxed);
    f.capacity = capacity_.load(relaxed);
    f.inserted = inserted_.load(relaxed);
    f.replaced = replaced_.load(relaxed);
    f.freshened = freshened_.load(relaxed);
    f.evicted = evicted_.load(relaxed);
    f.evicted_bytes = evicted_bytes_.load(relaxed);
    f.invalidated = invalidated_.load(relaxed);
    f.refused = refused_.load(relaxed);
    f.purged = purged_.load(relaxed);
    return f;
}

}  // namespace reprise::proxy::cache
