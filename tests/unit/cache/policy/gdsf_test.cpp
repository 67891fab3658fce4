#include "proxy/cache/policy/gdsf.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

using namespace reprise::proxy::cache;
using namespace reprise::proxy::cache::test;

namespace {

// Every entry's worth in a map; the least is looked for.
class slow_gdsf final : public slow_model {
public:
    explicit slow_gdsf(double exponent) : exponent_{exponent} {}

    bool ask(const wish& wanted, std::vector<std::uint64_t>& left) override {
        if (const auto at = entries_.find(wanted.object); at != entries_.end()) {
            ++at->second.requests;
            value(at->second);
            return true;
        }
        auto& fresh = entries_[wanted.object];
        fresh.bytes = wanted.bytes;
        value(fresh);
        for (;;) {
            std::uint64_t bytes = 0;
            auto least = entries_.begin();
            for (auto at = entries_.begin(); at != entries_.end(); ++at) {
                bytes += at->second.bytes;
                least = at->second.worth < least->second.worth ? at : least;
            }
            if (bytes <= policy_capacity) {
                return false;
            }
            inflation_ = least->second.worth;
            left.push_back(least->first);
            entries_.erase(least);
        }
    }
    void remove(std::uint64_t object) override { entries_.erase(object); }

private:
    struct entry {
        std::uint64_t bytes = 0;
        double requests = 1;
        double worth = 0;
    };
    void value(entry& one) const {
        one.worth = inflation_ +
                    std::min(one.requests, 256.0) / std::pow(double(one.bytes), exponent_);
    }
    double exponent_;
    double inflation_ = 0;
    std::map<std::uint64_t, entry> entries_;
};

/// Sizes all different in a way that no two entries are worth the same.
std::vector<wish> unequal_wishes(std::uint64_t seed, std::size_t count) {
    auto out = wishes(seed, count, 300);
    for (auto& one : out) {
        one.bytes = 97 + 7 * one.object;
    }
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("cache/policy/gdsf");

TEST_CASE("GDSF evicts the least of all worths, whatever the exponent") {
    for (const double exponent : {1.0, 0.4}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            CAPTURE(exponent);
            CAPTURE(seed);
            owner fast{std::make_unique<gdsf_policy>(exponent), policy_capacity};
            slow_gdsf slow{exponent};
            CHECK_FALSE(first_difference(fast, slow, unequal_wishes(seed, 3'000)).has_value());
        }
    }
}

TEST_CASE("with exponent 1 a large object leaves before a newcomer, with 0 the newcomer does") {
    for (const double exponent : {1.0, 0.0}) {
        CAPTURE(exponent);
        owner cache{std::make_unique<gdsf_policy>(exponent), 350};
        for (const auto& one : {wish{1, 100}, wish{1, 100}, wish{2, 200}, wish{2, 200}}) {
            cache.ask(one);
        }
        cache.ask({3, 60});
        const std::uint64_t leaves = exponent == 1 ? 2 : 3;
        CHECK(cache.left == std::vector<std::uint64_t>{leaves});
    }
}

TEST_CASE(
    "after another exponent what is used is ranked by it, and no entry is lost or kept for ever") {
    for (const double next : {0.0, 1.0}) {
        CAPTURE(next);
        auto made = std::make_unique<gdsf_policy>(0.5);
        auto& policy = *made;
        owner cache{std::move(made), 10'000};
        for (std::uint64_t n = 0; n < 300; ++n) {
            cache.ask({n, 60 + n % 80});
        }
        policy.set_exponent(next);
        // A large one and a small one asked for as often: which of them stays is the exponent's.
        for (std::uint64_t n = 0; n < 200; ++n) {
            cache.ask({1'000 + n, 60 + n % 80});
        }
        for (std::uint64_t n = 0; n < 300; ++n) {
            CHECK_FALSE(cache.holds(n));
        }
    }
}

TEST_CASE("what was popular long ago is overtaken") {
    owner cache{std::make_unique<gdsf_policy>(), 1'000};
    for (int i = 0; i < 50; ++i) {
        cache.ask({1, 100});
    }
    std::uint64_t asked = 0;
    while (cache.holds(1)) {
        cache.ask({1'000 + asked, 100});
        REQUIRE(++asked < 1'000);
    }
    CHECK(asked > 100);
}

TEST_CASE("with a sketch an entry is worth what was asked for before it came in too") {
    frequency_sketch sketch{1'000};
    owner cache{std::make_unique<gdsf_policy>(1.0, &sketch), 200};
    for (int i = 0; i < 5; ++i) {
        sketch.note(key_of(1));
    }
    sketch.note(key_of(2));
    sketch.note(key_of(3));
    cache.ask({1, 100});
    cache.ask({2, 100});
    cache.ask({3, 100});
    CHECK(cache.holds(1));
}

TEST_CASE(
    "by wait, what took a hundred times as long stays though it is asked for ten times less") {
    for (const bool by_wait : {false, true}) {
        CAPTURE(by_wait);
        gdsf_policy policy{0.3, nullptr, by_wait};
        evictable fast, slow;
        for (auto* one : {&fast, &slow}) {
            one->charge = 100;
        }
        fast.set_wait(packed_wait{std::chrono::milliseconds{5}});
        slow.set_wait(packed_wait{std::chrono::milliseconds{500}});
        policy.inserted(fast);
        policy.inserted(slow);
        for (int i = 0; i < 10; ++i) {
            policy.used(fast);
        }
        CHECK(policy.evict() == (by_wait ? &fast : &slow));
    }
}

TEST_CASE(
    "by wait, what nobody timed is worth the mean, and no stall is worth more than ten seconds") {
    gdsf_policy policy{0, nullptr, true};
    std::vector<evictable> all(300);
    const auto wait_of = [](std::size_t i) {
        return i < 100   ? packed_wait{std::chrono::milliseconds{50}}
               : i < 200 ? packed_wait{}
                         : packed_wait{std::chrono::milliseconds{150}};
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto at = i * 7 % all.size();  // mixed
        all[at].charge = 1;
        all[at].set_wait(wait_of(at));
        policy.inserted(all[at]);
    }
    for (std::size_t i = 0; i < 100; ++i) {
        CHECK(policy.evict()->wait() == wait_of(0));
    }
    for (std::size_t i = 0; i < 100; ++i) {
        CHECK_FALSE(policy.evict()->wait().is_known());
    }
    evictable minute, ten_seconds;
    minute.set_wait(packed_wait{std::chrono::minutes{1}});
    ten_seconds.set_wait(packed_wait{std::chrono::seconds{10}});
    CHECK(minute.wait() == ten_seconds.wait());
}

TEST_CASE("by wait, uses beyond what a sketch counts make up for a fast origin; else they do not") {
    for (const bool by_wait : {false, true}) {
        CAPTURE(by_wait);
        frequency_sketch sketch{1'000};
        gdsf_policy policy{1, &sketch, by_wait};
        evictable often, slow;
        often.key = key_of(1);
        slow.key = key_of(2);
        often.set_wait(packed_wait{std::chrono::milliseconds{5}});
        slow.set_wait(packed_wait{std::chrono::milliseconds{500}});
        often.charge = slow.charge = 100;
        for (auto* one : {&often, &slow}) {
            sketch.note(one->key);
            policy.inserted(*one);
        }
        for (int i = 0; i < 150; ++i) {
            sketch.note(often.key);
            policy.used(often);
        }
        CHECK(sketch.estimate(often.key) <= frequency_sketch::most);
        CHECK(policy.evict() == &slow);
    }
}

TEST_CASE("without it, waits change nothing") {
    owner plain{std::make_unique<gdsf_policy>(0.4), policy_capacity};
    owner other{std::make_unique<gdsf_policy>(0.4), policy_capacity};
    other.wait_of = [](std::uint64_t object) {
        return packed_wait::of_code(object % (packed_wait::most_code + 1));
    };
    for (const auto& one : unequal_wishes(9, 3'000)) {
        CHECK(plain.ask(one) == other.ask(one));
        CHECK(plain.left == other.left);
    }
}

TEST_CASE("a heap takes what its entries want, not what they once were") {
    gdsf_policy policy;
    std::vector<evictable> entries(20'000);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        entries[i].key = key_of(i);
        entries[i].charge = 100 + i;
        policy.inserted(entries[i]);
    }
    CHECK(policy.overhead() >= 20'000 * sizeof(void*));
    for (int i = 0; i < 19'900; ++i) {
        REQUIRE(policy.evict() != nullptr);
    }
    CHECK(policy.overhead() < 6'000);
    for (int i = 0; i < 100; ++i) {
        REQUIRE(policy.evict() != nullptr);
    }
    CHECK(policy.evict() == nullptr);
}

TEST_SUITE_END();
