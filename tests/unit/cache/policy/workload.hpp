#pragma once
// Requests that a seed brings, and an owner of entries that plays them against a policy: what tests
// of eviction policies share.

#include "proxy/cache/policy/eviction.hpp"
#include "tests/unit/filter/keys.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace reprise::proxy::cache::test {

/// What the tests of single policies give them.
inline constexpr std::uint64_t policy_capacity = 20'000;

inline filter::key_hash key_of(std::uint64_t n) {
    return {.low = filter::test::mix(n), .high = filter::test::mix(~n)};
}

struct wish {
    std::uint64_t object = 0;
    std::uint64_t bytes = 0;
};

/// Skewed popularity over `objects`, sizes from 1 to about 1000 that an object keeps.
inline std::vector<wish> wishes(std::uint64_t seed, std::size_t count, std::uint64_t objects) {
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> unit{0, 1};
    std::vector<wish> out;
    for (std::size_t i = 0; i < count; ++i) {
        const auto skewed = std::pow(unit(random), 3.0);
        const auto object = static_cast<std::uint64_t>(skewed * static_cast<double>(objects));
        const auto bytes = 1 + key_of(object).high % 10 * (key_of(object).high >> 8) % 1000;
        out.push_back({object, bytes});
    }
    return out;
}

/// A cache of one policy, entries by object, capacity in bytes.
class owner {
public:
    struct entry : evictable {
        std::uint64_t object = 0;
    };

    owner(std::unique_ptr<eviction_policy> policy, std::uint64_t capacity)
        : policy_{std::move(policy)},
          capacity_{capacity} {}

    /// True: a hit. What leaves for it is in `left`.
    bool ask(const wish& wanted) {
        left.clear();
        if (const auto found = entries_.find(wanted.object); found != entries_.end()) {
            policy_->used(*found->second);
            return true;
        }
        policy_->missed(key_of(wanted.object));
        if (wanted.bytes <= capacity_) {
            auto fresh = std::make_unique<entry>();
            fresh->key = key_of(wanted.object);
            fresh->charge = wanted.bytes;
            fresh->object = wanted.object;
            fresh->set_wait(wait_of ? wait_of(wanted.object) : packed_wait{});
            bytes_ += wanted.bytes;
            policy_->inserted(*fresh);
            entries_.emplace(wanted.object, std::move(fresh));
        }
        while (bytes_ > capacity_) {
            evict();
        }
        return false;
    }

    /// The object that left; none if nothing was in.
    std::optional<std::uint64_t> evict() {
        auto* const gone = static_cast<entry*>(policy_->evict());
        if (gone == nullptr) {
            return std::nullopt;
        }
        const auto object = gone->object;
        bytes_ -= gone->charge;
        left.push_back(object);
        entries_.erase(object);
        return object;
    }

    void remove(std::uint64_t object) {
        const auto found = entries_.find(object);
        if (found != entries_.end()) {
            policy_->removed(*found->second);
            bytes_ -= found->second->charge;
            entries_.erase(found);
        }
    }

    [[nodiscard]] bool holds(std::uint64_t object) const { return entries_.contains(object); }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] eviction_policy& policy() { return *policy_; }

    std::function<packed_wait(std::uint64_t object)> wait_of;  ///< null: nobody has timed any
    std::vector<std::uint64_t> left;                           ///< during the last call, in order

private:
    std::unique_ptr<eviction_policy> policy_;
    std::uint64_t capacity_;
    std::uint64_t bytes_ = 0;
    std::map<std::uint64_t, std::unique_ptr<entry>> entries_;
};

/// What a slow, obvious model of a policy does; `play` holds the policy against it.
class slow_model {
public:
    virtual ~slow_model() = default;
    virtual bool ask(const wish& wanted, std::vector<std::uint64_t>& left) = 0;
    virtual void remove(std::uint64_t object) = 0;
};

/// The first request at which the two differ, in the answer or in what leaves; none.
/// Now and then an object is removed from both.
inline std::optional<std::size_t> first_difference(owner& fast,
                                                   slow_model& slow,
                                                   const std::vector<wish>& asked) {
    for (std::size_t i = 0; i < asked.size(); ++i) {
        std::vector<std::uint64_t> left;
        const bool hit = slow.ask(asked[i], left);
        if (fast.ask(asked[i]) != hit || fast.left != left) {
            return i;
        }
        if (i % 37 == 5) {
            const auto object = asked[i / 2].object;
            fast.remove(object);
            slow.remove(object);
        }
    }
    return std::nullopt;
}

}  // namespace reprise::proxy::cache::test
