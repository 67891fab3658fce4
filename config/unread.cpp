#include "config/unread.hpp"

#include "config/mistake.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

// A check speaks up only about members that were read without a mistake (checks.hpp).

namespace reprise::config {
namespace {

/// Some address is in both.
bool overlap(const network& a, const network& b) {
    const auto bits = std::min(a.prefix_bits, b.prefix_bits);
    const auto whole = bits / 8;
    const auto mask = static_cast<std::uint8_t>(0xff00u >> (bits % 8));
    return std::equal(a.address.begin(), a.address.begin() + whole, b.address.begin()) &&
           (bits % 8 == 0 || ((a.address[whole] ^ b.address[whole]) & mask) == 0);
}

bool overlap(const std::vector<network>& some, const network& one) {
    return std::any_of(
        some.begin(), some.end(), [&](const network& each) { return overlap(each, one); });
}

bool is_listed_port(const std::vector<port_range>& ranges, std::uint16_t port) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const port_range& each) {
        return each.first <= port && port <= each.last;
    });
}

// An accelerator's clients are those of its upstream: it asks them for no password, and leads nowhere else.
void check_for_forward(const options& into, const given& members, const place& here) {
    const bool any_forward = std::any_of(
        into.listeners.begin(), into.listeners.end(), [](const listener& one) {
            return one.mode == listener_mode::forward;
        });
    if (any_forward || !members.is_sound("listeners")) {
        return;
    }
    const auto& access = into.access;
    const auto wrong = [&](std::string_view member, bool is_written, std::string_view what) {
        if (is_written && members.is_sound("access")) {
            here.member("access").member(member).wrong(std::string{what} +
                                                       ": no listener is forward, and an "
                                                       "accelerator does not look at it");
        }
    };
    wrong("deny_destinations", !access.deny_destinations.empty(), "refuses nothing");
    wrong("https_prefix", !access.https_prefix.empty(), "lets nobody ask so");
    wrong("block_lists", !access.block_lists.empty(), "refuses nothing");
    wrong("users_file", !access.users_file.empty(), "asks nobody for a password");
    wrong("tokens_file", !access.tokens_file.empty(), "asks nobody for a token");
    if (!into.peers.empty() && members.is_sound("peers")) {
        here.member("peers").wrong("are asked for nothing, and can ask for nothing: no listener is "
                                   "forward, and what accelerators have is their own");
    }
    if (into.intercept && members.is_sound("intercept")) {
        here.member("intercept")
            .wrong("opens nothing: no listener is forward, and an accelerator takes no CONNECT");
    }
}

void check_intercepted(const options& into, const given& members, const place& here) {
    if (!into.intercept || !members.is_sound("intercept") || !members.is_sound("access")) {
        return;
    }
    const auto& access = into.access;
    const auto& wanted = *into.intercept;
    const auto there = here.member("intercept");
    // Where nobody is served at all that was meant.
    if (!access.clients.empty() &&
        std::none_of(wanted.clients.begin(), wanted.clients.end(), [&](const network& one) {
            return overlap(access.clients, one);
        })) {
        there.member("clients").wrong("opens nobody's tunnels: none of these networks is among "
                                      "access.clients; write those of them whose clients have been "
                                      "given the CA's certificate");
    }
    for (std::size_t i = 0; i < wanted.ports.size(); ++i) {
        if (!is_listed_port(access.connect_ports, wanted.ports[i])) {
            there.member("ports").element(i).wrong("no tunnel leads to port " +
                                                   std::to_string(wanted.ports[i]) +
                                                   ": it is not in access.connect_ports");
        }
    }
}

// A gateway's guests are clients of its listener, whatever they may have of its siblings.
void check_gateway(const options& into, const given& members, const place& here) {
    const auto& clients = into.access.clients;
    if (clients.empty() || !members.is_sound("access") || !members.is_sound("peering")) {
        return;
    }
    for (std::size_t i = 0; i < into.peering.gateway_for.size(); ++i) {
        if (!overlap(clients, into.peering.gateway_for[i])) {
            here.member("peering")
                .member("gateway_for")
                .element(i)
                .wrong("is not among access.clients: whoever is not served gets nothing of what "
                       "the digest for it lists");
        }
    }
}

}  // namespace

void check_master(std::initializer_list<std::string_view> some,
                  std::string_view master,
                  std::string_view why,
                  const given& members,
                  const place& here) {
    const bool any = std::any_of(
        some.begin(), some.end(), [&](std::string_view one) { return members.has(one); });
    if (any && !members.has(master)) {
        here.member(master).wrong("missing: " + std::string{why});
    }
}

void check_access(const access_options& into, const given& members, const place& here) {
    if (into.plaintext_passwords && !members.has("users_file") && !members.has("tokens_file")) {
        here.member("plaintext_passwords")
            .wrong("belongs to users_file or tokens_file: nobody is asked for a password");
    }
    if (into.clients.empty() || !members.is_sound("clients") ||
        !members.is_sound("purge_clients")) {
        return;
    }
    for (std::size_t i = 0; i < into.purge_clients.size(); ++i) {
        if (!overlap(into.clients, into.purge_clients[i])) {
            here.member("purge_clients")
                .element(i)
                .wrong("is not among access.clients: whoever is not served may not send PURGE");
        }
    }
}

void check_freshness(const freshness_options& into, const given& members, const place& here) {
    if (into.stale_on_error_status && members.is_sound("stale_on_error") &&
        into.stale_on_error == seconds{0}) {
        here.member("stale_on_error_status")
            .wrong("does nothing where stale_on_error is 0s, for how long past its end a response "
                   "stands in");
    }
}

void check_unread(const options& into, const given& members, const place& here) {
    check_for_forward(into, members, here);
    check_intercepted(into, members, here);
    check_gateway(into, members, here);
    if (!into.admission.rules.empty() && members.is_sound("listeners") &&
        members.is_sound("admission") &&
        std::all_of(into.listeners.begin(), into.listeners.end(), [](const listener& one) {
            return one.admission.has_value();
        })) {
        here.member("admission")
            .member("rules")
            .wrong("decide nothing: each listener has an admission of its own, which stands in "
                   "their place");
    }
    if (into.admission.has_share && into.admission.share && into.digest.secret_file.empty() &&
        members.is_sound("admission") && members.is_sound("digest") && members.is_sound("peers") &&
        std::any_of(into.peers.begin(), into.peers.end(), [](const peer_options& one) {
            return one.kind != peer_kind::parent && one.protocol == peer_protocol::reprise;
        })) {
        here.member("admission")
            .member("share")
            .wrong("shares nothing without digest.secret_file, the same at all siblings");
    }
}

}  // namespace reprise::config
