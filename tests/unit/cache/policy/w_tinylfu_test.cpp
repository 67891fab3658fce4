#include "proxy/cache/policy/w_tinylfu.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <list>
#include <map>

using namespace reprise::proxy::cache;
using namespace reprise::proxy::cache::test;

namespace {

// Three lists and a sketch of its own, which is asked the same. Window fixed at 1 %.
class slow_w_tinylfu final : public slow_model {
public:
    bool ask(const wish& wanted, std::vector<std::uint64_t>& left) override {
        sketch_.note(key_of(wanted.object));
        if (move_up(wanted.object)) {
            return true;
        }
        if (wanted.bytes > policy_capacity) {
            return false;
        }
        sketch_.grow_to(window_.size() + probation_.size() + protected_.size() + 1);
        window_.push_front(wanted);
        while (sum(window_) + main() > policy_capacity) {
            evict(left);
        }
        return false;
    }
    void remove(std::uint64_t object) override {
        for (auto* list : {&window_, &probation_, &protected_}) {
            list->remove_if([object](const wish& one) { return one.object == object; });
        }
    }

private:
    using lru = std::list<wish>;
    static constexpr std::uint64_t window_room = policy_capacity / 100;
    static constexpr std::uint64_t main_room = policy_capacity - window_room;

    static std::uint64_t sum(const lru& list) {
        std::uint64_t bytes = 0;
        for (const auto& one : list) {
            bytes += one.bytes;
        }
        return bytes;
    }
    [[nodiscard]] std::uint64_t main() const { return sum(probation_) + sum(protected_); }

    bool move_up(std::uint64_t object) {
        for (auto* list : {&window_, &probation_, &protected_}) {
            for (auto at = list->begin(); at != list->end(); ++at) {
                if (at->object != object) {
                    continue;
                }
                auto& into = list == &probation_ ? protected_ : *list;
                into.splice(into.begin(), *list, at);
                if (list == &probation_) {
                    const auto room = static_cast<std::uint64_t>(static_cast<double>(main_room) *
                                                                 0.8);
                    while (sum(protected_) > room && protected_.back().object != object) {
                        probation_.splice(
                            probation_.begin(), protected_, std::prev(protected_.end()));
                    }
                }
                return true;
            }
        }
        return false;
    }

    void evict(std::vector<std::uint64_t>& left) {
        const auto drop_last = [&left](lru& list) {
            left.push_back(list.back().object);
            list.pop_back();
        };
        for (;;) {
            auto& victims = probation_.empty() ? protected_ : probation_;
            if (window_.empty() || (sum(window_) <= window_room && !victims.empty())) {
                drop_last(victims);
                return;
            }
            const auto candidate = window_.back();
            if (sum(window_) > window_room && main() + candidate.bytes <= main_room) {
                probation_.splice(probation_.begin(), window_, std::prev(window_.end()));
                continue;
            }
            unsigned against = 0;
            std::uint64_t freed = 0;
            std::vector<wish> order(probation_.rbegin(), probation_.rend());
            order.insert(order.end(), protected_.rbegin(), protected_.rend());
            for (const auto& victim : order) {
                if (main() + candidate.bytes <= main_room + freed) {
                    break;
                }
                against += sketch_.estimate(key_of(victim.object));
                freed += victim.bytes;
            }
            const bool wins = !victims.empty() && candidate.bytes <= main_room &&
                              sketch_.estimate(key_of(candidate.object)) > against;
            if (!wins && !victims.empty()) {
                victims.splice(victims.begin(), victims, std::prev(victims.end()));
            }
            drop_last(wins ? victims : window_);
            return;
        }
    }

    frequency_sketch sketch_{1'024};
    lru window_, probation_, protected_;
};

std::unique_ptr<w_tinylfu_policy> fixed_window() {
    return std::make_unique<w_tinylfu_policy>(policy_capacity, w_tinylfu_policy::window::fixed);
}

}  // namespace

TEST_SUITE_BEGIN("cache/policy/w_tinylfu");

TEST_CASE("W-TinyLFU does what three lists and a sketch do") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        owner fast{fixed_window(), policy_capacity};
        slow_w_tinylfu slow;
        CHECK_FALSE(first_difference(fast, slow, wishes(seed, 3'000, 400)).has_value());
    }
}

TEST_CASE("a stranger does not displace what was asked for more often") {
    owner cache{fixed_window(), policy_capacity};
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t object = 0; object < 200; ++object) {
            cache.ask({object, 100});
        }
    }
    for (std::uint64_t object = 1'000; object < 1'500; ++object) {
        cache.ask({object, 100});
    }
    std::size_t left = 0;
    for (std::uint64_t object = 0; object < 200; ++object) {
        left += cache.holds(object) ? 1u : 0u;
    }
    CHECK(left >= 196);  // all that main has room for, but for the few beside the window
}

