#include "tools/replay/live.hpp"

#include "config/address.hpp"
#include "config/eviction.hpp"
#include "config/quantity.hpp"
#include "proxy/admin/admin_client.hpp"
#include "proxy/base/text.hpp"
#include "tools/replay/columns.hpp"
#include "tools/replay/report.hpp"
#include "tools/replay/svg_chart.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ostream>
#include <stdexcept>
#include <variant>

// From /stats to an answer. What the figures are of, proxy/admin/what_if_metrics.cpp says.

namespace reprise::replay {

namespace {

using json = nlohmann::ordered_json;

constexpr double a_point = 0.01;  // what is worth a change, as the proxy's own advice has it

struct known_room {
    std::string_view name;
    double times;
};
constexpr std::array known_rooms{known_room{"x1/4", 0.25},
                                 known_room{"x1/2", 0.5},
                                 known_room{"x2", 2.0},
                                 known_room{"x4", 4.0}};

[[noreturn]] void refuse(std::string_view what, std::string_view why) {
    throw std::runtime_error{
        "/stats: \"" + std::string{what} + "\" " + std::string{why} +
        ": this is no answer of Reprise's admin listener, or of another version"};
}

const json& member(const json& root, std::string_view path) {
    const auto* at = &root;
    for (auto rest = path;;) {
        const auto dot = rest.find('.');
        const auto name = std::string{rest.substr(0, dot)};
        if (!at->is_object() || !at->contains(name)) {
            refuse(path, "is not there");
        }
        at = &at->at(name);
        if (dot == std::string_view::npos) {
            return *at;
        }
        rest.remove_prefix(dot + 1);
    }
}

double number(const json& root, std::string_view path) {
    const auto& value = member(root, path);
    constexpr double most = 1e18;  // more than any of these can be, and 64 bits can tell
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= most)) {
        refuse(path, "is no number, or none that it can be");
    }
    return value.get<double>();
}

// As a terminal may show it: it is a stranger's, if what was asked is not Reprise.
std::string text(const json& root, std::string_view path) {
    const auto& value = member(root, path);
    if (!value.is_string()) {
        refuse(path, "is no text");
    }
    constexpr std::size_t most = 1'000;
    return proxy::printable(value.get<std::string>().substr(0, most));
}

double ratio(const json& all, const std::string& label, std::string_view of) {
    const auto at = all.find(label);
    if (at == all.end() || !at->is_number() ||
        !(at->get<double>() >= 0 && at->get<double>() <= 1)) {
        refuse(of, "has no ratio for \"" + label + '"');
    }
    return at->get<double>();
}

double worth(const live_row& row, objective wanted) noexcept {
    switch (wanted) {
    case objective::requests: return row.hit_ratio;
    case objective::bytes: return row.byte_hit_ratio;
    case objective::seconds: return row.wait_hit_ratio;
    }
    return 0;
}

// "second-hit with probation 10%", as settings have it. Null: nothing that this program knows.
json admission_settings(std::string_view name) {
    constexpr std::string_view with = " with probation ", nth = "nth-hit ";
    const auto cut = name.find(with);
    auto policy = name.substr(0, cut);
    const auto share = cut == std::string_view::npos ? "0%" : name.substr(cut + with.size());
    json out;
    if (policy.starts_with(nth)) {
        policy.remove_prefix(nth.size());
        unsigned hits = 0;
        const auto* const end = policy.data() + policy.size();
        const auto [stop, error] = std::from_chars(policy.data(), end, hits);
        if (error != std::errc{} || stop != end || hits < 1 || hits > 15) {
            return {};
        }
        out = {{"policy", "nth-hit"}, {"hits", hits}};
    } else if (policy == "always" || policy == "second-hit" || policy == "tinylfu") {
        out = {{"policy", policy}};
    } else {
        return {};
    }
    const auto parsed = config::parse_percentage(share);
    if (std::get_if<double>(&parsed) == nullptr) {
        return {};
    }
    out["probation"] = share;
    return out;
}

// The one that writes least among those that are nearly the best; null where there is none.
const live_row* best_of_kind(const live_report& of, live_row::kind kind, objective wanted) {
    constexpr double nearly = 0.002;
    double most = 0;
    for (const auto& row : of.rows) {
        most = row.of == kind ? std::max(most, worth(row, wanted)) : most;
    }
    const live_row* best = nullptr;
    for (const auto& row : of.rows) {
        if (row.of == kind && worth(row, wanted) >= most - nearly &&
            (best == nullptr || row.written_bytes < best->written_bytes)) {
            best = &row;
        }
    }
    return best;
}

