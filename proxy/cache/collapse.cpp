#include "proxy/cache/collapse.hpp"

#include "proxy/base/recycled.hpp"

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

namespace {
struct listing {
    std::string url;
    std::shared_ptr<fetch> under_way;  // never null in the table
    promise said;                      // ends with the lock held, so that the next comes after it
};
struct hash_of_key {
    std::size_t operator()(const filter::key_hash& key) const noexcept { return key.low; }
};
}  // namespace

struct collapse_table::stripe {
    mutable std::mutex guard;
    using entry = std::pair<const filter::key_hash, listing>;
    std::unordered_map<filter::key_hash, listing, hash_of_key, std::equal_to<>, recycled<entry>>
        listed;
};

collapse_table::collapse_table(contents_listener* told)
    : told_{told},
      stripes_{std::make_unique<stripe[]>(stripe_count)} {}
collapse_table::~collapse_table() = default;

collapse_table::place collapse_table::join_or_lead(const filter::key_hash& key,
                                                   std::string_view url,
                                                   const net::wakeup::signal& sleeper,
                                                   const fetch_limits& limits) {
    place result;
    listing next;  // or what it replaces: destroyed after the lock
    auto& home = stripes_[key.high % stripe_count];
    const std::lock_guard lock{home.guard};
    if (const auto it = home.listed.find(key); it != home.listed.end() && it->second.url == url) {
        result.reader = fetch::join(it->second.under_way, sleeper, result.head_known);
        if (result.reader) {
            return result;
        }
        result.pending_sights = it->second.under_way->pending_sights();
    }
    // Listed is only what is whole: whatever throws here leaves the table as it was.
    next.url = url;
    next.under_way = fetch::make(limits);
    result.leads = true;
    result.reader = fetch::join(next.under_way, sleeper, result.head_known);
    std::swap(home.listed[key], next);
    next.said = {};
    return result;
}

std::unique_ptr<fetch_reader> collapse_table::join_kept(const filter::key_hash& key,
                                                        std::string_view url,
                                                        const net::wakeup::signal& sleeper) {
    const auto found = find(key, url);
    return found ? fetch::join_for_sibling(found, sleeper) : nullptr;
}

void collapse_table::promise_stored(const filter::key_hash& key,
                                    const std::shared_ptr<fetch>& under_way,
                                    wall_time until) {
    if (told_ == nullptr) {
        return;
    }
    auto& home = stripes_[key.high % stripe_count];
    const std::lock_guard lock{home.guard};
    const auto it = home.listed.find(key);
    if (it == home.listed.end() || it->second.under_way != under_way) {
        return;
    }
    if (!under_way->may_serve_siblings()) {
        it->second.said = {};
    } else if (!it->second.said) {
        it->second.said = promise{*told_, key, it->second.url, until};
    }
}

void collapse_table::take_back(const filter::key_hash& key,
                               const std::shared_ptr<fetch>& under_way) {
    if (told_ == nullptr) {
        return;
    }
    auto& home = stripes_[key.high % stripe_count];
    const std::lock_guard lock{home.guard};
    const auto it = home.listed.find(key);
    if (it != home.listed.end() && it->second.under_way == under_way) {
        it->second.said = {};
    }
}

void collapse_table::remove(const filter::key_hash& key, const std::shared_ptr<fetch>& over) {
    std::shared_ptr<fetch> removed;
    auto& home = stripes_[key.high % stripe_count];
    const std::lock_guard lock{home.guard};
    const auto it = home.listed.find(key);
    if (it != home.listed.end() && it->second.under_way == over) {
        removed = std::move(it->second.under_way);
        home.listed.erase(it);
    }
}

void collapse_table::forget(const filter::key_hash& key, std::string_view url) {
    std::shared_ptr<fetch> removed;
    {
        auto& home = stripes_[key.high % stripe_count];
        const std::lock_guard lock{home.guard};
        const auto it = home.listed.find(key);
        if (it == home.listed.end() || it->second.url != url) {
            return;
        }
        removed = std::move(it->second.under_way);
        home.listed.erase(it);
    }
    removed->keep_no_more();
}

void collapse_table::unlist_if(const std::function<bool(std::string_view url)>& purged) {
    for (std::size_t i = 0; i < stripe_count; ++i) {
        std::vector<std::shared_ptr<fetch>> removed;  // destroyed after the lock
        auto& home = stripes_[i];
        const std::lock_guard lock{home.guard};
        for (auto it = home.listed.begin(); it != home.listed.end();) {
            if (purged(it->second.url)) {
                removed.push_back(std::move(it->second.under_way));
                it = home.listed.erase(it);
            } else {
                ++it;
            }
        }
    }
}

std::shared_ptr<fetch> collapse_table::find(const filter::key_hash& key,
                                            std::string_view url) const {
    const auto& home = stripes_[key.high % stripe_count];
    const std::lock_guard lock{home.guard};
    const auto it = home.listed.find(key);
    return it != home.listed.end() && it->second.url == url ? it->second.under_way : nullptr;
}

std::size_t collapse_table::size() const {
    std::size_t all = 0;
    for (std::size_t i = 0; i < stripe_count; ++i) {
        const std::lock_guard lock{stripes_[i].guard};
        all += stripes_[i].listed.size();
    }
    return all;
}

}  // namespace reprise::proxy::cache
