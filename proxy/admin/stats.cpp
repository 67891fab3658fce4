#include "proxy/admin/stats.hpp"

#include "proxy/admin/metrics_table.hpp"
#include "proxy/admin/summary.hpp"
#include "proxy/admin/tunnel_advice.hpp"
#include "proxy/base/text.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>

// Two sinks draw the table's rows: one as JSON, one as Prometheus' text. What is no number (the
// advice, a trouble, peers' generations) is put into the JSON by hand.

namespace reprise::proxy::admin {

std::string_view to_string(readiness value) noexcept {
    switch (value) {
    case readiness::ready: return "ready";
    case readiness::starting: return "starting";
    case readiness::draining: return "draining";
    }
    return "unknown";
}

namespace {

using tree = nlohmann::ordered_json;

constexpr double seconds_in_microsecond = 1e-6;

// The place that dotted names lead to, made as needed.
tree& place(tree& root, std::string_view path) {
    auto* at = &root;
    while (true) {
        const auto dot = path.find('.');
        at = &(*at)[std::string{path.substr(0, dot)}];
        if (dot == std::string_view::npos) {
            return *at;
        }
        path.remove_prefix(dot + 1);
    }
}

class json_sink final : public sample_sink {
public:
    explicit json_sink(tree& at) : at_{at} {}