// The rows in one order of room, what is in force among them.
std::vector<const live_row*> by_room(const live_report& of) {
    std::vector<const live_row*> out;
    for (const auto& row : of.rows) {
        if (row.room != 0) {
            out.push_back(&row);
        }
    }
    std::sort(
        out.begin(), out.end(), [](const auto* a, const auto* b) { return a->room < b->room; });
    return out;
}

std::string minutes_text(double seconds) {
    return seconds < 120 ? std::to_string(std::lround(seconds)) + " seconds"
                         : std::to_string(std::lround(seconds / 60)) + " minutes";
}

std::string hourly(const live_report& of, std::uint64_t bytes) {
    return of.span <= 0 ? "" : bytes_text(static_cast<double>(bytes) * 3600 / of.span);
}

std::vector<column> columns_of(const live_report& of, const live_answer& found, objective wanted) {
    std::vector<column> out{{"", false},
                            {"hits %", true},
                            {"byte hits %", true},
                            {"waiting spared %", true},
                            {"admitted an hour", true},
                            {"", false}};
    for (const auto& row : of.rows) {
        const auto what = row.of == live_row::kind::policy ? "policy " + row.name
                          : row.of == live_row::kind::room
                              ? "room " + bytes_text(static_cast<double>(row.room))
                              : row.name;
        const bool best = &row == found.admission || &row == found.policy;
        const std::array cells{what,
                               percent_of(row.hit_ratio, 2),
                               percent_of(row.byte_hit_ratio, 2),
                               percent_of(row.wait_hit_ratio, 2),
                               hourly(of, row.written_bytes),
                               std::string{row.in_force ? "in force"
                                           : best ? "better for " + std::string{to_string(wanted)}
                                                  : ""}};
        for (std::size_t i = 0; i < cells.size(); ++i) {
            out[i].cells.push_back(cells[i]);
        }
    }
    return out;
}

std::vector<std::string> remarks_on(const live_report& of, const live_answer& found) {
    std::vector<std::string> out;
    if (!of.advice.empty()) {
        out.push_back("What it says itself: " + of.advice + ".");
    }
    if (found.enough != 0) {
        out.push_back(
            "From " + bytes_text(static_cast<double>(found.enough)) +
            " on more room stops paying: all that follows, as far as it is known, brings less "
            "than one more in a hundred.");
    } else if (found.in_force != nullptr) {
        out.push_back("More room still pays at four times what there is.");
    }
    if (found.admission != nullptr && found.policy != nullptr) {
        out.push_back("Admission and policy were measured one by one; together they may bring less "
                      "than both.");
    }
    return out;
}

std::string where_from(const live_report& of) {
    return "Reprise " + of.version + ", its last " + minutes_text(of.span) + ": " +
           std::to_string(of.requests) + " requests for " + percent_of(of.sample, 2) +
           " % of its objects, in " + bytes_text(static_cast<double>(of.memory)) + " of memory" +
           (of.disk == 0 ? std::string{}
                         : " and " + bytes_text(static_cast<double>(of.disk)) + " of disk") +
           '.';
}

constexpr std::string_view too_few =
    "It has seen too little yet: nothing that may be stored was asked "
    "for, in the sample of its objects.";

}  // namespace

