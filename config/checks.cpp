#include "config/checks.hpp"

#include "config/unread.hpp"
#include "config/url.hpp"

#include <algorithm>
#include <map>
#include <string>

// An object's own check is called when the object has been read, so inner ones before outer ones.
// check_options() is the last: it looks across objects, and sets the defaults that depend on others
// before it does.

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

void check_memory(memory_options& into, const given& members, const place& here) {
    into.has_policy = {members.has("policy")};
    if (members.has("max_object") && members.is_sound("max_object") && members.is_sound("size") &&
        into.max_object > into.size) {
        here.member("max_object")
            .wrong("must not be above memory.size, " + size_to_string(into.size));
    }
}

void check_disk(disk_options& into, const given& members, const place& here) {
    check_master({"size", "max_object", "write", "carry", "selective"},
                 "path",
                 "without it there is no store on disk; write a directory, or \"off\"",
                 members,
                 here);
    into.has_write = {members.has("write")};
    into.has_carry = {members.has("carry")};
    into.has_selective = {members.has("selective")};
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

void check_freshness_rule(const freshness_rule& into, const given& members, const place& here) {
    const auto wrong = [&](std::string_view name, std::string why) {
        here.member(name).wrong(std::move(why));
    };
    const auto& over = into.overrides;
    const bool raises = into.at_least > seconds{0};
    const bool sound = members.is_sound("at_least") && members.is_sound("override");
    const bool needs_time = std::any_of(over.begin(), over.end(), [](overridden one) {
        return one == overridden::expires || one == overridden::max_age ||
               one == overridden::s_maxage;
    });
    if (sound && needs_time && !raises) {
        wrong("at_least",
              "missing: override names expires, max-age or s-maxage, which it raises to at_least");
    }
    if (sound && members.is_sound("at_most") && into.at_most && into.at_least > *into.at_most) {
        wrong("at_least",
              "must not be above at_most: here " + duration_to_string(into.at_least) + " and " +
                  duration_to_string(*into.at_most));
    }
    for (const auto* name :
         {"at_least", "at_most", "heuristic_fraction", "heuristic_most", "override", "reload"}) {
        if (members.has(name)) {
            return;
        }
    }
    here.wrong("a rule with a url alone says as much as none; it is for at_least, at_most, "
               "heuristic_fraction, heuristic_most, override or reload");
}

void detail::check_shadowed(const std::vector<std::string_view>& patterns, const place& rules) {
    for (std::size_t i = 1; i < patterns.size(); ++i) {
        for (std::size_t before = 0; before < i; ++before) {
            if (matches_pattern(patterns[before], patterns[i])) {
                rules.element(i).member("url").wrong(
                    in_quotes(patterns[i]) + " is never reached: rules[" + std::to_string(before) +
                    "], " + in_quotes(patterns[before]) + ", comes first and matches all of it");
                break;
            }
        }
    }
}

namespace {

// What the listeners make of the URLs that they can be asked for.
struct reachable {
    bool https = false;
    bool any_port = false;  // an accelerator's clients choose it by Host
    const std::vector<port_range>* ports = nullptr;
};

template <class Rule>
void check_reachable(const std::vector<Rule>& rules, const reachable& served, const place& here) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
        const std::string_view url{rules[i].url};
        const auto port = port_of_pattern(url);
        std::string why;
        if (!served.https && url.starts_with("https://")) {
            why = "no listener is asked for https";
        } else if (served.ports != nullptr && !served.any_port && port &&
                   std::none_of(
                       served.ports->begin(), served.ports->end(), [&](const port_range& each) {
                           return each.first <= *port && *port <= each.last;
                       })) {
            why = "port " + std::to_string(*port) + " is not in access.request_ports";
        }
        if (!why.empty()) {
            here.member("rules").element(i).member("url").wrong(in_quotes(url) +
                                                                " can never match: " + why);
        }
    }
}

// Whoever names a disk and says no more gets the store that lost least against others on all traces
// it was tried on (tools/results): what is asked for once waits in memory, what is asked for again
// reaches the disk when memory lets it go, if it is worth more than what goes for it.
void adopt_store_with_disk(options& into) {
    if (!into.memory.has_policy) {
        into.memory.policy = eviction_kind::gdsf;
    }
    if (!into.disk.has_write) {
        into.disk.write = disk_write::eviction;
    }
    if (!into.disk.has_carry) {
        into.disk.carry = 0.6;
    }
    if (!into.disk.has_selective) {
        into.disk.selective = true;
    }
    if (!into.admission.has_probation) {
        into.admission.probation = 1;
    }
}