TEST_CASE("a large stranger must outdo all that it would push out") {
    owner cache{fixed_window(), policy_capacity};
    for (std::uint64_t object = 0; object < 200; ++object) {
        cache.ask({object, 100});
        cache.ask({object, 100});
    }
    cache.ask({1'000, 10'000});
    cache.ask({1'001, 100});
    CHECK_FALSE(cache.holds(1'000));
    // More often than any one of them, and yet not than all hundred.
    for (int i = 0; i < 10; ++i) {
        cache.ask({1'000, 10'000});
        cache.ask({1'001 + static_cast<std::uint64_t>(i), 100});
    }
    CHECK_FALSE(cache.holds(1'000));
}

TEST_CASE("a large stranger that does not outdo them is turned away before it comes") {
    owner cache{fixed_window(), policy_capacity};
    CHECK(cache.policy().takes(key_of(1'000), 10'000));  // there is room
    for (std::uint64_t object = 0; object < 210; ++object) {
        cache.ask({object, 100});
        cache.ask({object, 100});
    }
    CHECK(cache.policy().takes(key_of(1'000), 100));  // the window takes anybody
    CHECK_FALSE(cache.policy().takes(key_of(1'000), 300));
    CHECK_FALSE(cache.policy().takes(key_of(1'000), 2 * policy_capacity));
    for (int i = 0; i < 14; ++i) {
        cache.policy().missed(key_of(1'000));
    }
    CHECK(cache.policy().takes(key_of(1'000), 300));
    CHECK_FALSE(cache.policy().takes(key_of(1'000), 10'000));
    CHECK(cache.size() == 200);  // nobody left for a question
}

TEST_CASE("a large stranger is held against those too that have not yet left the window") {
    owner cache{fixed_window(), policy_capacity};
    for (std::uint64_t object = 0; object < 190; ++object) {
        cache.ask({object, 100});
        cache.ask({object, 100});
    }
    cache.policy().expect(2'000);
    CHECK_FALSE(cache.policy().takes(key_of(1'000), 2'000));
    CHECK(cache.policy().takes(key_of(1'000), 500));  // for so much there is room
}

TEST_CASE("what is expected counts as new: of those in the window somebody goes for it") {
    owner cache{fixed_window(), policy_capacity};
    for (std::uint64_t object = 0; object < 200; ++object) {
        cache.ask({object, 100});
        cache.ask({object, 100});
    }
    cache.ask({1'000, 150});
    REQUIRE(cache.holds(1'000));
    cache.policy().expect(100);
    CHECK(cache.evict() == 1'000);
    cache.policy().expect(0);
    CHECK(cache.evict() != 1'000);
}

TEST_CASE("preference is above 1 while there is room, and for what was asked for more often") {
    w_tinylfu_policy policy{1'000, w_tinylfu_policy::window::fixed};
    CHECK(policy.preference(key_of(1), 100) > 1);
    owner cache{std::make_unique<w_tinylfu_policy>(1'000, w_tinylfu_policy::window::fixed), 1'000};
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t object = 0; object < 11; ++object) {
            cache.ask({object, 100});
        }
    }
    CHECK(cache.policy().preference(key_of(99), 100) < 1);
    for (int i = 0; i < 14; ++i) {
        cache.policy().missed(key_of(99));
    }
    CHECK(cache.policy().preference(key_of(99), 100) > 1);
    CHECK(cache.policy().preference(key_of(99), 900) < 1);
}

TEST_CASE("the window grows where only what is new is asked for again") {
    // Each object is asked for a few times, soon after one another, and never again: what
    // frequency knows of the past is worth nothing. Seeds nothing: the sequence is fixed.
    auto policy = std::make_unique<w_tinylfu_policy>(policy_capacity);
    const auto& climbing = *policy;
    owner cache{std::move(policy), policy_capacity};
    for (std::uint64_t i = 0; i < 150'000; ++i) {
        const auto object = i % 3 == 0 || i < 120 ? i / 3 : i / 3 - i % 40;
        cache.ask({object, 100});
    }
    CHECK(climbing.window_share() > 0.01);
    CHECK(climbing.window_share() <= 0.8);
}

TEST_CASE("a fixed window stays as it is") {
    w_tinylfu_policy policy{policy_capacity, w_tinylfu_policy::window::fixed};
    for (std::uint64_t i = 0; i < 50'000; ++i) {
        policy.missed(key_of(i));
    }
    CHECK(policy.window_share() == 0.01);
}

TEST_SUITE_END();
