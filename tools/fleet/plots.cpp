#include "tools/fleet/results.hpp"
#include "tools/replay/svg_chart.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>

namespace reprise::fleet {

namespace {

using replay::chart_line;
using replay::line_chart;

std::string label(double value, const char* unit) {
    char text[32];
    std::snprintf(text, sizeof text, "%g%s", value, unit);
    return text;
}

std::string fleet_name(const fleet_run& what) {
    return std::to_string(what.of_nodes) + " nodes, " + what.cache + ", " + what.size;
}

bool is_pulled(const fleet_run& what) noexcept {
    return !what.big && what.plan.how == finding::digests &&
           what.plan.exchange.how == delivery::pull && !what.plan.exchange.seen;
}

double period_of(const fleet_run& what) noexcept {
    return static_cast<double>(what.plan.exchange.period.count()) / 1000;
}

double change_of(const fleet_run& what) noexcept {
    return 100 * what.plan.exchange.source.publish_after_change;
}

struct axis {
    std::function<double(const fleet_run&)> at;
    const char* unit;
    std::string name;
};

// Lines over one axis, the other parameters being those that come first.
class gathered {
public:
    explicit gathered(axis x) : x_{std::move(x)} {}

    void add(const std::string& line, const fleet_run& what, double y) {
        if (!lines_.contains(line)) {
            order_.push_back(line);
        }
        lines_[line][x_.at(what)] = y;
        marks_[x_.at(what)] = label(x_.at(what), x_.unit);
    }

    /// The same at every x: what has none.
    void add_level(const std::string& line, double y) {
        for (const auto& [x, text] : marks_) {
            if (!lines_.contains(line)) {
                order_.push_back(line);
            }
            lines_[line][x] = y;
        }
    }

    [[nodiscard]] bool is_worth_it() const noexcept { return marks_.size() > 1; }

    void write(const std::string& path, const std::string& title, const std::string& y) const {
        line_chart chart{
            .title = title, .x_name = x_.name, .y_name = y, .lines = {}, .x_marks = {}};
        for (const auto& name : order_) {
            const auto& points = lines_.at(name);
            chart.lines.push_back({.name = name, .points = {points.begin(), points.end()}});
        }
        chart.x_marks.assign(marks_.begin(), marks_.end());
        std::ofstream out{path};
        replay::print_svg(out, chart);
        out.close();
        if (!out) {
            throw std::runtime_error{path + ": can't be written"};
        }
    }

private:
    axis x_;
    std::vector<std::string> order_;
    std::map<std::string, std::map<double, double>> lines_;
    std::map<double, std::string> marks_;
};

double share(std::uint64_t part, std::uint64_t of) noexcept {
    return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

}  // namespace

std::vector<std::string> write_plots(const std::string& prefix,
                                     const std::string& trace,
                                     const std::vector<run_result>& results) {
    const axis period{period_of, " s", "period of pulls"};
    const axis change{change_of, " %", "publishes when so many bits have changed"};
    gathered hits{period}, messages{period}, threshold{change};
    const auto pulled = std::find_if(
        results.begin(), results.end(), [](const auto& one) { return is_pulled(one.what); });
    if (pulled == results.end()) {
        return {};
    }
    const auto first_change = change_of(pulled->what);
    const auto first_period = period_of(pulled->what);
    for (const auto& one : results) {
        if (!is_pulled(one.what)) {
            continue;
        }
        const auto name = fleet_name(one.what);
        const auto& counted = one.counted;
        if (change_of(one.what) == first_change) {
            hits.add(name + ": digests", one.what, hit_percent(counted));
            if (const auto verdict = judge(one, results); verdict && verdict->times_fewer > 0) {
                messages.add(name + ": messages", one.what, 100 / verdict->times_fewer);
                messages.add(name + ": bytes", one.what, 100 * verdict->share_of_bytes);
            }
        }
        if (period_of(one.what) == first_period) {
            threshold.add(name + ": false", one.what, share(counted.false_hits, counted.requests));
            threshold.add(name + ": missed", one.what, share(counted.missed, counted.requests));
        }
    }
    for (const auto& one : results) {
        if (one.what.big || one.what.plan.how == finding::oracle ||
            one.what.plan.how == finding::alone) {
            const auto how = one.what.big ? std::string{"one big cache"}
                                          : std::string{to_string(one.what.plan.how)};
            hits.add_level(fleet_name(one.what) + ": " + how, hit_percent(one.counted));
        }
    }
    std::vector<std::string> written;
    const auto write = [&](const gathered& what,
                           const std::string& suffix,
                           const std::string& title,
                           const std::string& y) {
        if (what.is_worth_it()) {
            written.push_back(prefix + suffix);
            what.write(written.back(), trace + ": " + title, y);
        }
    };
    write(hits, "-hits.svg", "hits of the whole fleet", "of requests");
    write(messages, "-messages.svg", "what digests cost", "of what ICP costs");
    write(threshold, "-threshold.svg", "false and missed hits", "of requests");
    return written;
}

}  // namespace reprise::fleet
