#include "proxy/admin/dashboard.hpp"

#include "proxy/admin/summary.hpp"
#include "proxy/base/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

// The template has names in double braces, and dashboard_page() says for each what stands there,
// escaped where it is no markup of ours. The table for those without JavaScript is made of the same
// inputs.

namespace reprise::proxy::admin {

namespace {

std::string escaped(std::string_view text) {
    std::string out;
    append_html_escaped(out, text);
    return out;
}

// The template with what `value` says of each name in double braces, as it stands.
template <class Value>
std::string filled(std::string_view from, Value value) {
    std::string page;
    page.reserve(from.size() + 8192);
    while (true) {
        const auto open = from.find("{{");
        const auto close = from.find("}}", open);
        page.append(from.substr(0, open));
        if (open == std::string_view::npos || close == std::string_view::npos) {
            return page;
        }
        page.append(value(from.substr(open + 2, close - open - 2)));
        from.remove_prefix(close + 2);
    }
}

std::string seconds_in_words(double seconds) {
    const auto micro = static_cast<std::uint64_t>(seconds * 1e6);
    return micro < 10'000       ? grouped(micro) + " µs"
           : micro < 10'000'000 ? grouped(micro / 1000) + " ms"
                                : grouped(micro / 1'000'000) + " s";
}

using plain_rows = std::vector<std::pair<std::string, std::string>>;

void add_store_rows(const stats_inputs& in, plain_rows& rows) {
    rows.emplace_back("Memory: used",
                      bytes_in_words(in.memory.bytes) + " of " +
                          bytes_in_words(in.memory.capacity));
    rows.emplace_back("Memory: objects", grouped(in.memory.objects));
    rows.emplace_back("Memory: evicted", grouped(in.memory.evicted));
    if (in.memory.eviction_age) {
        rows.emplace_back("Memory: unused before eviction", time_in_words(*in.memory.eviction_age));
    }
    if (!in.disk) {
        rows.emplace_back("Disk", "none");
        return;
    }
    rows.emplace_back("Disk: state", to_string(in.disk->state));
    rows.emplace_back("Disk: used",
                      bytes_in_words(in.disk->bytes) + " of " + bytes_in_words(in.disk->capacity));
    if (in.room) {
        rows.emplace_back("Disk: left on its file system", bytes_in_words(in.room->free));
    }
    rows.emplace_back("Disk: objects", grouped(in.disk->objects));
    rows.emplace_back("Disk: evicted", grouped(in.disk->evicted));
    rows.emplace_back("Disk: oldest", time_in_words(in.disk->oldest));
}

void add_latency_rows(const stats_inputs& in, plain_rows& rows) {
    for (std::size_t i = 0; i < latency_class_count; ++i) {
        const auto& measured = in.counts.first_byte[i];
        if (count_of(measured) == 0) {
            continue;
        }
        const auto at = [&](double share) {
            return seconds_in_words(quantile_of(measured, share) / 1e6);
        };
        rows.emplace_back("First byte, " + std::string{to_string(static_cast<latency_class>(i))},
                          "p50 " + at(0.5) + ", p90 " + at(0.9) + ", p99 " + at(0.99));
    }
}

std::string costliest(const std::vector<costly_hosts::one>& hosts) {
    constexpr std::size_t most = 12;
    std::string names;
    for (std::size_t i = 0; i < std::min(hosts.size(), most); ++i) {
        names += (i == 0 ? "" : ", ") + hosts[i].host + " (" + grouped(hosts[i].hits_lost) + ")";
    }
    return names;
}

std::string heaviest_hosts(const std::vector<hosts_by_bytes::one>& hosts) {
    constexpr std::size_t most = 12;
    std::string names;
    for (std::size_t i = 0; i < std::min(hosts.size(), most); ++i) {
        const auto& one = hosts[i];
        names += (i == 0 ? "" : ", ") + one.host + " (" + bytes_in_words(one.bytes) + ", " +
                 bytes_in_words(one.from_store) + " of it from the store)";
    }
    return names;
}

plain_rows plain_figures(const stats_inputs& in) {
    plain_rows rows;
    const auto of = make_summary(in);
    rows.emplace_back("Requests answered", grouped(of.requests));
    rows.emplace_back("Hit ratio", percent(of.hit_ratio));
    rows.emplace_back("Byte hit ratio", percent(of.byte_hit_ratio));
    rows.emplace_back("Hit ratio of the last minute", percent(in.last_minute.hit_ratio()));
    rows.emplace_back("Hit ratio of the last ten minutes",
                      percent(in.last_ten_minutes.hit_ratio()));
    rows.emplace_back("Bytes from the store", bytes_in_words(of.store_bytes));
    rows.emplace_back("Objects kept out by admission", grouped(of.writes_spared));
    rows.emplace_back("Bytes kept out", bytes_in_words(of.written_bytes_spared));
    rows.emplace_back("Requests that would have been hits without admission",
                      grouped(of.hits_lost));
    if (!in.costly.empty()) {
        rows.emplace_back("Hosts with most of these", costliest(in.costly));
    }
    add_store_rows(in, rows);
    add_latency_rows(in, rows);
    rows.emplace_back("Origins: connections open, failed",
                      grouped(in.counts.origin_open) + ", " + grouped(in.counts.origin_failed));
    if (!in.by_bytes.empty()) {
        rows.emplace_back("Hosts by bytes to clients", heaviest_hosts(in.by_bytes));
    }
    rows.emplace_back("Requests that joined another's fetch", grouped(in.counts.collapsed_joined));
    if (in.peers) {
        for (const auto& one : in.peers->siblings) {
            const auto hits =
                one.benefit.ended[static_cast<std::size_t>(peer::asking_end::true_hit)];
            rows.emplace_back("Sibling " + one.digest.name,
                              std::string{to_string(one.digest.digest.state)} + ", " +
                                  grouped(hits) + " hits, " + bytes_in_words(one.benefit.bytes));
        }
    }
    rows.emplace_back("What if", in.what_if.text);
    rows.emplace_back("Warnings, errors in the log",
                      grouped(in.log_lines.warnings) + ", " + grouped(in.log_lines.errors));
    return rows;
}

std::string plain_table(const stats_inputs& in) {
    std::string rows;
    for (const auto& [name, value] : plain_figures(in)) {
        rows += "<tr><th scope=\"row\">" + escaped(name) + "</th><td>" + escaped(value) +
                "</td></tr>\n";
    }
    return rows;
}

std::string large_figures(const summary& of) {
    std::string all;
    for (const auto& one : of.figures) {
        all += "<div class=\"" + escaped(one.kind) + "\"><dt>" + escaped(one.label) +
               "</dt><dd class=\"value\">" + escaped(one.value) + "</dd><dd class=\"more\">" +
               escaped(one.more) + "</dd></div>\n";
    }
    return all;
}

std::string list_of(const std::vector<std::string>& sentences) {
    std::string all;
    for (const auto& one : sentences) {
        all += "<li>" + escaped(one) + "</li>";
    }
    return all;
}

std::string page_without_figures() {
    return filled(embedded::page_template(), [](std::string_view name) -> std::string {
        if (name == "state") {
            return "unknown";
        }
        if (name == "headline") {
            return "Its figures take long just now.";
        }
        if (name == "text") {
            return "It lives, and this page was answered; what was asked before is waited for.";
        }
        return {};
    });
}

}  // namespace

std::span<const dashboard_asset> dashboard_assets() noexcept {
    static const std::array all{
        dashboard_asset{"/dashboard.css", "text/css; charset=utf-8", embedded::style()},
        dashboard_asset{"/dashboard.js", "text/javascript; charset=utf-8", embedded::script()},
        dashboard_asset{"/chart.js", "text/javascript; charset=utf-8", embedded::charts()},
        dashboard_asset{"/icon.svg", "image/svg+xml", embedded::icon()}};
    return all;
}

std::string dashboard_page(const stats_inputs* inputs) {
    if (inputs == nullptr) {
        return page_without_figures();
    }
    const auto of = make_summary(*inputs);
    return filled(embedded::page_template(), [&](std::string_view name) -> std::string {
        if (name == "state") {
            return of.not_well.empty() ? "well" : "unwell";
        }
        if (name == "headline") {
            return escaped(of.headline);
        }
        if (name == "troubles") {
            return list_of(of.not_well);
        }
        if (name == "notes") {
            return list_of(of.notes);
        }
        if (name == "text") {
            return escaped(of.text);
        }
        if (name == "figures") {
            return large_figures(of);
        }
        if (name == "plain") {
            return plain_table(*inputs);
        }
        if (name == "version") {
            return escaped(inputs->version);
        }
        if (name == "since") {
            return utc(of.since);
        }
        if (name == "at") {
            return "As of " + utc(inputs->at);
        }
        return {};
    });
}

}  // namespace reprise::proxy::admin
