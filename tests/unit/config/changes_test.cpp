#include "config/changes.hpp"
#include "tests/unit/config/loading.hpp"

using namespace reprise::config;

namespace {

std::vector<std::string> changes_to(std::string_view text) {
    return needs_restart(options{}, good(text));
}
using names = std::vector<std::string>;

}  // namespace

TEST_SUITE("config/changes") {
    TEST_CASE("what differs in nothing needs no restart") {
        CHECK(needs_restart(options{}, options{}) == names{});
    }

    TEST_CASE("what can change live is not named") {
        CHECK(changes_to(R"({
            "admin": {"token_file": "/x", "host_names": ["a"]},
            "memory": {"size": "1GiB", "max_object": "1MiB"}, "caching": {"objective": "bytes"},
            "collapsing": {"window": "1MiB", "finish": "1MiB"},
            "admission": {"policy": "always", "probation": "5%", "rules": [{"url": "*", "policy": "never"}]},
            "access": {"clients": [], "purge_clients": ["::1"], "connect_ports": [], "request_ports": [],
                       "allow_destinations": ["a"], "deny_destinations": ["b"]},
            "log": {"access": "off", "level": "debug", "query_values": true},
            "limits": {"fields": 10}, "timeouts": {"drain": "1s"}, "origins": {"idle": 1},
            "freshness": {"heuristic_fraction": 0},
            "listeners": [{"admission": "never"}]})") == names{});
    }

    TEST_CASE("what is built into what runs is named, in the table's order") {
        CHECK(needs_restart(options{}, good(text_of("tests/unit/config/every_setting.json"))) ==
              names{"listeners",
                    "admin.address",
                    "threads",
                    "memory.policy",
                    "disk.path",
                    "disk.size",
                    "disk.max_object",
                    "disk.write",
                    "disk.carry",
                    "disk.selective",
                    "admission.remember",
                    "admission.false_positive_rate",
                    "admission.state",
                    "admission.share",
                    "dns.servers",
                    "dns.hosts_file",
                    "dns.min_ttl",
                    "dns.max_ttl",
                    "dns.negative_ttl",
                    "dns.timeout",
                    "forwarding.pseudonym",
                    "digest.false_positive_rate",
                    "digest.publish_after_change",
                    "digest.publish_after",
                    "digest.secret_file",
                    "digest.squid"});
    }

    TEST_CASE("of two bounds on what is remembered the one that differs is named") {
        const auto before = good(R"({"admission": {"remember": {"objects": 5000}}})");
        const auto after = good(R"({"admission": {"remember": {"objects": 5000, "age": "1h"}}})");
        CHECK(needs_restart(before, after) == names{"admission.remember.age"});
        CHECK(needs_restart(before, options{}) == names{"admission.remember"});
    }

    TEST_CASE("of as many listeners the one that differs is named") {
        CHECK(changes_to(R"({"listeners": [{"address": "127.0.0.1:1"}]})") ==
              names{"listeners[0].address"});
        CHECK(changes_to(R"({"listeners": [{"mode": "accelerator", "upstream": "http://a"}]})") ==
              names{"listeners[0].mode", "listeners[0].upstream"});
    }
}