live_report read_live(std::string_view stats) {
    const auto root = json::parse(stats, nullptr, false);
    if (root.is_discarded() || !root.is_object()) {
        throw std::runtime_error{"what was answered is no JSON object: this is not Reprise's admin "
                                 "listener, or not its /stats"};
    }
    live_report out;
    out.version = text(root, "version");
    out.advice = text(root, "what_if.advice");
    out.span = number(root, "what_if.span_seconds");
    out.requests = static_cast<std::uint64_t>(number(root, "what_if.requests"));
    out.sample = number(root, "what_if.sample");
    out.memory = static_cast<std::uint64_t>(number(root, "store.capacity_bytes"));
    out.disk = static_cast<std::uint64_t>(number(root, "disk.capacity_bytes"));
    const auto& ghosts = member(root, "what_if");
    if (!ghosts.contains("hit_ratio")) {
        return out;  // there are no rows before the first request
    }
    const auto& hits = member(root, "what_if.hit_ratio");
    const auto& byte_hits = member(root, "what_if.byte_hit_ratio");
    const auto& written = member(root, "what_if.written_bytes");
    const auto& in_force = ghosts.contains("in_force") ? ghosts.at("in_force") : json{};
    if (!hits.is_object() || !byte_hits.is_object() || !written.is_object()) {
        refuse("what_if.hit_ratio", "is no object");
    }
    constexpr std::size_t most_rows = 64;
    if (hits.size() > most_rows) {
        refuse("what_if.hit_ratio", "has more rows than there are ghosts");
    }
    const auto waits = ghosts.find("wait_hit_ratio");
    for (const auto& [label, unused] : hits.items()) {
        live_row row;
        constexpr std::string_view size = "size ", policy = "policy ";
        const auto named = [&](std::string_view prefix) { return label.starts_with(prefix); };
        if (named("exponent ")) {
            continue;  // no setting: "auto" alone decides it
        }
        row.of = named(size)     ? live_row::kind::room
                 : named(policy) ? live_row::kind::policy
                                 : live_row::kind::admission;
        row.name = proxy::printable(named(size)     ? label.substr(size.size())
                                    : named(policy) ? label.substr(policy.size())
                                                    : label);
        row.in_force = row.of == live_row::kind::admission && in_force.is_string() &&
                       in_force.get<std::string>() == label;
        row.hit_ratio = ratio(hits, label, "what_if.hit_ratio");
        row.byte_hit_ratio = ratio(byte_hits, label, "what_if.byte_hit_ratio");
        if (waits != ghosts.end() && waits->contains(label) && waits->at(label).is_number()) {
            row.wait_hit_ratio = ratio(*waits, label, "what_if.wait_hit_ratio");
        }
        if (!written.contains(label) || !written.at(label).is_number_unsigned()) {
            refuse("what_if.written_bytes", "has no number for \"" + label + '"');
        }
        row.written_bytes = written.at(label).get<std::uint64_t>();
        const auto all = static_cast<double>(out.memory + out.disk);
        if (row.of == live_row::kind::room) {
            for (const auto& one : known_rooms) {
                row.room = one.name == row.name ? static_cast<std::uint64_t>(all * one.times)
                                                : row.room;
            }
        } else if (row.in_force) {
            row.room = static_cast<std::uint64_t>(all);
        }
        out.rows.push_back(std::move(row));
    }
    return out;
}

live_answer answer_of(const live_report& of, objective wanted) {
    live_answer out;
    for (const auto& row : of.rows) {
        out.in_force = row.in_force ? &row : out.in_force;
    }
    if (out.in_force == nullptr) {
        return out;
    }
    const auto better = [&](const live_row* one) {
        const bool pays = one != nullptr &&
                          worth(*one, wanted) - worth(*out.in_force, wanted) >= a_point;
        return pays ? one : nullptr;
    };
    out.admission = better(best_of_kind(of, live_row::kind::admission, wanted));
    out.policy = better(best_of_kind(of, live_row::kind::policy, wanted));
    const auto rooms = by_room(of);
    for (auto one = rooms.rbegin(); one != rooms.rend(); ++one) {
        const auto gain = worth(*rooms.back(), wanted) - worth(**one, wanted);
        if (*one != rooms.back() && gain < a_point) {
            out.enough = (*one)->room;
        }
    }
    json settings;
    if (out.policy != nullptr && config::eviction_kind_of(out.policy->name)) {
        settings["memory"]["policy"] = out.policy->name;
    }
    if (out.admission != nullptr) {
        if (auto admission = admission_settings(out.admission->name); !admission.is_null()) {
            settings["admission"] = std::move(admission);
        }
    }
    if (!settings.is_null()) {
        settings["caching"]["objective"] = to_string(wanted);
        out.settings = settings.dump(2);
    }
    return out;
}

void print_live(std::ostream& out, const live_report& of, objective wanted) {
    const auto found = answer_of(of, wanted);
    out << where_from(of) << "\n\n";
    if (found.in_force == nullptr) {
        out << too_few << '\n';
        return;
    }
    out << "What its clients would have got:\n\n";
    print_columns(out, columns_of(of, found, wanted));
    out << '\n';
    for (const auto& one : remarks_on(of, found)) {
        out << one << '\n';
    }
    if (found.settings.empty()) {
        out << "\nNothing that was tried does better by one in a hundred: its settings may stay.\n";
    } else {
        out << "\nSettings for the best that was found (reprise --check-config takes them as they "
               "are):\n"
            << found.settings << '\n';
    }
}

