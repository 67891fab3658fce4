#include "proxy/admin/metrics_table.hpp"
#include "proxy/admin/stats.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace reprise::proxy;
using namespace reprise::proxy::admin;

namespace {

stats_inputs some_inputs() {
    stats_inputs inputs;
    inputs.version = "1.2.3";
    inputs.uptime = std::chrono::milliseconds{1500};
    inputs.threads = 2;
    inputs.counts.requests[static_cast<std::size_t>(outcome::hit)] = 30;
    inputs.counts.requests[static_cast<std::size_t>(outcome::miss)] = 10;
    inputs.counts.bytes_to_clients = 12345;
    inputs.counts.admission_by_policy[0] = {.admitted = 4, .refused = 6, .bytes_refused = 600};
    inputs.counts.admission_by_policy[2] = {.admitted = 0, .refused = 1, .bytes_refused = 50};
    inputs.counts.admission_by_rule[0] = {.admitted = 0, .refused = 1, .bytes_refused = 50};
    inputs.rules = {"http://a.example/\"quoted\\*"};
    inputs.since_start = {.requests = 40, .hits = 30};
    inputs.memory.objects = 9;
    inputs.admission.remembers_for = std::chrono::seconds{64};
    inputs.admission.young_used = 0.75;
    inputs.admission.young.fill = 0.34;  // of its bits: no measure of its room
    auto& histogram = inputs.counts.complete[0];
    histogram.sum_microseconds = 3000;
    histogram.buckets[latency_buckets::index_of(1000)] = 2;
    histogram.buckets[latency_buckets::index_of(1'000'000'000)] = 1;
    return inputs;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in{text};
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

bool has_line(const std::string& text, const std::string& wanted) {
    for (const auto& line : lines_of(text)) {
        if (line == wanted) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_SUITE("admin/stats") {
    // Prometheus's naming rules (prometheus.io/docs/practices/naming), as `promtool check metrics`
    // has them.
    TEST_CASE("every metric is named as Prometheus wants it") {
        const std::regex well_formed{"(reprise|process)(_[a-z0-9]+)+"};
        // Units in the names' words: the base unit, or its name inside a counted thing's, is right.
        const std::set<std::string> other_units{
            "bits",      "kilobytes",    "megabytes",    "gigabytes",   "kibibytes", "mebibytes",
            "gibibytes", "milliseconds", "microseconds", "nanoseconds", "minutes",   "hours",
            "days",      "weeks",        "percent",      "ms",          "us",        "ns",
            "kb",        "mb",           "gb",           "kib",         "mib",       "gib",
            "sec",       "secs",         "min",          "msec",        "usec",      "celsius",
            "kelvin",    "kilograms"};
        const std::set<std::string> types{
            "counter", "gauge", "histogram", "summary", "untyped", "metric"};
        std::set<std::string_view> seen;
        for (const auto& one : metrics_table()) {
            const std::string name{one.name};
            CAPTURE(name);
            CHECK(seen.insert(one.name).second);
            CHECK(std::regex_match(name, well_formed));
            CHECK_FALSE(one.help.empty());
            const auto ends_in = [&](std::string_view end) { return one.name.ends_with(end); };
            CHECK(ends_in("_total") == (one.kind == metric_kind::counter));
            CHECK((!ends_in("_info") || one.kind == metric_kind::info));
            for (const std::string_view reserved : {"_count", "_sum", "_bucket"}) {
                CHECK_FALSE(ends_in(reserved));
            }
            CHECK((one.kind != metric_kind::histogram || ends_in("_seconds") || ends_in("_bytes")));
            std::istringstream words{name};
            std::vector<std::string> parts;
            for (std::string word; std::getline(words, word, '_');) {
                CHECK(other_units.count(word) == 0);
                CHECK(types.count(word) == 0);
                parts.push_back(word);
            }
            // The unit comes last, but for _total and for what a rate is of.
            const auto unit = std::find_if(parts.begin(), parts.end(), [](const std::string& word) {
                return word == "seconds" || word == "ratio";
            });
            if (unit != parts.end()) {
                const auto after = std::distance(unit, parts.end()) - 1;
                CHECK(after == (one.kind == metric_kind::counter ? 1 : 0));
            }
            for (const auto label : {one.label_one, one.label_two}) {
                CHECK(label != "le");
                CHECK(label != "quantile");
                CHECK(std::regex_match(std::string{label}, std::regex{"[a-z_]*"}));
            }
        }
        CHECK(seen.size() > 120);
    }

    TEST_CASE("stats have each figure in its place") {
        const auto stats = stats_json(some_inputs());
        CHECK(stats["version"] == "1.2.3");
        CHECK(stats["uptime_seconds"] == 1.5);
        CHECK(stats["ready"] == true);
        CHECK(stats["requests"]["hit"] == 30);
        CHECK(stats["requests"]["client_gone"] == 0);
        CHECK(stats["hit_ratio"]["since_start"] == 0.75);
        CHECK(stats["hit_ratio"]["1m"].is_null());
        CHECK(stats["clients"]["sent_bytes"] == 12345);
        CHECK(stats["store"]["objects"] == 9);
        CHECK(stats["not_stored"]["no-store"] == 0);
        CHECK(stats["admission"]["first_sights_refused"] == 7);
        CHECK(stats["admission"]["ledger"]["bytes"] == 650);
        CHECK(stats["admission"]["by_policy"]["second-hit"]["admitted"] == 4);
        CHECK(stats["admission"]["by_rule"]["0 http://a.example/\"quoted\\*"]["refused"] == 1);
        CHECK(stats["admission"]["filter"]["remembers_for_seconds"] == 64);
        CHECK(stats["admission"]["filter"]["fill"] == 0.75);
        CHECK(stats["latency"]["complete"]["hit"]["count"] == 3);
        CHECK(stats["latency"]["complete"]["hit"]["p50_seconds"].get<double>() ==
              doctest::Approx(0.001).epsilon(0.125));
        CHECK(stats["latency"]["complete"]["pass"]["p50_seconds"].is_null());
    }

    TEST_CASE("without rules their figures are empty objects") {
        const auto stats = stats_json({});
        CHECK(stats["admission"]["by_rule"] == nlohmann::ordered_json::object());
    }

    TEST_CASE("rules beyond those counted share one label") {
        auto inputs = some_inputs();
        inputs.rules.assign(counted_rules + 10, "http://x/*");
        const auto by_rule = stats_json(inputs)["admission"]["by_rule"];
        CHECK(by_rule.size() == counted_rules);
        CHECK(by_rule.contains(std::to_string(counted_rules - 1) + " and later"));
    }

    TEST_CASE(
        "metrics are well-formed: every sample under its own HELP and TYPE, no series twice") {
        // The grammar of the text format 0.0.4, for what is used of it.
        const std::regex sample{
            R"re(^([a-z_]+)(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? (?:[-+0-9.e]+|NaN|\+Inf)$)re"};
        std::set<std::string> series, families;
        std::string family, type;
        for (const auto& line : lines_of(metrics_text(some_inputs()))) {
            CAPTURE(line);
            if (line.starts_with("# HELP ")) {
                family = line.substr(7, line.find(' ', 7) - 7);
                REQUIRE(families.insert(family).second);
                continue;
            }
            if (line.starts_with("# TYPE ")) {
                REQUIRE(line.substr(7, family.size() + 1) == family + " ");
                type = line.substr(8 + family.size());
                continue;
            }
            std::smatch parts;
            REQUIRE(std::regex_match(line, parts, sample));
            auto name = parts[1].str();
            if (type == "histogram") {
                name = std::regex_replace(name, std::regex{"_(bucket|sum|count)$"}, "");
            }
            CHECK(name == family);
            CHECK((type == "counter") == name.ends_with("_total"));
            CHECK(series.insert(line.substr(0, line.rfind(' '))).second);
        }
        CHECK(families.size() == metrics_table().size());
        CHECK(series.size() < 1000);  // what one proxy may cost a Prometheus server
    }

    TEST_CASE("metrics have values where an operator looks for them") {
        const auto text = metrics_text(some_inputs());
        CHECK(has_line(text, "reprise_build_info{version=\"1.2.3\"} 1"));
        CHECK(has_line(text, "reprise_requests_total{outcome=\"hit\"} 30"));
        CHECK(has_line(text, "reprise_hit_ratio{window=\"1m\"} NaN"));
        CHECK(has_line(
            text,
            "reprise_admission_decisions_total{policy=\"second-hit\",verdict=\"refused\"} 6"));
        CHECK(has_line(text,
                       "reprise_admission_rule_ledger_bytes_total{rule=\"0 "
                       "http://a.example/\\\"quoted\\\\*\"} 50"));
    }

    TEST_CASE("of hosts that clients tunnel to those with a hundredth of the bytes have samples") {
        auto inputs = some_inputs();
        inputs.tunnels.most_bytes = {{.host = "large.test", .bytes = 1'000'000, .tunnels = 3},
                                     {.host = "medium.test", .bytes = 20'000, .tunnels = 2},
                                     {.host = "small.test", .bytes = 900, .tunnels = 1}};
        const auto text = metrics_text(inputs);
        CHECK(has_line(text, "reprise_tunnel_host_bytes_total{host=\"large.test\"} 1000000"));
        CHECK(has_line(text, "reprise_tunnel_host_tunnels_total{host=\"medium.test\"} 2"));
        CHECK(text.find("small.test") == std::string::npos);
    }

    TEST_CASE("the fleet's sums are of the nodes that are alive, and its page has all nodes") {
        auto inputs = some_inputs();
        CHECK(fleet_json(inputs) == nlohmann::json{{"fleet", nullptr}});
        CHECK(stats_json(inputs).at("fleet").is_null());
        CHECK(metrics_text(inputs).find("\nreprise_fleet_requests ") == std::string::npos);

        peer::node_figures of{.up_ms = 2500,
                              .requests = 10,
                              .hits = 4,
                              .siblings = 2,
                              .joined = 1,
                              .bytes = 1000,
                              .bytes_from_store = 100,
                              .bytes_from_siblings = 50,
                              .bytes_joined = 25,
                              .objects = 7,
                              .listed = 6,
                              .sights_told = 3};
        auto& fleet = inputs.peers.emplace().fleet;
        fleet = peer::sum_up({{"ann", true, true, std::chrono::milliseconds{500}, of},
                              {"ben", false, true, std::chrono::milliseconds{1500}, of},
                              {"cai", false, false, std::chrono::seconds{31}, of}});
        const auto page = fleet_json(inputs).at("fleet");
        CHECK(page.at("nodes_alive") == 2);
        CHECK(page.at("nodes_known") == 3);
        CHECK(page.at("requests") == 20);
        CHECK(page.at("hit_ratio") == 0.6);
        CHECK(page.at("byte_hit_ratio") == 0.15);
        CHECK(page.at("fetches_spared") == 6);
        CHECK(page.at("sights_told") == 6);
        CHECK(page.at("objects") == 14);
        REQUIRE(page.at("nodes").size() == 3);
        const auto& cai = page.at("nodes").at(2);
        CHECK(cai.at("name") == "cai");
        CHECK(cai.at("alive") == false);
        CHECK(cai.at("age_seconds") == 31);
        CHECK(cai.at("up_seconds") == 2.5);
        CHECK(cai.at("joined_bytes") == 25);
        CHECK(stats_json(inputs).at("fleet").at("requests") == 20);
        CHECK_FALSE(stats_json(inputs).at("fleet").contains("nodes"));
        CHECK(has_line(metrics_text(inputs), "reprise_fleet_nodes_alive 2"));

        // Whatever a liar says, sums are numbers and ratios none above one.
        of.requests = 1;
        of.hits = of.siblings = ~std::uint64_t{0};
        fleet = peer::sum_up({{"ann", true, true, {}, of}, {"ben", false, true, {}, of}});
        const auto lied = fleet_json(inputs).at("fleet");
        CHECK(lied.at("hits") == ~std::uint64_t{0});
        CHECK(lied.at("fetches_spared") == ~std::uint64_t{0});
        CHECK(lied.at("hit_ratio") == 1);
        fleet = peer::sum_up({});
        CHECK(fleet_json(inputs).at("fleet").at("hit_ratio").is_null());
    }

    TEST_CASE("histograms are cumulative and end with all") {
        const auto text = metrics_text(some_inputs());
        std::uint64_t last = 0;
        std::size_t buckets = 0;
        const std::string begin = "reprise_request_seconds_bucket{class=\"hit\",le=\"";
        for (const auto& line : lines_of(text)) {
            if (line.starts_with(begin)) {
                const auto count = std::stoull(line.substr(line.rfind(' ')));
                CHECK(count >= last);
                last = count;
                ++buckets;
            }
        }
        CHECK(buckets == 25);
        CHECK(last == 3);
        CHECK(has_line(text, begin + "0.001024\"} 2"));
        CHECK(has_line(text, begin + "0.000512\"} 0"));
        CHECK(has_line(text, begin + "+Inf\"} 3"));
        CHECK(has_line(text, "reprise_request_seconds_sum{class=\"hit\"} 0.003"));
        CHECK(has_line(text, "reprise_request_seconds_count{class=\"hit\"} 3"));
    }

    TEST_CASE("every row has a place of its own and a sentence") {
        std::set<std::string_view> places;
        for (const auto& row : metrics_table()) {
            CAPTURE(row.name);
            CHECK(places.insert(row.json).second);
            CHECK(row.help.ends_with("."));
            CHECK(row.help.find_first_of("\\\n") ==
                  std::string_view::npos);  // HELP would need escapes
        }
    }

    TEST_CASE("README.md lists all figures as they are (REPRISE_UPDATE_DOCS=1 rewrites its list)") {
        const std::string path = REPRISE_SOURCE_DIR "/proxy/admin/README.md";
        std::stringstream whole;
        whole << std::ifstream{path}.rdbuf();
        auto text = whole.str();
        const std::string begin = "<!-- the table's list begins -->\n";
        const std::string end = "<!-- the table's list ends -->";
        const auto from = text.find(begin);
        const auto to = text.find(end);
        REQUIRE(from != std::string::npos);
        REQUIRE(to != std::string::npos);
        const auto at = from + begin.size();
        if (std::getenv("REPRISE_UPDATE_DOCS") != nullptr) {
            text.replace(at, to - at, metrics_reference());
            std::ofstream{path} << text;
        } else {
            CHECK(text.substr(at, to - at) == metrics_reference());
        }
    }

    TEST_CASE("the process knows its own size") {
        const auto figures = read_process_figures();
        CHECK(figures.resident_bytes > 100'000);
        CHECK(figures.program_bytes > 100'000);
        CHECK(figures.program_bytes < figures.resident_bytes);
        CHECK(figures.open_files >= 3);
        CHECK(figures.cpu_seconds >= 0);
    }

}  // TEST_SUITE
