#include "config/changes.hpp"
#include "config/settings.hpp"
#include "tests/unit/config/loading.hpp"

using namespace reprise::config;

namespace {

std::vector<std::string> changes_to(std::string_view text) {
    return needs_restart(options{}, good(text));
}
using names = std::vector<std::string>;

/// Each setting, with its value in place of its default.
std::vector<setting> described(const options& of) {
    std::vector<setting> all;
    describe_object(settings_table(), of, "", all);
    return all;
}

}  // namespace

TEST_SUITE("config/changes") {
    TEST_CASE("what differs in nothing needs no restart") {
        CHECK(needs_restart(options{}, options{}) == names{});
    }

    TEST_CASE("what can change live is not named") {
        CHECK(changes_to(R"({
            "admin": {"token_file": "/x", "host_names": ["a"]},
            "memory": {"size": "1GiB", "max_object": "1MiB"}, "caching": {"set_cookie": "explicit"},
            "collapsing": {"window": "1MiB", "finish": "1MiB"},
            "admission": {"policy": "always", "probation": "5%"},
            "access": {"clients": [], "purge_clients": ["::1"], "connect_ports": [], "request_ports": [],
                       "allow_destinations": ["a"], "deny_destinations": ["b"], "block_lists": ["/b"], "trusted_fronts": ["::1"], "users_file": "/u", "tokens_file": "/t",
                       "plaintext_passwords": true},
            "log": {"access": "off", "level": "debug", "query_values": true},
            "limits": {"fields": 10}, "timeouts": {"drain": "1s"}, "origins": {"idle": 1},
            "freshness": {"heuristic_fraction": 0},
            "listeners": [{"admission": "never"}]})") == names{});
        CHECK(changes_to(R"({"admission": {"rules": [{"url": "*", "policy": "never"}]}})") ==
              names{});
    }

    TEST_CASE("what is built into what runs is named, in the table's order") {
        CHECK(needs_restart(options{}, good(text_of("tests/unit/config/every_setting.json"))) ==
              names{"listeners",
                    "admin.address",
                    "admin.socket",
                    "admin.socket_for",
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
                    "caching.objective",
                    "digest.false_positive_rate",
                    "digest.publish_after_change",
                    "digest.publish_after",
                    "digest.secret_file",
                    "digest.squid",
                    "digest.site_nodes",
                    "peering.gateway_for"});
    }

    TEST_CASE("a reload puts back every setting that wants a restart, and no other") {
        const options before;
        const auto wanted = good(text_of("tests/unit/config/every_setting.json"));
        auto next = wanted;
        CHECK(keep_until_restart(before, next) == needs_restart(before, wanted));
        CHECK(needs_restart(before, next) == names{});
        CHECK(needs_restart(next, wanted) == needs_restart(before, wanted));
        CHECK(next.listeners == before.listeners);
        CHECK(next.disk == before.disk);
        CHECK(next.dns == before.dns);
        CHECK(next.digest == before.digest);
        CHECK(next.caching.objective == before.caching.objective);
        // What is said of each, row by row.
        const auto was = described(before);
        const auto is = described(next);
        const auto would_be = described(wanted);
        REQUIRE(was.size() == is.size());
        REQUIRE(is.size() == would_be.size());
        unsigned differing = 0;
        for (std::size_t i = 0; i < is.size(); ++i) {
            CAPTURE(is[i].path);
            const bool waits = is[i].changes == change::restart;
            CHECK(is[i].standard == (waits ? was[i] : would_be[i]).standard);
            differing += waits && was[i].standard != would_be[i].standard;
        }
        CHECK(differing > 20);
    }

    TEST_CASE("what a disk makes of other settings waits for the disk") {
        const options before;
        auto next = good(R"({"disk": {"path": "/var/cache/reprise"}})");
        CHECK(next.admission.probation == 1);
        CHECK(keep_until_restart(before, next) ==
              names{"memory.policy", "disk.path", "disk.write", "disk.carry", "disk.selective"});
        CHECK(next == before);
        next = good(R"({"disk": {"path": "/var/cache/reprise"},
                        "admission": {"probation": "5%"}})");
        (void)keep_until_restart(before, next);
        CHECK(next.admission.probation == 0.05);
    }

    TEST_CASE("of as many listeners what can change live does, and the rest does not") {
        const auto before = good(R"({"listeners": [{"address": "127.0.0.1:1"}]})");
        auto next = good(R"({"listeners": [{"address": "127.0.0.1:1", "admission": "never"}]})");
        CHECK(keep_until_restart(before, next).empty());
        CHECK(next.listeners[0].admission.has_value());
    }

    TEST_CASE("what is another listener's comes to none that stands in its place") {
        const auto before = good(R"({"listeners": [{"address": "127.0.0.1:1"},
            {"address": "127.0.0.1:2", "tls": {"certificate": "c", "key": "k"}}]})");
        auto next = good(R"({"listeners": [
            {"address": "127.0.0.1:2", "tls": {"certificate": "c", "key": "k"}},
            {"address": "127.0.0.1:1", "admission": "never"}]})");
        CHECK(keep_until_restart(before, next) == names{"listeners[0].address",
                                                        "listeners[0].tls",
                                                        "listeners[1].address",
                                                        "listeners[1].admission",
                                                        "listeners[1].tls"});
        CHECK_FALSE(next.listeners[0].tls.has_value());
        CHECK(next.listeners[1].tls.has_value());
        CHECK_FALSE(next.listeners[1].admission.has_value());
        CHECK(next.listeners[1].address == before.listeners[1].address);
    }

    TEST_CASE("TLS goes from one listener to another at once where nothing of them waits") {
        const auto before = good(R"({"listeners": [
            {"address": "127.0.0.1:0", "tls": {"certificate": "c", "key": "k"}},
            {"address": "127.0.0.1:0"}]})");
        auto next = good(R"({"listeners": [{"address": "127.0.0.1:0"},
            {"address": "127.0.0.1:0", "tls": {"certificate": "c", "key": "k"}}]})");
        CHECK(keep_until_restart(before, next) == names{});
        CHECK_FALSE(next.listeners[0].tls.has_value());
        CHECK(next.listeners[1].tls.has_value());
    }

    TEST_CASE("what comes into force would be accepted as a file") {
        const auto fronted = good(R"({"access": {"trusted_fronts": ["10.0.0.1"]},
            "listeners": [{"address": "127.0.0.1:1", "proxy_protocol": true}]})");
        auto plain = good(R"({"listeners": [{"address": "127.0.0.1:1"}]})");
        CHECK(keep_until_restart(fronted, plain) ==
              names{"listeners[0].proxy_protocol", "access.trusted_fronts"});
        CHECK(plain.listeners[0].proxy_protocol);
        CHECK(plain.access.trusted_fronts == fronted.access.trusted_fronts);

        auto homes = good(R"({"forwarding": {"pseudonym": "a"}, "peering": {"homes": true},
            "peers": [{"name": "b", "url": "http://10.0.0.2:3128"}]})");
        CHECK(keep_until_restart(options{}, homes) ==
              names{"forwarding.pseudonym", "peering.homes"});
        CHECK_FALSE(homes.peering.homes);
    }

    TEST_CASE("a forward listener that goes on until the restart keeps all that only it looks at") {
        const auto before = good(R"({"access": {"users_file": "/u", "plaintext_passwords": true,
                "clients": ["10.0.0.0/8"], "connect_ports": [],
                "deny_destinations": ["b"], "block_lists": ["/b"]},
            "peers": [{"name": "p", "kind": "parent", "url": "http://10.0.0.2:3128"}],
            "peering": {"never_direct": true}})");
        auto next = good(R"({"access": {"clients": ["0.0.0.0/0"]},
            "listeners": [{"mode": "accelerator", "upstream": "http://a"}]})");
        CHECK(keep_until_restart(before, next) == names{"listeners[0].mode",
                                                        "listeners[0].upstream",
                                                        "access",
                                                        "peers",
                                                        "peering.never_direct"});
        CHECK(next == before);
        // One that is to be there at the next start too goes by what the new file says.
        next = good(R"({"listeners": [{"mode": "accelerator", "upstream": "http://a"},
            {"address": "127.0.0.1:2"}]})");
        CHECK(keep_until_restart(before, next) == names{"listeners"});
        CHECK(next.access.users_file.empty());
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
