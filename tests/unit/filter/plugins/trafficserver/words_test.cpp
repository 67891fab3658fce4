// What plugin.config and remap.config may say, without a server.

#include "filter/plugins/trafficserver/fleet_words.hpp"
#include "filter/plugins/trafficserver/rule_words.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::trafficserver::test {
namespace {

rule_options rule_of(const std::vector<const char*>& words) {
    return parse_rule(words, "/run/server");
}

fleet_options fleet_of_words(const std::vector<const char*>& words) {
    return parse_fleet(words, "/etc/server", "/run/server");
}

template <class Parse>
std::string said(Parse&& parse, const std::vector<const char*>& words) {
    try {
        (void)parse(words);
    } catch (const std::invalid_argument& refused) {
        return refused.what();
    }
    return {};
}

std::string refused_rule(const std::vector<const char*>& words) {
    return said(rule_of, words);
}
std::string refused_fleet(const std::vector<const char*>& words) {
    return said(fleet_of_words, words);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("filter/plugins/trafficserver/words") {
    TEST_CASE("a rule without words has the defaults, and keeps nothing") {
        const auto rule = rule_of({});
        CHECK(rule.name == "default");
        CHECK(rule.filter.objects == 1'000'000);
        CHECK(rule.filter.hits == 2);
        CHECK(rule.opened().state == nullptr);
        CHECK_FALSE(rule.says_more_than_a_name);
    }

    TEST_CASE("each word has its place") {
        const auto rule = rule_of({"objects=10M",
                                   "age=2h",
                                   "rate=0.01",
                                   "policy=nth-hit",
                                   "hits=3",
                                   "state=seen",
                                   "save=1m",
                                   "name=a-1",
                                   "refresh=0",
                                   "internal=on",
                                   "match=http://a/*",
                                   "match=!*.iso"});
        CHECK(rule.filter.objects == 10'000'000);
        CHECK(rule.filter.age == 7200);
        CHECK(rule.filter.hits == 3);
        CHECK(std::string{rule.opened().state} == "/run/server/seen");
        CHECK(rule.save.count() == 60);
        CHECK(rule.refresh == 0);
        CHECK(rule.internal);
        CHECK(rule.says_more_than_a_name);
        CHECK(is_for(rule, "http://a/b"));
        CHECK_FALSE(is_for(rule, "http://a/b.iso"));
        CHECK_FALSE(is_for(rule, "http://b/"));
        CHECK(is_for(rule_of({"match=!*.iso"}), "http://b/"));
    }

    TEST_CASE("what is wrong is named, with what would be right") {
        CHECK(has(refused_rule({"objects"}), "option=value"));
        CHECK(has(refused_rule({"objects=0"}), "objects"));
        CHECK(has(refused_rule({"objects=1 rate=0.1"}), "one option a word"));
        CHECK(has(refused_rule({"policy=nth-hit"}), "hits=N"));
        CHECK(has(refused_rule({"policy=second-hit", "hits=3"}), "policy=nth-hit"));
        CHECK(has(refused_rule({"hits=3", "policy=always"}), "policy=nth-hit"));
        CHECK(refused_rule({"policy=second-hit", "hits=2"}).empty());
        CHECK(has(refused_rule({"policy=lru"}), "second-hit, nth-hit"));
        CHECK(has(refused_rule({"save=0s"}), "1s to 24h"));
        CHECK(has(refused_rule({"save=25h"}), "1s to 24h"));
        CHECK(refused_rule({"save=1d"}).empty());
        CHECK(has(refused_rule({"save=99999999999999999999d"}), "1s to 24h"));
        CHECK(has(refused_rule({"name=a b"}), "letters, digits"));
        CHECK(has(refused_rule({"match=!"}), "a URL"));
        CHECK(has(refused_rule({"refresh=-1"}), "0 to 1000000"));
        CHECK(has(refused_rule({"internal=yes"}), "on or off"));
        CHECK(has(refused_rule({"state="}), "a path"));
    }

    TEST_CASE("a pattern is the whole of a text, and no text makes it slow") {
        CHECK(matches_whole("*", ""));
        CHECK(matches_whole("a*c", "abbbc"));
        CHECK_FALSE(matches_whole("a*c", "abbbcd"));
        CHECK(matches_whole("*a*b*", "xaxbx"));
        CHECK_FALSE(matches_whole("", "x"));
        const std::string text(100'000, 'a');
        CHECK_FALSE(matches_whole("*a*a*a*a*a*a*a*ab", text));
    }

    TEST_CASE("a fleet says its secret, and its siblings in numbers") {
        const auto fleet = fleet_of_words({"secret=fleet",
                                           "node=one",
                                           "sibling=b@192.0.2.7:8080",
                                           "sibling=c@[2001:db8::7]:80",
                                           "room=400G",
                                           "objects=10M",
                                           "stripes=2",
                                           "timeout=500ms",
                                           "state=digest",
                                           "save=2m"});
        CHECK(fleet.secret == "/etc/server/fleet");
        CHECK(fleet.state == "/run/server/digest");
        CHECK(fleet.room == std::uint64_t{400} << 30);
        CHECK(fleet.objects == 10'000'000);
        CHECK(fleet.timeout.count() == 500);
        CHECK(fleet.save.count() == 120);
        REQUIRE(fleet.siblings.size() == 2);
        CHECK(fleet.siblings[0].at.text() == "192.0.2.7:8080");
        CHECK(fleet.siblings[1].at.text() == "[2001:db8::7]:80");
        CHECK_FALSE(are_one(fleet.siblings[0].at, fleet.siblings[1].at));
        CHECK(fleet_of_words({"secret=none"}).secret.empty());
        CHECK_FALSE(fleet_of_words({"secret=none"}).node.empty());
    }

    TEST_CASE("an IPv4 address that IPv6 maps is itself") {
        sockaddr_in6 mapped{};
        mapped.sin6_family = AF_INET6;
        mapped.sin6_port = htons(8080);
        mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
        mapped.sin6_addr.s6_addr[12] = 192;
        mapped.sin6_addr.s6_addr[14] = 2;
        mapped.sin6_addr.s6_addr[15] = 7;
        endpoint made;
        REQUIRE(take_endpoint(reinterpret_cast<const sockaddr*>(&mapped), made));
        CHECK(are_one(made,
                      fleet_of_words({"secret=none", "sibling=b@192.0.2.7:8080"}).siblings[0].at));
    }

    TEST_CASE("what is wrong with a fleet is named") {
        CHECK(has(refused_fleet({}), "secret= is missing"));
        CHECK(has(refused_fleet({"secret=none", "sibling=b@host:80"}), "in numbers"));
        CHECK(has(refused_fleet({"secret=none", "sibling=own@192.0.2.7:80"}), "NAME@"));
        CHECK(has(refused_fleet({"secret=none", "sibling=b@192.0.2.7:0"}), "NAME@"));
        CHECK(has(refused_fleet({"secret=none", "sibling=b@192.0.2.7:70000"}), "NAME@"));
        CHECK(has(refused_fleet({"secret=none", "sibling=b@192.0.2.7:1", "sibling=b@192.0.2.8:1"}),
                  "a name and an address of its own"));
        CHECK(has(refused_fleet({"secret=none", "sibling=b@192.0.2.7:1", "sibling=c@192.0.2.7:1"}),
                  "a name and an address of its own"));
        CHECK(has(refused_fleet({"secret=none", "room=1k"}), "1M or more"));
        CHECK(has(refused_fleet({"secret=none", "room=99999999T"}), "1M or more"));
        CHECK(has(refused_fleet({"secret=none", "timeout=5"}), "10ms to 60s"));
        CHECK(has(refused_fleet({"secret=none", "sibilng=x"}), "no such option"));
    }
}

}  // namespace reprise::trafficserver::test
