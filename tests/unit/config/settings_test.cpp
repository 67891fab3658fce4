#include "config/settings.hpp"
#include "tests/unit/config/loading.hpp"

#include <set>
#include <string>
#include <utility>

using namespace reprise::config;
using namespace std::chrono_literals;

namespace {

network net(std::string_view text) {
    return std::get<network>(parse_network(text));
}

options every_setting() {
    return good(text_of("tests/unit/config/every_setting.json"));
}

}  // namespace

// The structured bindings stop compiling when a struct gains a member, so that nobody adds one
// that no row, or not this file, knows.
TEST_SUITE("config/settings") {
    TEST_CASE("every group of options is reached by the table") {
        const auto wanted = every_setting();
        const options standard;
        const auto& [listeners,
                     admin,
                     threads,
                     memory,
                     disk,
                     collapsing,
                     admission,
                     access,
                     log,
                     limits,
                     timeouts,
                     origins,
                     dns,
                     forwarding,
                     freshness,
                     caching,
                     digest,
                     peers,
                     peering,
                     intercept,
                     targeted] = wanted;
        CHECK(listeners != standard.listeners);
        CHECK(admin != standard.admin);
        CHECK(threads == 3);
        CHECK(memory != standard.memory);
        CHECK(disk != standard.disk);
        CHECK(collapsing != standard.collapsing);
        CHECK(admission != standard.admission);
        CHECK(access != standard.access);
        CHECK(log != standard.log);
        CHECK(limits != standard.limits);
        CHECK(timeouts != standard.timeouts);
        CHECK(origins != standard.origins);
        CHECK(dns != standard.dns);
        CHECK(forwarding != standard.forwarding);
        CHECK(freshness != standard.freshness);
        CHECK(caching != standard.caching);
        CHECK(digest != standard.digest);
        CHECK(peers != standard.peers);
        CHECK(peering != standard.peering);
        CHECK(intercept != standard.intercept);
        CHECK(targeted != standard.targeted);
    }

    TEST_CASE("listeners and admin are read") {
        const auto wanted = every_setting();
        REQUIRE(wanted.listeners.size() == 2);
        CHECK(wanted.listeners[0] == listener{{"127.0.0.2", 3129}, {}, "", {}, {}, true});
        const auto& [address, mode, upstream, admission, tls, fronted] = wanted.listeners[1];
        CHECK(address == endpoint{"::1", 8080});
        CHECK(mode == listener_mode::accelerator);
        CHECK(upstream == "http://origin.example:8000");
        CHECK(admission == admission_choice{admission_policy::nth_hit, 5});
        CHECK(tls == tls_options{"/etc/reprise/cert.pem", "/etc/reprise/key.pem"});
        CHECK_FALSE(fronted);

        const auto& [admin_address, socket, socket_for, token_file, host_names, monitors] =
            wanted.admin;
        CHECK(socket == "/run/reprise/sock");
        CHECK(socket_for == socket_users::group);
        CHECK(admin_address == endpoint{"127.0.0.1", 3181});
        CHECK(token_file == "/run/reprise/token");
        CHECK(host_names == std::vector<std::string>{"proxy.example"});
        CHECK(monitors == 7);
    }

    TEST_CASE("what is intercepted is read") {
        const auto wanted = every_setting();
        REQUIRE(wanted.intercept);
        const auto& [hosts,
                     except,
                     clients,
                     ports,
                     ca_certificate,
                     ca_key,
                     unconstrained,
                     leaf_lifetime,
                     leaves,
                     on_refusal,
                     refusal_memory] = *wanted.intercept;
        CHECK(hosts == std::vector<std::string>{"pypi.example", "*.files.example"});
        CHECK(except == std::vector<std::string>{"pinned.files.example"});
        CHECK(clients == std::vector{net("192.0.2.0/25")});
        CHECK(ports == std::vector<std::uint16_t>{443, 8443});
        CHECK(ca_certificate == "/etc/reprise/ca.pem");
        CHECK(ca_key == "/etc/reprise/ca.key");
        CHECK(unconstrained);
        CHECK(leaf_lifetime == 24h);
        CHECK(leaves == 256);
        CHECK(on_refusal == refusal_answer::fail);
        CHECK(refusal_memory == 10min);
    }

    TEST_CASE("digest, peers and peering are read") {
        const auto wanted = every_setting();
        const auto& [rate, after_change, after, secret_file, squid, site_nodes] = wanted.digest;
        CHECK(rate == 0.001);
        CHECK(after_change == 0.02);
        CHECK(after == 10s);
        CHECK(secret_file == "/etc/reprise/secret");
        CHECK(squid);
        CHECK(site_nodes == 4);
        REQUIRE(wanted.peers.size() == 2);
        const auto& [name,
                     url,
                     dns,
                     port,
                     kind,
                     protocol,
                     proxy_only,
                     max_age,
                     credentials_file,
                     refresh,
                     timeout] = wanted.peers[0];
        CHECK(name == "b");
        CHECK(url == "https://b.example:3129");
        CHECK(dns.empty());
        CHECK(port == 3128);
        CHECK(kind == peer_kind::parent);
        CHECK(protocol == peer_protocol::squid);
        CHECK_FALSE(proxy_only);
        CHECK_FALSE(max_age);
        CHECK(credentials_file == "/etc/reprise/parent");
        CHECK(refresh == peer_options{}.refresh);  // which is for siblings
        CHECK(timeout == peer_options{}.timeout);
        CHECK(wanted.peers[1].name == "reprise.example.org");
        CHECK(wanted.peers[1].dns == "reprise.example.org");
        CHECK(wanted.peers[1].port == 3129);
        CHECK(wanted.peers[1].proxy_only);
        CHECK(wanted.peers[1].max_age == 1h);
        CHECK(wanted.peers[1].refresh == 5s);
        CHECK(wanted.peers[1].timeout == 1s);
        CHECK(wanted.peering.budget == 50ms);
        CHECK(wanted.peering.hit_worth == 1s);
        CHECK(wanted.peering.never_direct);
        CHECK(wanted.peering.gateway_for.size() == 1);
    }

    TEST_CASE("the disk is read") {
        const auto wanted = every_setting();
        const auto& [path,
                     size,
                     max_object,
                     write,
                     carry,
                     selective,
                     has_write,
                     has_carry,
                     has_selective] = wanted.disk;
        CHECK(has_write);
        CHECK(has_carry);
        CHECK(has_selective);
        CHECK(selective);
        CHECK(path == "/var/cache/reprise");
        CHECK(size == 100ull << 30);
        CHECK(max_object == 10ull << 30);
        CHECK(write == disk_write::eviction);
        CHECK(carry == 0.1);
    }

    TEST_CASE("a disk alone makes the store that suits one; what is written stays as it is") {
        const auto of = [](const std::string& text) { return good(text); };
        const auto plain = of("{}");
        CHECK(plain.admission.probation == 0);
        CHECK(plain.memory.policy == eviction_kind::sieve);
        CHECK(plain.memory.largest() == (256ull << 20) / 5);
        const auto with_disk = of(R"({"disk": {"path": "/var/cache/reprise", "size": "40GiB"}})");
        CHECK(with_disk.admission.choice.policy == admission_policy::second_hit);
        CHECK(with_disk.admission.probation == 1);
        // Whoever leaves admission to the proxy has it begin where strictness costs no hit.
        CHECK(good(R"({"admission": {"policy": "auto"}})").admission.probation == 1);
        CHECK(good(R"({"admission": {"policy": "auto", "probation": "2%"}})").admission.probation ==
              0.02);
        CHECK(with_disk.memory.policy == eviction_kind::gdsf);
        CHECK(with_disk.disk.write == disk_write::eviction);
        CHECK(with_disk.disk.carry == 0.6);
        CHECK(with_disk.disk.selective);
        CHECK(with_disk.disk.largest() == 10ull << 30);
        const auto written = of(
            R"({"memory": {"policy": "sieve", "max_object": "1MiB"},
                "disk": {"path": "/var/cache/reprise", "write": "admission", "carry": 0.25,
                         "selective": false, "max_object": "1GiB"},
                "admission": {"policy": "second-hit", "probation": "0%"}})");
        CHECK(written.admission.probation == 0);
        CHECK(written.memory.policy == eviction_kind::sieve);
        CHECK(written.memory.largest() == 1ull << 20);
        CHECK(written.disk.write == disk_write::admission);
        CHECK(written.disk.carry == 0.25);
        CHECK_FALSE(written.disk.selective);
        CHECK(written.disk.largest() == 1ull << 30);
    }

    TEST_CASE("memory, collapsing, admission and freshness are read") {
        const auto wanted = every_setting();
        const auto& [size, max_object, policy, has_policy] = wanted.memory;
        CHECK(has_policy);
        CHECK(size == 1ull << 30);
        CHECK(max_object == 64ull << 20);
        CHECK(policy == eviction_kind::s3_fifo);
        const auto& [window, finish] = wanted.collapsing;
        CHECK(window == 4ull << 20);
        CHECK(finish == 1'000'000);
        const auto& [choice,
                     probation,
                     has_probation,
                     frozen,
                     remember,
                     rate,
                     rules,
                     state,
                     save_every,
                     share,
                     has_share] = wanted.admission;
        CHECK(choice == admission_choice{admission_policy::nth_hit, 3});
        CHECK(probation == 0.025);
        CHECK_FALSE(frozen);  // which is for "auto" alone
        CHECK(remember == remember_options{false, 2'000'000, 48h});
        CHECK(rate == 0.01);
        CHECK(rules == std::vector<admission_rule>{
                           {"http://deb.example.org/*", {admission_policy::always, 2}}});
        CHECK(state == "/var/lib/reprise/admission");
        CHECK(save_every == 1min);
        CHECK_FALSE(share);
        CHECK(has_share);
        const auto& [fraction, most, errors, negative, stale_on_error, on_status, url_rules] =
            wanted.freshness;
        CHECK(fraction == 0.2);
        CHECK(most == 12h);
        CHECK_FALSE(errors);
        CHECK(negative == 10s);
        REQUIRE(url_rules.size() == 1);
        const auto& [rule_url, at_least, at_most, rule_fraction, rule_most, overrides, reload] =
            url_rules[0];
        CHECK(rule_url == "http://deb.example.org/pool/*");
        CHECK(at_least == 24h);
        CHECK(at_most == 30 * 24h);
        CHECK(rule_fraction == 0.5);
        CHECK(rule_most == 7 * 24h);
        CHECK(overrides.size() == 7);
        CHECK(overrides.back() == overridden::must_revalidate);
        CHECK(reload == reload_answer::ignore);
        CHECK(stale_on_error == 5min);
        CHECK(on_status);
        const auto& [set_cookie, objective] = wanted.caching;
        CHECK(set_cookie == cookie_storing::explicit_lifetime);
        CHECK(objective == caching_objective::bytes);
        CHECK(wanted.targeted ==
              std::vector<std::string>{"Edge-Cache-Control", "CDN-Cache-Control"});
    }

    TEST_CASE("each objective is read, and no other word") {
        const auto objective_of = [](const std::string& word) {
            return good(R"({"caching": {"objective": ")" + word + R"("}})").caching.objective;
        };
        CHECK(objective_of("requests") == caching_objective::requests);
        CHECK(objective_of("bytes") == caching_objective::bytes);
        CHECK(objective_of("seconds") == caching_objective::seconds);
        CHECK(std::holds_alternative<std::vector<mistake>>(
            load(R"({"caching": {"objective": "hits"}})")));
    }

    TEST_CASE("access, log and forwarding are read") {
        const auto wanted = every_setting();
        const auto& [clients,
                     purgers,
                     fronts,
                     trusted_fronts,
                     connect_ports,
                     request_ports,
                     allowed,
                     denied,
                     prefixed,
                     block_lists,
                     users_file,
                     tokens_file,
                     plaintext_passwords] = wanted.access;
        CHECK(clients == std::vector{net("192.0.2.0/24")});
        CHECK(purgers == std::vector{net("192.0.2.7/32")});
        CHECK(fronts == std::vector{net("192.0.2.8/32")});
        CHECK(trusted_fronts == std::vector{net("192.0.2.9/32")});
        CHECK(connect_ports == std::vector<port_range>{{443, 443}, {8400, 8443}});
        CHECK(request_ports == std::vector<port_range>{{80, 80}, {8000, 8999}});
        CHECK(allowed ==
              std::vector<destination>{{"localhost", {}, 8000}, {"*.corp.example", {}, {}}});
        CHECK(denied ==
              std::vector<destination>{{"", net("10.0.0.0/8"), 8080}, {"", net("::1"), 80}});
        CHECK(prefixed == std::vector<destination>{{"*.deb.example", {}, {}}});
        const auto& [log_access, format, sample, level, query_values] = wanted.log;
        CHECK(format == log_format::squid);
        CHECK(sample == 10);
        CHECK(block_lists == std::vector<std::string>{"/etc/reprise/blocked"});
        CHECK(users_file == "/etc/reprise/users");
        CHECK(tokens_file == "/etc/reprise/tokens");
        CHECK(plaintext_passwords);
        CHECK(log_access == "/var/log/reprise/access");
        CHECK(level == log_level::debug);
        CHECK(query_values);
        const auto& [pseudonym, client_address] = wanted.forwarding;
        CHECK(pseudonym == "edge-1");
        CHECK(client_address == forwarded_field::both);
    }

    TEST_CASE("limits, timeouts, origins and dns are read") {
        const auto wanted = every_setting();
        const auto& [head, fields, url, connections, per_client, body_rate, client_rate] =
            wanted.limits;
        CHECK(head == 32ull << 10);
        CHECK(fields == 100);
        CHECK(url == 8192);
        CHECK(connections == 5000);
        CHECK(per_client == 50);
        CHECK(body_rate == 1000);
        CHECK(client_rate == 10ull << 20);
        const auto& [c_head,
                     c_idle,
                     c_body,
                     o_connect,
                     o_upload,
                     o_head,
                     o_body,
                     tunnel,
                     drain,
                     hand_over] = wanted.timeouts;
        CHECK(c_head == 1s);
        CHECK(c_idle == 2s);
        CHECK(c_body == 3s);
        CHECK(o_connect == 4s);
        CHECK(o_upload == 8s);
        CHECK(o_head == 5s);
        CHECK(o_body == 6s);
        CHECK(tunnel == 7s);
        CHECK(drain == 500ms);
        CHECK(hand_over == 9min);
        const auto& [at_once, per_address, idle, idle_timeout, authorities, revoked] =
            wanted.origins;
        CHECK(at_once == 64);
        CHECK(per_address == 48);
        CHECK(idle == 16);
        CHECK(idle_timeout == 5s);
        CHECK(authorities == "/etc/reprise/authorities.pem");
        CHECK(revoked == "/etc/reprise/revoked.pem");
        const auto& [servers, hosts_file, min_ttl, max_ttl, negative_ttl, timeout] = wanted.dns;
        CHECK(servers == std::vector<endpoint>{{"127.0.0.1", 5353}, {"::1", 53}});
        CHECK(hosts_file.empty());
        CHECK(min_ttl == 2s);
        CHECK(max_ttl == 2h);
        CHECK(negative_ttl == 20s);
        CHECK(timeout == 2s);
    }

    TEST_CASE("no two settings share a path, and each is explained") {
        std::set<std::string> paths;
        for (const auto& shown : all_settings()) {
            CAPTURE(shown.path);
            CHECK(paths.insert(shown.path).second);
            CHECK_FALSE(shown.why.empty());
            CHECK_FALSE(shown.type.empty());
            CHECK_FALSE(shown.standard.empty());
        }
    }

    TEST_CASE("every default is within its own bounds") {
        // Each default, written as the reference shows it at its own path, loads to the defaults.
        for (const auto& shown : all_settings()) {
            if (shown.in_words || shown.path.find("[]") != std::string::npos) {
                continue;
            }
            CAPTURE(shown.path);
            std::string text = shown.standard;
            std::string_view path = shown.path;
            if (path.starts_with("intercept.")) {  // there only as a whole
                const std::string begin =
                    R"({"intercept": {"hosts": ["a"], "ca_certificate": "c", )"
                    R"("ca_key": "k")";
                const auto name = shown.path.substr(path.find('.') + 1);
                CHECK(good(begin + ", \"" + name + "\": " + text + "}}") == good(begin + "}}"));
                continue;
            }
            // Without these two do nothing, which is a mistake.
            std::string beside = path == "disk.size"              ? R"(, "path": "off")"
                                 : path == "admission.save_every" ? R"(, "state": "off")"
                                                                  : "";
            while (!path.empty()) {
                const auto dot = path.rfind('.');
                const auto name = dot == path.npos ? path : path.substr(dot + 1);
                text = "{\"" + std::string{name} + "\": " + text + std::exchange(beside, "") + "}";
                path = path.substr(0, dot == path.npos ? 0 : dot);
            }
            auto loaded = good(text);
            if (shown.path.starts_with("admission.remember.")) {
                // A bound that is written is a choice against "auto".
                CHECK_FALSE(loaded.admission.remember.automatic);
                loaded.admission.remember.automatic = true;
            }
            CHECK(loaded == options{});
        }
    }
}
