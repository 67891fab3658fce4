#include "proxy/cache/policy/sieve.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <list>
#include <vector>

using namespace reprise::proxy::cache;
using namespace reprise::proxy::cache::test;

namespace {

// As in the paper's figure: newest in front, the hand goes from the back to the front, and room is
// made before the newcomer is in.
class slow_sieve final : public slow_model {
public:
    bool ask(const wish& wanted, std::vector<std::uint64_t>& left) override {
        const auto at = find(wanted.object);
        if (at != entries_.end()) {
            at->marked = true;
            return true;
        }
        if (wanted.bytes > policy_capacity) {
            return false;
        }
        while (bytes_ + wanted.bytes > policy_capacity) {
            if (hand_ == entries_.end()) {
                hand_ = std::prev(entries_.end());
            }
            while (hand_->marked) {
                hand_->marked = false;
                hand_ = hand_ == entries_.begin() ? std::prev(entries_.end()) : std::prev(hand_);
            }
            left.push_back(hand_->what.object);
            erase(hand_);
        }
        entries_.push_front({wanted, false});
        bytes_ += wanted.bytes;
        return false;
    }
    void remove(std::uint64_t object) override {
        if (const auto at = find(object); at != entries_.end()) {
            erase(at);
        }
    }

private:
    struct node {
        wish what;
        bool marked;
    };
    std::list<node>::iterator find(std::uint64_t object) {
        return std::find_if(entries_.begin(), entries_.end(), [object](const node& one) {
            return one.what.object == object;
        });
    }
    void erase(std::list<node>::iterator at) {
        bytes_ -= at->what.bytes;
        if (hand_ == at) {
            hand_ = at == entries_.begin() ? entries_.end() : std::prev(at);
        }
        entries_.erase(at);
    }
    std::list<node> entries_;
    std::list<node>::iterator hand_ = entries_.end();
    std::uint64_t bytes_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("cache/policy/sieve");

TEST_CASE("SIEVE does what the paper's queue and hand do") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        owner fast{std::make_unique<sieve_policy>(), policy_capacity};
        slow_sieve slow;
        CHECK_FALSE(first_difference(fast, slow, wishes(seed, 4'000, 400)).has_value());
    }
}

TEST_CASE("the hand goes on where it was, and survivors keep their place") {
    owner cache{std::make_unique<sieve_policy>(), 300};
    cache.ask({1, 100});
    cache.ask({2, 100});
    cache.ask({3, 100});
    cache.ask({1, 100});
    cache.ask({4, 100});  // the hand clears 1 and takes 2
    CHECK(cache.left == std::vector<std::uint64_t>{2});
    cache.ask({5, 100});  // on to 3, though 1 is older and unmarked now
    CHECK(cache.left == std::vector<std::uint64_t>{3});
}

TEST_CASE("a newcomer does not leave for itself, however much in use the others are") {
    owner cache{std::make_unique<sieve_policy>(), 300};
    for (int round = 0; round < 2; ++round) {
        cache.ask({1, 100});
        cache.ask({2, 100});
        cache.ask({3, 100});
    }
    cache.ask({4, 100});  // the hand clears all three, and takes the oldest
    CHECK(cache.left == std::vector<std::uint64_t>{1});
    CHECK(cache.holds(4));
}

TEST_CASE(
    "when the hand took the youngest, it begins again at the oldest and not at the newcomer") {
    owner cache{std::make_unique<sieve_policy>(), 300};
    cache.ask({1, 100});
    cache.ask({2, 100});
    cache.ask({3, 100});
    cache.ask({1, 100});
    cache.ask({2, 100});
    cache.ask({4, 100});  // the hand clears 1 and 2, and takes 3
    CHECK(cache.left == std::vector<std::uint64_t>{3});
    cache.ask({5, 100});
    CHECK(cache.left == std::vector<std::uint64_t>{1});
    CHECK(cache.holds(4));
}

TEST_CASE("a newcomer leaves when nothing else is in") {
    owner cache{std::make_unique<sieve_policy>(), 300};
    cache.ask({1, 100});
    CHECK(cache.evict() == 1);
    CHECK_FALSE(cache.evict().has_value());
    cache.ask({2, 300});
    cache.ask({2, 300});
    CHECK(cache.evict() == 2);
}

TEST_CASE("one eviction clears no more than so many marks, however many there are") {
    std::vector<evictable> entries(200'000);
    sieve_policy policy;
    for (auto& entry : entries) {
        policy.inserted(entry);
        policy.used(entry);
    }
    const auto marked = [&entries] {
        return std::count_if(
            entries.begin(), entries.end(), [](const evictable& one) { return one.uses != 0; });
    };
    const auto before = marked();
    const auto* const first = policy.evict();
    CHECK(before - marked() == most_passed);
    CHECK(first == &entries[most_passed]);
    // The hand goes on behind it.
    CHECK(policy.evict() == &entries[2 * most_passed + 1]);
}

TEST_CASE("the newcomer is not whom the hand takes after so many marks") {
    std::vector<evictable> entries(most_passed);
    sieve_policy policy;
    for (auto& entry : entries) {
        policy.inserted(entry);
        policy.used(entry);
    }
    policy.missed({});
    evictable newcomer;
    policy.inserted(newcomer);
    policy.used(newcomer);
    CHECK(policy.evict() == &entries[0]);
}

TEST_SUITE_END();
