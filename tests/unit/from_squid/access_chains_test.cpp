// Chains of rules as they come, each beside what Squid makes of it: whatever ours allows, it does, or
// something was said to be laxer.

#include "tests/unit/from_squid/reduced.hpp"
#include "tools/from_squid/access.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>

namespace reprise::from_squid {

namespace {

struct request {
    std::string client, method, host;
    unsigned port = 0;
    bool known = false;    // shows a password
    bool unsaid = false;   // whether what ours has no condition for holds
    bool partner = false;  // whether the host has an address of the list by name
};

bool is_in(const network_set& networks, const std::string& client) {
    return !intersection(networks, parse_addresses(client)).empty();
}

bool is_in(const port_set& ports, unsigned port) {
    return std::any_of(ports.begin(), ports.end(), [port](const auto& one) {
        return one.first <= port && port <= one.last;
    });
}

struct list {
    std::string name, definition;
    std::function<bool(const request&)> holds;
};

const std::vector<list>& lists() {
    static const auto from = [](const char* networks) {
        return [set = parse_addresses(networks)](const request& one) {
            return is_in(set, one.client);
        };
    };
    static const std::vector<list> all{
        {"all", "", [](const request&) { return true; }},
        {"lan", "src 10.0.0.0/8", from("10.0.0.0/8")},
        {"wifi", "src 10.9.0.0/16", from("10.9.0.0/16")},
        {"six", "src 2001:db8::/32", from("2001:db8::/32")},
        {"nobody", "src \"empty\"", [](const request&) { return false; }},
        {"safe",
         "port 80 443 1025-65535",
         [](const request& one) { return one.port == 80 || one.port == 443 || one.port > 1024; }},
        {"ssl", "port 443", [](const request& one) { return one.port == 443; }},
        {"low", "port 0-1023", [](const request& one) { return one.port < 1024; }},
        {"noport", "port", [](const request&) { return false; }},
        {"CONNECT", "", [](const request& one) { return one.method == "CONNECT"; }},
        {"PURGE", "method PURGE", [](const request& one) { return one.method == "PURGE"; }},
        {"reads", "method GET HEAD", [](const request& one) { return one.method == "GET"; }},
        {"bad",
         "dstdomain bad.example",
         [](const request& one) { return one.host == "bad.example"; }},
        {"nohost", "dstdomain \"empty\"", [](const request&) { return false; }},
        {"partner", "dst partner.example", [](const request& one) { return one.partner; }},
        {"some",
         "dstdomain bad.example \"missing\"",
         [](const request& one) { return one.host == "bad.example" || one.partner; }},
        {"known", "proxy_auth REQUIRED", [](const request& one) { return one.known; }},
        {"hours", "time MTWHF 9:00-17:00", [](const request& one) { return one.unsaid; }},
    };
    return all;
}

struct rule {
    bool allows = false;
    std::vector<std::pair<const list*, bool>> conditions;  // true: negated
};

bool squid_allows(const std::vector<rule>& chain, const request& one) {
    for (const auto& each : chain) {
        const bool matches = std::all_of(
            each.conditions.begin(), each.conditions.end(), [&](const auto& condition) {
                return condition.first->holds(one) != condition.second;
            });
        if (matches) {
            return each.allows;
        }
    }
    return !chain.back().allows;
}

// What the settings say where no rule does.
const port_set usual_ports{{80, 80}, {443, 443}, {1024, 65535}};
const port_set usual_tunnels{{443, 443}};

bool ours_allows(const reduced_access& access, const request& one) {
    if (!is_in(access.clients, one.client) || (access.needs_users && !one.known)) {
        return false;
    }
    if (one.method == "PURGE") {
        return is_in(access.purge_clients, one.client);
    }
    const auto& denied = access.deny_destinations;
    if (std::find(denied.begin(), denied.end(), one.host) != denied.end()) {
        return false;
    }
    if (one.method == "CONNECT") {
        return is_in(access.connect_bounded ? access.connect_ports : usual_tunnels, one.port);
    }
    return is_in(access.ports_bounded ? access.request_ports : usual_ports, one.port);
}

std::vector<request> every_request() {
    std::vector<request> out;
    for (const auto* client : {"10.0.0.1", "10.9.0.1", "192.0.2.1", "2001:db8::1", "2001:db9::1"}) {
        for (const auto* method : {"GET", "POST", "CONNECT", "PURGE"}) {
            for (const auto* host : {"good.example", "bad.example"}) {
                for (const unsigned port : {25u, 80u, 443u, 8080u}) {
                    for (unsigned bits = 0; bits < 8; ++bits) {
                        out.push_back({client,
                                       method,
                                       host,
                                       port,
                                       (bits & 1) != 0,
                                       (bits & 2) != 0,
                                       (bits & 4) != 0});
                    }
                }
            }
        }
    }
    return out;
}

class chains {
public:
    std::vector<rule> next() {
        std::vector<rule> out(1 + random_() % 5);
        for (auto& each : out) {
            each.allows = random_() % 2 == 0;
            for (auto more = 1 + random_() % 3; more > 0; --more) {
                each.conditions.emplace_back(&lists()[random_() % lists().size()],
                                             random_() % 4 == 0);
            }
        }
        return out;
    }

private:
    std::mt19937 random_{20};
};

std::string text_of(const std::vector<rule>& chain) {
    std::string out;
    for (const auto& each : chain) {
        out += each.allows ? "http_access allow" : "http_access deny";
        for (const auto& [what, negated] : each.conditions) {
            out += (negated ? " !" : " ") + what->name;
        }
        out += '\n';
    }
    return out;
}

}  // namespace

TEST_SUITE("from_squid/access_chains") {
    TEST_CASE("what a chain comes to allows nothing that Squid denies, unless it says so") {
        std::string definitions;
        for (const auto& each : lists()) {
            if (!each.definition.empty()) {
                definitions += "acl " + each.name + ' ' + each.definition + '\n';
            }
        }
        const auto requests = every_request();
        chains source;
        std::size_t silent = 0, served = 0;
        for (int i = 0; i < 2'000; ++i) {
            const auto chain = source.next();
            const auto text = definitions + text_of(chain);
            const auto result = of(text, i % 2 == 0);
            const auto& access = result.access;
            if (result.count(fate::laxer) != 0) {
                continue;
            }
            ++silent;
            served += access.clients.empty() ? 0 : 1;
            for (const auto& one : requests) {
                if (!ours_allows(access, one) || squid_allows(chain, one)) {
                    continue;
                }
                // A purge of what nobody can reach takes nothing away: it is enough that Squid allows
                // this client some.
                const bool some = std::any_of(
                    requests.begin(), requests.end(), [&](const request& other) {
                        return other.client == one.client && other.method == one.method &&
                               other.known == one.known && other.unsaid == one.unsaid &&
                               squid_allows(chain, other);
                    });
                if (one.method == "PURGE" && some) {
                    continue;
                }
                const auto rest = text_of(chain);
                CAPTURE(rest);
                CAPTURE(one.client);
                CAPTURE(one.method);
                CAPTURE(one.host);
                CAPTURE(one.port);
                CAPTURE(one.known);
                CHECK_MESSAGE(false, "allowed in silence");
                break;
            }
        }
        CHECK(silent > 500);
        CHECK(served > 100);
    }
}

}  // namespace reprise::from_squid
