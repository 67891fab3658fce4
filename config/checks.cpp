#include "config/checks.hpp"

#include "config/url.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace reprise::config {

void check_hits(const admission_choice& choice, const given& members, const place& here) {
    if (!members.is_sound("policy")) {
        return;
    }
    const bool counts = choice.policy == admission_policy::nth_hit;
    if (counts && !members.has("hits")) {
        here.member("hits").wrong("missing: write { \"policy\": \"nth-hit\", \"hits\": 3 } to "
                                  "store at the third request");
    }
    if (!counts && members.has("hits")) {
        here.member("hits").wrong("belongs to the policy \"nth-hit\" alone: leave it out, or write "
                                  "that policy");
    }
}

void check_listener(listener& into, const given& members, const place& here) {
    if (!members.is_sound("address")) {
        into.address.port = 0;
    }
    if (!members.is_sound("mode")) {
        return;
    }
    const bool accelerates = into.mode == listener_mode::accelerator;
    if (accelerates && !members.has("upstream")) {
        here.member("upstream")
            .wrong("missing: an accelerator needs the server that it stands in "
                   "front of: write http://host[:port]");
    }
    if (!accelerates && members.has("upstream")) {
        here.member("upstream")
            .wrong("a forward listener has no upstream: leave it out, or write "
                   "\"mode\": \"accelerator\"");
    }
}

void check_memory(const memory_options& into, const given& members, const place& here) {
    // With a small store the default bound on one object is above it, which does no harm.
    if (members.has("max_object") && members.is_sound("max_object") && members.is_sound("size") &&
        into.max_object > into.size) {
        here.member("max_object")
            .wrong("must not be above memory.size, " + size_to_string(into.size));
    }
}

void check_disk(const disk_options& into, const given& members, const place& here) {
    // With a small store the default bound on one object is above it, which does no harm.
    if (members.has("max_object") && members.is_sound("max_object") && members.is_sound("size") &&
        into.max_object > into.size / 4) {
        here.member("max_object")
            .wrong("must not be above a quarter of disk.size, " + size_to_string(into.size / 4));
    }
}

void check_limits(const limit_options& into, const given& members, const place& here) {
    if (members.has("url_length") && members.is_sound("url_length") &&
        members.is_sound("head_size") && into.url_length > into.head_size) {
        here.member("url_length")
            .wrong("must not be above limits.head_size, " + size_to_string(into.head_size));
    }
}

void check_origins(const origin_options& into, const given& members, const place& here) {
    if (members.has("idle") && members.is_sound("idle") && members.is_sound("connections") &&
        into.idle > into.connections) {
        here.member("idle").wrong("must not be above origins.connections, " +
                                  std::to_string(into.connections));
    }
}

void check_dns(const dns_options& into, const given& members, const place& here) {
    if (members.is_sound("min_ttl") && members.is_sound("max_ttl") && into.min_ttl > into.max_ttl) {
        here.member(members.has("min_ttl") ? "min_ttl" : "max_ttl")
            .wrong("dns.min_ttl must not be above dns.max_ttl: here " +
                   duration_to_string(into.min_ttl) + " and " + duration_to_string(into.max_ttl));
    }
}

void check_rules(const admission_options& into, const given& members, const place& here) {
    if (!members.is_sound("rules")) {
        return;
    }
    for (std::size_t i = 1; i < into.rules.size(); ++i) {
        for (std::size_t before = 0; before < i; ++before) {
            if (matches_pattern(into.rules[before].url, into.rules[i].url)) {
                here.member("rules").element(i).member("url").wrong(
                    in_quotes(into.rules[i].url) + " is never reached: rules[" +
                    std::to_string(before) + "], " + in_quotes(into.rules[before].url) +
                    ", comes first and matches all of it");
                break;
            }
        }
    }
}

void check_options(const options& into, const given& members, const place& here) {
    std::map<std::string, std::string> taken;  // address to the setting that has it
    const auto take =
        [&taken](const endpoint& address, const std::string& path, const place& there) {
            if (address.port == 0) {
                return;
            }
            const auto [other, is_new] = taken.emplace(to_string(address), path);
            if (!is_new) {
                there.wrong(to_string(address) + " is already the address of " + other->second +
                            ": write another port");
            }
        };
    for (std::size_t i = 0; i < into.listeners.size(); ++i) {
        const auto index = std::to_string(i);
        take(into.listeners[i].address,
             "listeners[" + index + ']',
             here.member("listeners").element(i).member("address"));
    }
    // An accelerator without TLS is asked for nothing by https.
    const bool sees_https = std::any_of(
        into.listeners.begin(), into.listeners.end(), [](const listener& one) {
            return one.mode == listener_mode::forward || one.tls;
        });
    if (!sees_https && members.is_sound("admission") && members.is_sound("listeners")) {
        for (std::size_t i = 0; i < into.admission.rules.size(); ++i) {
            if (into.admission.rules[i].url.starts_with("https://")) {
                here.member("admission")
                    .member("rules")
                    .element(i)
                    .member("url")
                    .wrong(in_quotes(into.admission.rules[i].url) +
                           " can never match: no listener is asked for https");
            }
        }
    }
    // A request for another port is refused before any rule is asked, but not if it comes to an
    // accelerator.
    const bool forward_only = std::all_of(
        into.listeners.begin(), into.listeners.end(), [](const listener& one) {
            return one.mode == listener_mode::forward;
        });
    if (forward_only && members.is_sound("access") && members.is_sound("admission") &&
        members.is_sound("listeners")) {
        const auto& rules = into.admission.rules;
        for (std::size_t i = 0; i < rules.size(); ++i) {
            const auto port = port_of_pattern(rules[i].url);
            const auto& allowed = into.access.request_ports;
            if (port && std::none_of(allowed.begin(), allowed.end(), [&](const port_range& each) {
                    return each.first <= *port && *port <= each.last;
                })) {
                here.member("admission")
                    .member("rules")
                    .element(i)
                    .member("url")
                    .wrong(in_quotes(rules[i].url) + " can never match: port " +
                           std::to_string(*port) + " is not in access.request_ports");
            }
        }
    }
    if (into.peering.never_direct && members.is_sound("peering") && members.is_sound("peers") &&
        std::none_of(into.peers.begin(), into.peers.end(), [](const peer_options& one) {
            return one.kind == peer_kind::parent;
        })) {
        here.member("peering")
            .member("never_direct")
            .wrong("leaves no way out: no peer is a parent (\"kind\": \"parent\")");
    }
    if (into.admin.address && members.is_sound("admin")) {
        take(*into.admin.address, "admin", here.member("admin").member("address"));
    }
}

}  // namespace reprise::config
