#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace reprise::from_squid {

TEST_SUITE("from_squid/refresh") {
    TEST_CASE(
        "a refresh_pattern for any case has rules as written and in lower case, and says so") {
        const auto r = settings_of("refresh_pattern -i [0-9]\\.ISO$ 1440 100% 10080\n"
                                   "refresh_pattern -i . 0 20% 4320\n");
        const auto& rules = r.options.freshness.rules;
        REQUIRE(rules.size() == 2);
        CHECK(rules[0].url == "*.ISO");
        CHECK(rules[1].url == "*.iso");
        CHECK(rules[1].at_least == std::chrono::hours{24});
        CHECK(r.options.freshness.heuristic_fraction == 0.2);
        CHECK(r.says(fate::approximated, "matches more"));
        CHECK(r.says(fate::approximated, "all in lower case"));
    }

    TEST_CASE("what an origin kept from being stored, and is for more URLs than Squid's, is told") {
        for (const std::string option : {"ignore-private", "ignore-no-store"}) {
            CAPTURE(option);
            const auto wider = settings_of(
                "refresh_pattern ^http://cdn[0-9]+\\.example\\.com/ 1440 50% 4320 " + option +
                "\n");
            REQUIRE(wider.options.freshness.rules.size() == 1);
            CHECK(wider.count(fate::laxer) == 1);
            CHECK(wider.says(fate::laxer, "matches more"));
            const auto exact = settings_of(
                "refresh_pattern ^http://cdn\\.example\\.com/ 1440 50% 4320 " + option + "\n");
            CHECK(exact.count(fate::laxer) == 0);
            // Every URL is no more than Squid's.
            CHECK(settings_of("refresh_pattern . 1440 50% 4320 " + option + "\n")
                      .count(fate::laxer) == 0);
        }
        const auto lifetime = settings_of(
            "refresh_pattern ^http://cdn[0-9]+\\.example\\.com/ 1440 50% 4320 override-expire\n");
        CHECK(lifetime.count(fate::laxer) == 0);
        CHECK(lifetime.says(fate::approximated, "matches more"));
    }

    TEST_CASE("what a lost pattern kept from being stored is told where a later one stores it") {
        const std::string all = "refresh_pattern . 1440 50% 4320 ignore-private\n";
        // With a back reference, for any case: neither can be said, or not all of it.
        for (const std::string before :
             {"refresh_pattern (a)\\1 0 0% 0\n", "refresh_pattern -i /Intern/ 0 0% 0\n"}) {
            CAPTURE(before);
            const auto r = settings_of(before + all);
            CHECK(r.count(fate::laxer) == 1);
            CHECK(r.says(fate::laxer, "a pattern before it"));
            CHECK(settings_of(all + before).count(fate::laxer) == 0);
            CHECK(settings_of(before + "refresh_pattern . 1440 50% 4320\n").count(fate::laxer) ==
                  0);
        }
        // It stored these itself, but not what says no-store.
        const std::string both = "refresh_pattern -i /Intern/ 0 0% 0 ignore-private\n";
        CHECK(settings_of(both + all).count(fate::laxer) == 0);
        CHECK(settings_of(both + "refresh_pattern . 1440 50% 4320 ignore-no-store\n")
                  .count(fate::laxer) == 1);
        CHECK(settings_of("refresh_pattern /intern/ 0 0% 0\n" + all).count(fate::laxer) == 0);
        CHECK(settings_of("refresh_pattern ^ftp: 0 0% 0\n" + all).count(fate::laxer) == 0);
    }

    TEST_CASE("a pattern that earlier ones match all of is said to be never reached") {
        const auto r = settings_of("refresh_pattern \\.gz$ 60 20% 4320\n"
                                   "refresh_pattern \\.tar\\.gz$ 0 1% 1\n");
        CHECK(r.options.freshness.rules.size() == 1);
        CHECK(r.says(fate::left_out, "is never reached"));
    }

    TEST_CASE("a pattern for paths that end as hosts do has its rule") {
        const auto r = settings_of("refresh_pattern \\.example\\.org$ 60 20% 4320\n");
        REQUIRE(r.options.freshness.rules.size() == 1);
        CHECK(r.options.freshness.rules[0].url == "*/*.example.org");
    }

    TEST_CASE("how long failures are kept stays beside the lifetimes of the rest") {
        const auto r = settings_of("negative_ttl 30 seconds\nrefresh_pattern . 0 20% 4320\n");
        CHECK(r.options.freshness.negative == std::chrono::seconds{30});
        CHECK(r.options.freshness.heuristic_fraction == 0.2);
    }

    TEST_CASE("a lifetime beyond what ours may be is the longest of those, and said so") {
        const auto r = settings_of("refresh_pattern \\.iso$ 0 20% 900000\n");
        CHECK(r.options.freshness.rules[0].heuristic_most == std::chrono::hours{366 * 24});
        CHECK(r.says(fate::approximated, "366 days are the most"));
    }
}

}  // namespace reprise::from_squid
