#include "proxy/peer/homes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_homes {

using namespace std::chrono_literals;

namespace {

constexpr steady_time now{1h};

filter::key_hash key(std::uint64_t i) {
    return {i * 0x9e3779b97f4a7c15, (i + 7) * 0xbf58476d1ce4e5b9};
}

/// What node `own` of these knows, each of the others by a slot of its own choosing.
homes seen_by(const std::string& own, const std::vector<std::string>& all, unsigned first_slot) {
    std::vector<live_node> others;
    for (const auto& name : all) {
        if (name != own) {
            others.push_back({first_slot++, name, true});
        }
    }
    if (first_slot % 2 == 1) {
        std::reverse(others.begin(), others.end());
    }
    return {own, others};
}

std::string home_in(const homes& by, const std::string& own, std::uint64_t i) {
    const auto home = by.of(key(i), false, now);
    return home ? std::string{home->name} : own;
}

const std::vector<std::string> five{"ann", "ben", "cai", "dov", "eve"};

}  // namespace

TEST_SUITE("peer/homes") {
    TEST_CASE("all nodes say the same of a URL, and each has its part of them") {
        std::map<std::string, unsigned> part;
        const auto ann = seen_by("ann", five, 0);
        const auto dov = seen_by("dov", five, 7);
        for (std::uint64_t i = 0; i < 10'000; ++i) {
            const auto home = home_in(ann, "ann", i);
            REQUIRE(home == home_in(dov, "dov", i));
            ++part[home];
        }
        CHECK(part.size() == 5);
        for (const auto& [name, keys] : part) {
            CAPTURE(name);
            CHECK(keys > 1'800);
            CHECK(keys < 2'200);
        }
    }

    TEST_CASE("a node that goes moves its own URLs alone, to all others, and they come back") {
        const auto with = seen_by("ann", five, 0);
        const auto without = seen_by("ann", {"ann", "ben", "dov", "eve"}, 3);
        std::set<std::string> took;
        unsigned moved = 0;
        for (std::uint64_t i = 0; i < 10'000; ++i) {
            const auto before = home_in(with, "ann", i);
            const auto after = home_in(without, "ann", i);
            if (before == "cai") {
                took.insert(after);
                ++moved;
            } else {
                REQUIRE(after == before);
            }
        }
        CHECK(moved > 1'800);
        CHECK(took == std::set<std::string>{"ann", "ben", "dov", "eve"});
    }

    TEST_CASE("alone all is its own") {
        const homes alone{"ann", {}};
        CHECK_FALSE(alone.of(key(1), false, now));
    }

    TEST_CASE("what fails is passed by, and is asked again when that is over") {
        const auto by = seen_by("ann", {"ann", "ben"}, 4);
        std::uint64_t i = 0;
        while (home_in(by, "ann", i) == "ann") {
            ++i;
        }
        const auto begun = steady_now();
        const auto home = by.of(key(i), false, begun);
        REQUIRE(home);
        CHECK(home->slot == 4);
        const failure why{failure_code::connect_refused, ""};
        by.failed(home->at, begun, why);
        CHECK_FALSE(by.of(key(i), false, begun));
        const auto back = steady_now() + 2s;
        CHECK(by.of(key(i), false, back));
        {
            // Whether it answers again is found out by one alone.
            trial first, second;
            CHECK(by.to_ask(key(i), false, back, 10s, first));
            CHECK_FALSE(by.to_ask(key(i), false, back, 10s, second));
            CHECK_FALSE(by.of(key(i), false, back));
            first.end();
            CHECK(by.to_ask(key(i), false, back, 10s, second));
        }
        by.succeeded(home->at);
        CHECK(by.of(key(i), false, begun));
        for (const auto ours : {failure_code::client_share_used,
                                failure_code::origin_connection_limit,
                                failure_code::out_of_memory,
                                failure_code::draining}) {
            CAPTURE(facts_of(ours).name);
            by.failed(home->at, begun, failure{ours, ""});  // is no failure of the home
            CHECK(by.of(key(i), false, begun));
        }
    }

    TEST_CASE("nodes that share a name, or have none, have no URLs") {
        const std::vector<live_node> others{{0, "ben", false},
                                            {1, "ben", false},
                                            {2, "", false},
                                            {3, "ann", false},
                                            {4, "cai", false}};
        const homes by{"ann", others};
        REQUIRE(by.others().size() == 1);
        CHECK(by.others()[0].name == "cai");
    }

    TEST_CASE("an instance that is reached in two ways is one, by the first") {
        const std::vector<heard_node> heard{{{0, "ben", false}, 7},
                                            {{1, "cai", false}, 8},
                                            {{2, "ben", true}, 7},
                                            {{3, "cai", false}, 9},
                                            {{4, "dov", false}, 7}};
        const std::vector<live_node> one_each{
            {0, "ben", false}, {1, "cai", false}, {3, "cai", false}, {4, "dov", false}};
        CHECK(who_is_who::instances_of(heard) == one_each);
        const homes by{"ann", who_is_who::instances_of(heard)};
        REQUIRE(by.others().size() == 2);
        CHECK(by.others()[0].name == "ben");
        CHECK(by.others()[1].name == "dov");
    }

    TEST_CASE("two instances of one name are warned of once, and not while one may be in between") {
        using names = std::vector<std::string>;
        const std::vector<heard_node> one{{{0, "ben", false}, 7}, {{1, "ben", false}, 7}},
            two{{{0, "ben", false}, 7}, {{1, "ben", false}, 8}},
            three{{{0, "ben", false}, 7},
                  {{1, "ben", false}, 8},
                  {{2, "cai", false}, 1},
                  {{3, "cai", false}, 2}};
        who_is_who by;
        CHECK(by.namesakes_among(one, now).empty());
        CHECK(by.namesakes_among(two, now + 1s).empty());
        CHECK(by.namesakes_among(two, now + 10s).empty());
        CHECK(by.namesakes_among(one, now + 11s).empty());  // it had begun anew
        CHECK(by.namesakes_among(two, now + 12s).empty());
        CHECK(by.namesakes_among(two, now + 21s).empty());
        CHECK(by.namesakes_among(two, now + 22s) == names{"ben"});
        CHECK(by.namesakes_among(two, now + 1h).empty());
        // Whatever they call themselves, once a minute at most.
        auto then = now + 2h;
        names said;
        unsigned times = 0;
        for (unsigned i = 0; i < 600; ++i, then += 1s) {
            const auto& heard = i % 20 < 15 ? three : one;
            said = by.namesakes_among(heard, then);
            times += said.empty() ? 0 : 1;
        }
        CHECK(times >= 2);
        CHECK(times <= 10);
    }

    TEST_CASE("an https URL goes to no home that is not asked over TLS") {
        const std::vector<live_node> others{{0, "ben", false}, {1, "cai", true}};
        const homes by{"ann", others};
        unsigned to_cai = 0;
        for (std::uint64_t i = 0; i < 1'000; ++i) {
            const auto plain = by.of(key(i), false, now);
            const auto secure = by.of(key(i), true, now);
            CHECK((secure && secure->name == "cai") == (plain && plain->name == "cai"));
            CHECK_FALSE((secure && secure->name == "ben"));
            to_cai += secure ? 1 : 0;
        }
        CHECK(to_cai > 200);
    }
}

}  // namespace reprise::proxy::peer::test::of_homes
