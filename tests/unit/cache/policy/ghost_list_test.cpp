#include "proxy/cache/policy/ghost_list.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <random>
#include <utility>

using namespace reprise::proxy::cache;
using test::key_of;

TEST_SUITE_BEGIN("cache/policy/ghost_list");

TEST_CASE("ghosts leave in the order in which they came, by bytes") {
    ghost_list ghosts;
    ghosts.set_budget(100);
    ghosts.add(key_of(1), 40);
    ghosts.add(key_of(2), 40);
    ghosts.add(key_of(3), 40);
    CHECK_FALSE(ghosts.contains(key_of(1)));
    CHECK(ghosts.contains(key_of(2)));
    CHECK(ghosts.contains(key_of(3)));
    CHECK(ghosts.bytes() == 80);
    ghosts.set_budget(50);
    CHECK_FALSE(ghosts.contains(key_of(2)));
    CHECK(ghosts.size() == 1);
}

TEST_CASE("a ghost that comes again is the newest, and counted once") {
    ghost_list ghosts;
    ghosts.set_budget(100);
    ghosts.add(key_of(1), 40);
    ghosts.add(key_of(2), 40);
    ghosts.add(key_of(1), 50);
    CHECK(ghosts.bytes() == 90);
    ghosts.add(key_of(3), 40);
    CHECK_FALSE(ghosts.contains(key_of(2)));
    CHECK(ghosts.contains(key_of(1)));
}

TEST_CASE("one larger than the budget is not kept and displaces nobody") {
    ghost_list ghosts;
    ghosts.set_budget(100);
    ghosts.add(key_of(1), 40);
    ghosts.add(key_of(2), 101);
    CHECK(ghosts.contains(key_of(1)));
    CHECK_FALSE(ghosts.contains(key_of(2)));
}

TEST_CASE("an empty list knows nobody and gives nobody") {
    ghost_list ghosts;
    CHECK_FALSE(ghosts.contains(key_of(1)));
    CHECK_FALSE(ghosts.take(key_of(1)));
    ghosts.drop_oldest();
    CHECK(ghosts.size() == 0);
}

TEST_CASE("any mix of calls does what a plain queue does") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 random{seed};
        ghost_list fast;
        std::deque<std::pair<std::uint64_t, std::uint64_t>> slow;  // newest in front
        const auto forget = [&slow](std::uint64_t key) {
            return std::erase_if(slow, [key](const auto& one) { return one.first == key; }) != 0;
        };
        const auto bytes = [&slow] {
            std::uint64_t sum = 0;
            for (const auto& one : slow) {
                sum += one.second;
            }
            return sum;
        };
        std::uint64_t budget = 3'000;
        fast.set_budget(budget);
        for (int step = 0; step < 3'000; ++step) {
            const auto key = random() % 200;
            switch (random() % 8) {
            case 0: CHECK(fast.take(key_of(key)) == forget(key)); break;
            case 1:
                fast.drop_oldest();
                if (!slow.empty()) {
                    slow.pop_back();
                }
                break;
            case 2:
                if (step % 50 == 0) {
                    budget = random() % 4'000;
                    fast.set_budget(budget);
                }
                break;
            default: {
                const auto size = random() % 100;
                fast.add(key_of(key), size);
                forget(key);
                if (size <= budget) {
                    slow.emplace_front(key, size);
                }
            }
            }
            while (bytes() > budget) {
                slow.pop_back();
            }
            REQUIRE(fast.bytes() == bytes());
            REQUIRE(fast.size() == slow.size());
            REQUIRE(fast.contains(key_of(key)) ==
                    std::any_of(slow.begin(), slow.end(), [key](const auto& one) {
                        return one.first == key;
                    }));
        }
    }
}

TEST_CASE("a list of many takes little when there are few, and those in their order") {
    ghost_list ghosts;
    ghosts.set_budget(20'000);
    for (std::uint64_t key = 0; key < 20'000; ++key) {
        ghosts.add(key_of(key), 1);
    }
    for (std::uint64_t key = 0; key < 20'000; key += 3) {
        CHECK(ghosts.take(key_of(key)));
    }
    REQUIRE(ghosts.memory() > 500'000);
    SUBCASE("some") {
        ghosts.set_budget(100);
        CHECK(ghosts.memory() < 10'000);
        CHECK(ghosts.size() == 100);
        for (std::uint64_t left = 100; left > 0; --left) {
            ghosts.set_budget(left - 1);
            CHECK(ghosts.size() == left - 1);
        }
        CHECK(ghosts.size() == 0);
    }
    SUBCASE("some, and others come") {
        ghosts.set_budget(100);
        CHECK(ghosts.contains(key_of(19'999)));
        ghosts.set_budget(1'000);
        for (std::uint64_t key = 50'000; key < 50'950; ++key) {
            ghosts.add(key_of(key), 1);
        }
        CHECK(ghosts.size() == 1'000);
        // 50 of the old ones are left, the youngest.
        CHECK(ghosts.contains(key_of(19'999)));
        CHECK(ghosts.contains(key_of(19'925)));
        CHECK_FALSE(ghosts.contains(key_of(19'924)));
        CHECK(ghosts.contains(key_of(50'000)));
    }
    SUBCASE("none") {
        ghosts.set_budget(0);
        CHECK(ghosts.memory() < 10'000);
        ghosts.set_budget(10);
        ghosts.add(key_of(1), 1);
        CHECK(ghosts.contains(key_of(1)));
    }
}

TEST_SUITE_END();