    void number(std::uint64_t value, std::string_view one, std::string_view two) override {
        labelled(one, two) = value;
    }
    void real(std::optional<double> value, std::string_view one) override {
        auto& into = labelled(one, {});
        if (value && std::isfinite(*value)) {
            into = *value;
        } else {
            into = nullptr;
        }
    }
    void truth(bool value) override { at_ = value; }
    void text(std::string_view value) override { at_ = value; }
    void histogram(const histogram_totals& value, std::string_view one) override {
        const auto count = count_of(value);
        auto& into = labelled(one, {});
        into["count"] = count;
        into["mean_seconds"] = nullptr;
        if (count != 0) {
            into["mean_seconds"] = static_cast<double>(value.sum_microseconds) *
                                   seconds_in_microsecond / static_cast<double>(count);
        }
        quantile(into["p50_seconds"], value, count, 0.5);
        quantile(into["p90_seconds"], value, count, 0.9);
        quantile(into["p99_seconds"], value, count, 0.99);
        quantile(into["p999_seconds"], value, count, 0.999);
    }

private:
    static void quantile(tree& into,
                         const histogram_totals& value,
                         std::uint64_t count,
                         double which) {
        if (count != 0) {
            into = quantile_of(value, which) * seconds_in_microsecond;
        }
    }
    tree& labelled(std::string_view one, std::string_view two) {
        auto* at = &at_;
        for (const auto name : {one, two}) {
            if (!name.empty()) {
                at = &(*at)[std::string{name}];
            }
        }
        return *at;
    }
    tree& at_;
};

void append_real(std::string& out, double value) {
    if (std::isnan(value)) {
        out.append("NaN");
        return;
    }
    if (std::isinf(value)) {
        out.append(value < 0 ? "-Inf" : "+Inf");
        return;
    }
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_number(std::string& out, std::uint64_t value) {
    char digits[20];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// Label values escape backslash, quote and line end; what is no UTF-8 may not appear at all.
void append_label_value(std::string& out, std::string_view value) {
    for (const char c : value) {
        if (c == '\\' || c == '"') {
            out.push_back('\\');
            out.push_back(c);
        } else if (c == '\n') {
            out.append("\\n");
        } else {
            out.push_back(c);
        }
    }
}

class text_sink final : public sample_sink {
public:
    text_sink(std::string& text, const metric& row) : text_{text}, row_{row} {}

    void number(std::uint64_t value, std::string_view one, std::string_view two) override {
        series("", one, two, {});
        append_number(text_, value);
        text_.push_back('\n');
    }
    void real(std::optional<double> value, std::string_view one) override {
        series("", one, {}, {});
        append_real(text_, value.value_or(std::numeric_limits<double>::quiet_NaN()));
        text_.push_back('\n');
    }
    void truth(bool value) override { number(value ? 1 : 0, {}, {}); }
    void text(std::string_view value) override { number(1, value, {}); }

    // A scraper gets those of the 240 buckets that end at a power of two of microseconds, from 16
    // microseconds to 134 seconds: enough for alerts, and 24 series instead of 240. A bound that is
    // no bucket's end would be a guess.
    void histogram(const histogram_totals& value, std::string_view one) override {
        for (unsigned power = 4; power <= 27; ++power) {
            std::string bound;
            append_real(bound, std::ldexp(1.0, static_cast<int>(power)) * seconds_in_microsecond);
            series("_bucket", one, {}, bound);
            append_number(text_, count_below(value, power));
            text_.push_back('\n');
        }
        const auto count = count_of(value);
        series("_bucket", one, {}, "+Inf");
        append_number(text_, count);
        text_.push_back('\n');
        series("_sum", one, {}, {});
        append_real(text_, static_cast<double>(value.sum_microseconds) * seconds_in_microsecond);
        text_.push_back('\n');
        series("_count", one, {}, {});
        append_number(text_, count);
        text_.push_back('\n');
    }

private:
    void series(std::string_view suffix,
                std::string_view one,
                std::string_view two,
                std::string_view bound) {
        text_.append(row_.name);
        text_.append(suffix);
        char before = '{';
        const auto label = [&](std::string_view name, std::string_view value) {
            if (name.empty() || value.empty()) {
                return;
            }
            text_.push_back(before);
            before = ',';
            text_.append(name);
            text_.append("=\"");
            append_label_value(text_, value);
            text_.push_back('"');
        };
        label(row_.label_one, one);
        label(row_.label_two, two);
        label("le", bound);
        text_.append(before == '{' ? " " : "} ");
    }

    std::string& text_;
    const metric& row_;
};

std::string_view type_of(metric_kind kind) noexcept {
    switch (kind) {
    case metric_kind::counter: return "counter";
    case metric_kind::histogram: return "histogram";
    case metric_kind::gauge:
    case metric_kind::info: break;  // an info is a gauge that is always 1
    }
    return "gauge";
}

// What peers have that is no number: generations and URLs.
void add_peers(tree& root, const peer::peer_report& peers) {
    if (peers.generation) {
        root["digest"]["generation"] = peer::to_text(*peers.generation);
    }
    root["digest"]["signed"] = peers.signs;
    root["digest"]["seen_shared"] = peers.shares_seen;
    auto& siblings = root["siblings"];
    for (const auto& one : peers.siblings) {
        const auto& name = one.digest.name;
        siblings["url"][name] = one.url;
        siblings["protocol"][name] = one.squid ? "squid" : "reprise";
        siblings["proxy_only"][name] = one.proxy_only;
        siblings["state"][name] = to_string(one.digest.digest.state);
        siblings["trouble"][name] = to_string(one.digest.digest.trouble);
        siblings["trouble_detail"][name] = one.digest.digest.detail;
        siblings["seen_state"][name] = to_string(one.digest.seen.state);
        siblings["seen_trouble"][name] = to_string(one.digest.seen.trouble);
        siblings["seen_trouble_detail"][name] = one.digest.seen.detail;
        siblings["held_generation"][name] = one.digest.held ? peer::to_text(one.digest.generation)
                                                            : std::string{};
    }
    for (const auto& name : peers.itself) {
        siblings["state"][name] = to_string(peer::follow_state::itself);
    }
    for (const auto& one : peers.parents) {
        root["parents"]["url"][one.name] = one.url;
        root["parents"]["trouble"][one.name] = one.down ? facts_of(one.trouble).name : "none";
    }
    if (peers.homes) {
        root["homes"]["siblings"] = *peers.homes;
    }
}

// The tunnel advisor: where the bytes go that nothing is stored of.
tree tunnels_with_most_bytes(const stats_inputs& inputs) {
    auto all = tree::array();
    for (const auto& one : inputs.tunnels.most_bytes) {
        const auto line = line_that_opens(one, inputs.intercept);
        all.push_back({{"host", one.host},
                       {"port", one.port},
                       {"bytes", one.bytes},
                       {"tunnels", one.tunnels},
                       {"why", one.why},
                       {"line", line.empty() ? tree() : tree(line)}});
    }
    return all;
}

void draw_into(tree& root, const metric& row, const stats_inputs& inputs) {
    auto& at = place(root, row.json);
    if (!row.label_one.empty() && row.kind != metric_kind::info) {
        at = tree::object();  // so that a figure without samples is {} rather than null
    }
    json_sink sink{at};
    row.draw(inputs, sink);
}

double seconds_of_ms(std::uint64_t ms) {
    return static_cast<double>(ms) / 1e3;
}

tree node_json(const peer::fleet_row& node) {
    const auto& of = node.figures;
    return {{"name", node.name},
            {"own", node.is_own},
            {"alive", node.alive},
            {"age_seconds", seconds_of_ms(static_cast<std::uint64_t>(node.age.count()))},
            {"up_seconds", seconds_of_ms(of.up_ms)},
            {"requests", of.requests},
            {"hits", of.hits},
            {"sibling_hits", of.siblings},
            {"joined", of.joined},
            {"body_bytes", of.bytes},
            {"from_store_bytes", of.bytes_from_store},
            {"from_siblings_bytes", of.bytes_from_siblings},
            {"joined_bytes", of.bytes_joined},
            {"objects", of.objects},
            {"listed", of.listed},
            {"sights_told", of.sights_told}};
}

}  // namespace

nlohmann::ordered_json fleet_json(const stats_inputs& inputs) {
    auto root = tree::object();
    if (!inputs.peers) {
        root["fleet"] = nullptr;
        return root;
    }
    for (const auto& row : fleet_metrics()) {
        draw_into(root, row, inputs);
    }
    auto& nodes = root["fleet"]["nodes"] = tree::array();
    for (const auto& node : inputs.peers->fleet.nodes) {
        nodes.push_back(node_json(node));
    }
    return root;
}

nlohmann::ordered_json stats_json(const stats_inputs& inputs) {
    auto root = tree::object();
    root["summary"] = summary_json(inputs);
    for (const auto& row : metrics_table()) {
        draw_into(root, row, inputs);
    }
    if (!inputs.peers) {
        root["fleet"] = nullptr;
    }
    root["disk"]["trouble"] = inputs.disk ? inputs.disk->trouble : std::string{};
    root["what_if"]["advice"] = inputs.what_if.text;
    root["what_if"]["auto"] = inputs.what_if.automatic;
    root["tunnels"]["advice"] = tunnels_with_most_bytes(inputs);
    if (inputs.peers) {
        add_peers(root, *inputs.peers);
    }
    return root;
}

std::string metrics_text(const stats_inputs& inputs) {
    std::string text;
    text.reserve(48 << 10);
    for (const auto& row : metrics_table()) {
        text.append("# HELP ").append(row.name).append(" ").append(row.help);
        text.append("\n# TYPE ").append(row.name).append(" ").append(type_of(row.kind));
        text.push_back('\n');
        text_sink sink{text, row};
        row.draw(inputs, sink);
    }
    return text;
}

std::string metrics_reference() {
    std::string text;
    for (const auto& row : metrics_table()) {
        text.append("- `").append(row.json);
        for (const auto label : {row.label_one, row.label_two}) {
            if (!label.empty() && row.kind != metric_kind::info) {
                text.append(".<").append(label).append(">");
            }
        }
        text.append("`, `").append(row.name).append("`");
        if (row.kind == metric_kind::histogram) {
            text.append(" (histogram)");
        }
        text.append(": ").append(row.help).push_back('\n');
    }
    return text;
}

}  // namespace reprise::proxy::admin
