// Tunnels, opened and passed on, as rows of the table of metrics; and of each host whose tunnels move many
// bytes the line of settings that would have them stored. Without `intercept` nothing is opened.

#include "proxy/admin/metrics_table.hpp"
#include "proxy/admin/tunnel_advice.hpp"
#include "proxy/net/address.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace reprise::proxy::admin {

namespace {

using nlohmann::json;

using listed = const tunnel_hosts::listed&;
using unlisted = const tunnel_hosts::unlisted&;

/// A number of each listed host; `value` captures nothing.
template <class Value>
consteval metric per_listed(std::string_view name,
                            std::string_view json,
                            std::string_view help,
                            Value) {
    return by_label(name, json, "host", help, [](in from, out sink) {
        for (const auto& one : from.tunnels.opened) {
            draw(sink, Value{}(one), one.host);
        }
    });
}

/// Of the hosts whose tunnels moved most bytes those that moved a hundredth of what all of these did: clients choose hosts, and one
/// that others displace and that comes back would count from the beginning.
template <class Value>
consteval metric per_heavy(std::string_view name,
                           std::string_view json,
                           std::string_view help,
                           Value) {
    return by_label(name, json, "host", help, [](in from, out sink) {
        const auto& all = from.tunnels.most_bytes;
        const auto sum = std::accumulate(
            all.begin(), all.end(), std::uint64_t{0}, [](std::uint64_t before, const auto& one) {
                return before + one.bytes;
            });
        for (const auto& one : all) {
            if (one.bytes >= sum / 100) {
                draw(sink, Value{}(one), one.host);
            }
        }
    });
}

constexpr metric tunnel_rows[] = {
    plain("reprise_tunnels_opened_total",
          "intercept.opened",
          "CONNECTs to listed hosts (intercept) that were opened.",
          [](in from) { return from.counts.tunnels_opened; }),
    plain("reprise_tunnels_refused_total",
          "intercept.refused",
          "CONNECTs to listed hosts whose client did not take our certificate.",
          [](in from) { return from.counts.tunnels_refused; }),
    plain("reprise_tunnels_passed_on_total",
          "intercept.passed_on",
          "CONNECTs to listed hosts that were tunnelled for what the client's TLS hello said.",
          [](in from) { return from.counts.tunnels_passed_on; }),
    plain("reprise_intercept_leaves_made_total",
          "intercept.leaves_made",
          "Certificates made for listed hosts since the settings were read.",
          [](in from) { return from.leaves.made; }),
    plain("reprise_intercept_leaves_reused_total",
          "intercept.leaves_reused",
          "Times that one was there already.",
          [](in from) { return from.leaves.reused; }),
    plain("reprise_intercept_leaves",
          "intercept.leaves",
          "Certificates that are kept (intercept.leaves).",
          [](in from) { return from.leaves.kept; }),
    plain("reprise_intercept_ca_validity_seconds",
          "intercept.ca_validity_seconds",
          "Until intercept.ca_certificate, or one above it, has expired: then nothing is "
          "opened.",
          [](in from) { return from.leaves.ca_validity; }),
    per_listed(
        "reprise_intercept_host_opened_total",
        "intercept.hosts.opened",
        "Tunnels opened to this host; of the 64 hosts with most CONNECTs, as are those below.",
        [](listed one) { return one.opened; }),
    per_listed("reprise_intercept_host_refused_total",
               "intercept.hosts.refused",
               "Clients that did not take our certificate for it.",
               [](listed one) { return one.refused; }),
    per_listed("reprise_intercept_host_leaves_total",
               "intercept.hosts.leaves",
               "Certificates made for it.",
               [](listed one) { return one.leaves; }),
    per_listed("reprise_intercept_host_requests_total",
               "intercept.hosts.requests",
               "Requests in its opened tunnels.",
               [](listed one) { return one.requests; }),
    per_listed("reprise_intercept_host_hits_total",
               "intercept.hosts.hits",
               "Of these, answered by what was stored.",
               [](listed one) { return one.hits; }),
    {"reprise_intercept_host_passed_on_total",
     metric_kind::counter,
     "intercept.hosts.passed_on",
     "host",
     "why",
     "Its tunnels that were passed on, by why.",
     [](in from, out sink) {
         for (const auto& one : from.tunnels.opened) {
             for (const auto& [why, times] : one.passed_on) {
                 sink.number(times, one.host, why);
             }
         }
     }},
    per_heavy(
        "reprise_tunnel_host_bytes_total",
        "tunnels.bytes",
        "Bytes both ways of tunnels that were passed on and are over; of the 64 hosts with most, "
        "since each is among them, those with a hundredth of what these have: clients choose "
        "hosts.",
        [](unlisted one) { return one.bytes; }),
    per_heavy("reprise_tunnel_host_tunnels_total",
              "tunnels.count",
              "These tunnels.",
              [](unlisted one) { return one.tunnels; }),
};

}  // namespace

std::span<const metric> tunnel_metrics() noexcept {
    return tunnel_rows;
}

std::string line_that_opens(const tunnel_hosts::unlisted& one,
                            const std::optional<config::intercept_options>& now) {
    if (net::read_numeric_host(one.host)) {
        return {};
    }
    if (one.why == "off") {
        std::string line = "\"intercept\": { \"hosts\": [" + json(one.host).dump() + "], ";
        if (one.port != 443) {
            line += "\"ports\": [443, " + std::to_string(one.port) + "], ";
        }
        return line + "\"ca_certificate\": \"ca.pem\", \"ca_key\": \"ca.key\" }";
    }
    if (!now || (one.why != "not-listed" && one.why != "port")) {
        return {};
    }
    auto ports = now->ports;
    const bool new_port = std::find(ports.begin(), ports.end(), one.port) == ports.end();
    if (new_port) {
        ports.push_back(one.port);
    }
    const auto all_ports = "\"ports\": " + json(ports).dump();
    if (one.why == "port") {
        return all_ports;
    }
    auto hosts = now->hosts;
    hosts.push_back(one.host);
    return "\"hosts\": " + json(hosts).dump() + (new_port ? ", " + all_ports : "");
}

}  // namespace reprise::proxy::admin
