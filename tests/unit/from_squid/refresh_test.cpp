#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

namespace reprise::from_squid {

namespace {

// The URLs that are never stored, in their order.
std::vector<std::string> never_stored(const conversion_result& r) {
    std::vector<std::string> out;
    for (const auto& each : r.options.admission.rules) {
        out.push_back(each.url);
    }
    return out;
}

}  // namespace

TEST_SUITE("from_squid/refresh") {
    TEST_CASE("where case does not matter, what is written with capitals is meant without, too") {
        using urls = std::vector<std::string>;
        const auto host = settings_of("acl x url_regex -i Ads\\.Example\\.COM\ncache deny x\n");
        CHECK(never_stored(host) == urls{"*Ads.Example.COM*", "*ads.example.com*"});
        CHECK(host.says(fate::approximated, "all in lower case"));
        CHECK_FALSE(host.says(fate::changed, "is never stored"));
        const auto path = settings_of("acl x urlpath_regex -i \\.ZIP$\ncache deny x\n");
        CHECK(never_stored(path) == urls{"*.ZIP", "*.zip"});
        // A scheme and a host are in lower case in any URL: there is nothing to be said of them.
        const auto whole = settings_of("acl x url_regex -i ^https?://A\\.Example/\ncache deny x\n");
        CHECK(never_stored(whole) == urls{"https://a.example/*", "http://a.example/*"});
        CHECK(whole.says(fate::changed, "is never stored"));
        const auto as_written = settings_of("acl x urlpath_regex \\.ZIP$\ncache deny x\n");
        CHECK(never_stored(as_written) == urls{"*.ZIP"});
        CHECK(as_written.says(fate::changed, "is never stored"));
    }

    TEST_CASE("-i and +i between expressions are none themselves") {
        const auto r = settings_of("acl x urlpath_regex /one$ -i /Two$ +i /three$\ncache deny x\n");
        CHECK(never_stored(r) == std::vector<std::string>{"*/one", "*/Two", "*/two", "*/three"});
        CHECK(r.says(fate::approximated, "all in lower case"));
    }

    TEST_CASE("a class of POSIX is read to its end, and what comes of it is said to be near") {
        const auto r = settings_of("acl x urlpath_regex [[:digit:]]\\.tmp$\ncache deny x\n");
        CHECK(never_stored(r) == std::vector<std::string>{"*.tmp"});
        CHECK(r.says(fate::approximated, "is never stored"));
    }

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
}

}  // namespace reprise::from_squid