void print_live_page(std::ostream& out, const live_report& of, objective wanted) {
    const auto found = answer_of(of, wanted);
    begin_page(out, "What other settings would do for these clients");
    out << "<p>" << html_text(where_from(of)) << "</p>\n";
    if (found.in_force == nullptr) {
        out << "<p>" << too_few << "</p>\n";
        end_page(out);
        return;
    }
    out << "<h2>What its clients would have got</h2>\n";
    print_html_columns(out, columns_of(of, found, wanted));
    line_chart chart{.title = "answered from cache",
                     .x_name = "room of all tiers",
                     .y_name = "",
                     .lines = {{"requests", {}}, {"bytes", {}}},
                     .x_marks = {}};
    for (const auto* one : by_room(of)) {
        const auto x = static_cast<double>(one->room);
        chart.lines[0].points.emplace_back(x, 100 * one->hit_ratio);
        chart.lines[1].points.emplace_back(x, 100 * one->byte_hit_ratio);
        chart.x_marks.emplace_back(x, bytes_text(x));
    }
    out << "<h2>How it grows with room</h2>\n";
    print_svg(out, chart);
    for (const auto& one : remarks_on(of, found)) {
        out << "<p>" << html_text(one) << "</p>\n";
    }
    if (!found.settings.empty()) {
        out << "<h2>Settings for the best that was found</h2>\n<pre>" << html_text(found.settings)
            << "</pre>\n";
    }
    end_page(out);
}

void print_live_json(std::ostream& out, const live_report& of, objective wanted) {
    const auto found = answer_of(of, wanted);
    json root;
    root["version"] = of.version;
    root["span_seconds"] = of.span;
    root["requests"] = of.requests;
    root["sample"] = of.sample;
    root["memory_bytes"] = of.memory;
    root["disk_bytes"] = of.disk;
    root["advice"] = of.advice;
    root["rows"] = json::array();
    for (const auto& row : of.rows) {
        constexpr std::array kinds{"admission", "policy", "room"};
        root["rows"].push_back({{"kind", kinds[static_cast<std::size_t>(row.of)]},
                                {"name", row.name},
                                {"in_force", row.in_force},
                                {"hit_ratio", row.hit_ratio},
                                {"byte_hit_ratio", row.byte_hit_ratio},
                                {"wait_hit_ratio", row.wait_hit_ratio},
                                {"written_bytes", row.written_bytes}});
    }
    root["enough_bytes"] = found.enough;
    root["settings"] = found.settings.empty() ? json::object() : json::parse(found.settings);
    out << root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

std::string stats_of(const std::string& where, const std::string& token) {
    proxy::admin::admin_door door{.socket = {}, .address = {}, .token = token};
    if (where.starts_with('/')) {
        door.socket = where;
    } else {
        std::string_view rest{where};
        constexpr std::string_view scheme = "http://", local = "localhost:";
        if (rest.starts_with(scheme)) {
            rest.remove_prefix(scheme.size());
        }
        rest = rest.substr(0, rest.find('/'));
        const auto address = rest.starts_with(local)
                                 ? "127.0.0.1:" + std::string{rest.substr(local.size())}
                                 : std::string{rest};
        const auto parsed = config::parse_endpoint(address, 3180);
        const auto* const found = std::get_if<config::endpoint>(&parsed);
        if (found == nullptr) {
            throw std::runtime_error{
                "--live: " + where +
                ": is no admin address as http://127.0.0.1:3180, and no path of a "
                "socket"};
        }
        door.address = *found;
    }
    const auto told = proxy::admin::ask(door, boost::beast::http::verb::get, "/stats");
    if (const auto* none = std::get_if<proxy::admin::not_reached>(&told)) {
        throw std::runtime_error{"--live: " + none->why};
    }
    const auto& answer = std::get<proxy::admin::admin_told>(told);
    if (answer.status != 200) {
        throw std::runtime_error{
            "--live: " + door.to_text() + " answers " + std::to_string(answer.status) +
            " to GET /stats: " + answer.body.substr(0, answer.body.find('\n'))};
    }
    return answer.body;
}

}  // namespace reprise::replay
