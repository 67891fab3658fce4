// http_port and https_port: where clients come in.

#include "config/address.hpp"
#include "config/options.hpp"
#include "tools/from_squid/draft.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

namespace reprise::from_squid {

namespace {

// "host:port", "[address]:port" or "port"; none: neither.
struct place_to_listen {
    std::string host;  ///< empty: all addresses, of both kinds
    std::string port;
};

std::optional<place_to_listen> read_place(const std::string& text) {
    place_to_listen out;
    const auto colon = text.rfind(':');
    if (colon == std::string::npos) {
        out.port = text;
    } else {
        out.host = text.substr(0, colon);
        out.port = text.substr(colon + 1);
        if (out.host == "localhost") {
            out.host = "127.0.0.1";
        }
        if (out.host.starts_with('[') && out.host.ends_with(']')) {
            out.host = out.host.substr(1, out.host.size() - 2);
        }
        const auto address = config::parse_ip(out.host);
        if (!address) {
            return std::nullopt;
        }
        // Squid's [::] takes IPv4 as well; a listener of ours is for one kind.
        if (*address == std::array<std::uint8_t, 16>{}) {
            out.host.clear();
        }
    }
    const auto port = config::parse_port(out.port);
    return port && *port != 0 ? std::optional{out} : std::nullopt;
}

std::string address_text(const std::string& host, const std::string& port) {
    const bool ipv6 = host.find(':') != std::string::npos;
    return (ipv6 ? '[' + host + ']' : host) + ':' + port;
}

bool is_accelerator(const statement& from) {
    return has_word(from, "accel") || has_word(from, "vhost") || option_of(from, "defaultsite") ||
           option_of(from, "vport") || has_word(from, "vport");
}

std::optional<ordered_json> tls_of(draft& into, const statement& from) {
    auto certificate = option_of(from, "tls-cert");
    certificate = certificate ? certificate : option_of(from, "cert");
    auto key = option_of(from, "tls-key");
    key = key ? key : option_of(from, "key");
    if (!certificate) {
        into.say(fate::left_out, from, "TLS without a certificate (cert=)", "listeners");
        return std::nullopt;
    }
    if (!key) {
        into.say(fate::approximated,
                 from,
                 "the key is looked for in the certificate's file",
                 "listeners");
    }
    return ordered_json{{"certificate", *certificate}, {"key", key.value_or(*certificate)}};
}

// What a connection must show, beside its address, before anything is asked of it. A listener that did
// without would let in whom Squid does not.
std::string_view demand_of(const statement& from) {
    if (has_word(from, "require-proxy-header")) {
        return "a PROXY header is not asked for: write the listener with \"proxy_protocol\": true, "
               "and the load balancers into access.trusted_fronts";
    }
    if (option_of(from, "clientca") || option_of(from, "tls-clientca")) {
        return "clients are asked for no certificate: nobody is served here that had to show one";
    }
    return {};
}

// Options that are said otherwise here, or change nothing of who is answered what.
bool is_familiar(std::string_view option) {
    const auto name = option.substr(0, option.find('='));
    for (const auto* each : {"accel",
                             "cert",
                             "connection-auth",
                             "defaultsite",
                             "disable-pmtu-discovery",
                             "dynamic_cert_mem_cache_size",
                             "generate-host-certificates",
                             "key",
                             "name",
                             "no-connection-auth",
                             "ssl-bump",
                             "tcpkeepalive",
                             "tls-cert",
                             "tls-key",
                             "vhost",
                             "vport",
                             "worker-queues"}) {
        if (name == each) {
            return true;
        }
    }
    return false;
}

void add_listener(draft& into,
                  ordered_json& list,
                  std::set<std::string>& taken,
                  const statement& from,
                  const std::string& upstream) {
    const auto place = read_place(word_at(from, 1));
    if (!place) {
        into.say(fate::left_out,
                 from,
                 "listeners are addresses and ports: write the address",
                 "listeners");
        return;
    }
    for (const auto* mode : {"intercept", "transparent", "tproxy"}) {
        if (has_word(from, mode)) {
            into.say(
                fate::left_out,
                from,
                "connections that were meant for another are not taken: tell clients of the proxy",
                "listeners");
            return;
        }
    }
    if (const auto demand = demand_of(from); !demand.empty()) {
        into.say(fate::left_out, from, std::string{demand}, "listeners");
        return;
    }
    ordered_json made = ordered_json::object();
    if (from.name() == "https_port") {
        auto tls = tls_of(into, from);
        if (!tls) {
            return;
        }
        made["tls"] = std::move(*tls);
    }
    if (has_word(from, "ssl-bump")) {
        into.say(fate::left_out,
                 from,
                 "ssl-bump: intercept opens tunnels of listed hosts, with a CA of its own; see "
                 "REFERENCE.md",
                 "listeners");
    }
    if (is_accelerator(from)) {
        if (upstream.empty()) {
            into.say(fate::left_out,
                     from,
                     "an accelerator needs its upstream: no cache_peer is an originserver",
                     "listeners");
            return;
        }
        made["mode"] = "accelerator";
        made["upstream"] = upstream;
    }
    for (std::size_t i = 2; i < from.words.size(); ++i) {
        if (from.words[i].text == "no-vhost") {
            // Squid took all for one site; the upstream may have others, and rules may name that one.
            into.say(fate::laxer,
                     from,
                     "no-vhost: which site is meant is what the client's Host says",
                     "listeners");
        } else if (!is_familiar(from.words[i].text)) {
            into.say(fate::left_out, from, from.words[i].text + " has no counterpart", "listeners");
        }
    }
    if (place->host.empty()) {
        into.say(fate::changed, from, "a listener for each kind of address", "listeners");
    }
    const auto hosts = place->host.empty() ? std::vector<std::string>{"0.0.0.0", "::"}
                                           : std::vector<std::string>{place->host};
    for (const auto& host : hosts) {
        const auto address = address_text(host, place->port);
        if (!taken.insert(address).second) {
            into.say(fate::left_out, from, address + " is listened on already", "listeners");
            continue;
        }
        ordered_json one{{"address", address}};
        one.update(made);
        list.push_back(std::move(one));
    }
}

// Another port for the admin listener, which would be in the way of one of these: whose port is the same, whatever its address.
void make_way(draft& into, const std::set<std::string>& taken) {
    const auto is_taken = [&](unsigned port) {
        const auto ending = ':' + std::to_string(port);
        return std::any_of(taken.begin(), taken.end(), [&](const std::string& one) {
            return one.ends_with(ending);
        });
    };
    const auto usual = config::admin_options{}.address->port;
    if (!is_taken(usual)) {
        return;
    }
    // There are fewer lines of http_port than ports.
    unsigned port = usual + 1u;
    while (is_taken(port)) {
        port = port == 65'535 ? 1'024 : port + 1;
    }
    into.settings["admin"]["address"] = "127.0.0.1:" + std::to_string(port);
    into.told.push_back({fate::changed,
                         {},
                         "",
                         "port " + std::to_string(usual) +
                             ", the admin listener's unless another is written, is one of Squid's",
                         "admin.address"});
}

}  // namespace

void convert_listeners(draft& into, const statements& ports, const statements& peers) {
    const auto upstream = upstream_of(into, peers);
    auto list = ordered_json::array();
    std::set<std::string> taken;
    for (const auto* each : ports) {
        add_listener(into, list, taken, *each, upstream);
    }
    if (!list.empty()) {
        make_way(into, taken);
        into.settings["listeners"] = std::move(list);
    }
}

}  // namespace reprise::from_squid