/// One of both is every address of the family that the other one is of, at the same port; the admin's `::` is
/// those of IPv4 too. (Two listeners may be so: they
/// share their ports with those of other processes, too.)
bool is_in_the_way(const endpoint& listener, const endpoint& admin) {
    if (listener.port == 0 || listener.port != admin.port || listener.host == admin.host) {
        return false;
    }
    const auto is_v6 = [](const endpoint& one) { return one.host.find(':') != one.host.npos; };
    const auto is_all = [](const endpoint& one) {
        return one.host == "0.0.0.0" || one.host == "::";
    };
    return admin.host == "::" ||
           (is_v6(listener) == is_v6(admin) && (is_all(listener) || is_all(admin)));
}

}  // namespace

void check_options(options& into, const given& members, const place& here) {
    if (!into.disk.path.empty()) {
        adopt_store_with_disk(into);
    }
    // Where "auto" is to begin: whoever admits too much has as many hits as plain eviction, and
    // whoever is too strict may have none.
    if (into.admission.choice.policy == admission_policy::automatic &&
        !into.admission.has_probation) {
        into.admission.probation = 1;
    }
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
    if (members.is_sound("listeners") && members.is_sound("access") &&
        into.access.trusted_fronts.empty()) {
        for (std::size_t i = 0; i < into.listeners.size(); ++i) {
            if (into.listeners[i].proxy_protocol) {
                here.member("listeners")
                    .element(i)
                    .member("proxy_protocol")
                    .wrong("nobody could connect: write the load balancers' networks into "
                           "access.trusted_fronts");
            }
        }
    }
    if (members.is_sound("listeners")) {
        const auto any_listener = [&into](auto is) {
            return std::any_of(into.listeners.begin(), into.listeners.end(), is);
        };
        reachable served;
        // An accelerator without TLS is asked for nothing by https.
        served.https = any_listener(
            [](const listener& one) { return one.mode == listener_mode::forward || one.tls; });
        // A request for another port is refused before any rule is asked, but not if it comes to
        // an accelerator.
        served.any_port = any_listener(
            [](const listener& one) { return one.mode == listener_mode::accelerator; });
        served.ports = members.is_sound("access") ? &into.access.request_ports : nullptr;
        if (members.is_sound("admission")) {
            check_reachable(into.admission.rules, served, here.member("admission"));
        }
        if (members.is_sound("freshness")) {
            check_reachable(into.freshness.rules, served, here.member("freshness"));
        }
    }
    check_unread(into, members, here);
    if (into.peering.never_direct && members.is_sound("peering") && members.is_sound("peers") &&
        std::none_of(into.peers.begin(), into.peers.end(), [](const peer_options& one) {
            return one.kind == peer_kind::parent;
        })) {
        here.member("peering")
            .member("never_direct")
            .wrong("leaves no way out: no peer is a parent (\"kind\": \"parent\")");
    }
    if (!into.peering.gateway_for.empty() && members.is_sound("peering") &&
        members.is_sound("peers") &&
        std::none_of(into.peers.begin(), into.peers.end(), [](const peer_options& one) {
            return one.kind == peer_kind::sibling && one.protocol == peer_protocol::reprise;
        })) {
        here.member("peering")
            .member("gateway_for")
            .wrong("speaks for nobody: no peer is a sibling of protocol \"reprise\"");
    }
    if (into.peering.homes && members.is_sound("peering") && members.is_sound("peers") &&
        members.is_sound("forwarding")) {
        const auto homes = here.member("peering").member("homes");
        if (std::none_of(into.peers.begin(), into.peers.end(), [](const peer_options& one) {
                return one.kind == peer_kind::sibling && one.protocol == peer_protocol::reprise;
            })) {
            homes.wrong("shares URLs with nobody: no peer is a sibling of protocol \"reprise\"");
        }
        if (into.forwarding.pseudonym.empty()) {
            homes.wrong("wants forwarding.pseudonym, a name of this node's own that lasts: by it "
                        "the fleet knows which URLs are its");
        }
    }
    if (into.admin.address && members.is_sound("admin")) {
        const auto there = here.member("admin").member("address");
        take(*into.admin.address, "admin", there);
        for (std::size_t i = 0; i < into.listeners.size(); ++i) {
            if (is_in_the_way(into.listeners[i].address, *into.admin.address)) {
                there.wrong(to_string(*into.admin.address) + " cannot be had beside listeners[" +
                            std::to_string(i) + "], " + to_string(into.listeners[i].address) +
                            ": write another port");
            }
        }
    }
}

}  // namespace reprise::config
