#include "tools/replay/report.hpp"

#include "tools/replay/svg_chart.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <ostream>

namespace reprise::replay {

namespace {

double percent(std::uint64_t part, std::uint64_t of) noexcept {
    return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

std::string fixed(double value, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

}  // namespace

line_chart over_sizes(const std::vector<result>& results,
                      const std::string& title,
                      const std::string& y_name,
                      const std::function<double(const tally&)>& value) {
    line_chart chart{
        .title = title, .x_name = "size", .y_name = y_name, .lines = {}, .x_marks = {}};
    std::vector<std::string> order;
    std::map<std::string, chart_line> lines;
    std::map<double, std::string> marks;
    for (const auto& one : results) {
        const auto name = to_string(one.what.policy) + ", " + describe_rest(one.what);
        if (!lines.contains(name)) {
            order.push_back(name);
            lines[name].name = name;
        }
        const auto x = static_cast<double>(std::max<std::uint64_t>(1, one.capacity));
        lines[name].points.emplace_back(x, value(one.counted));
        marks[x] = to_string(one.what.size);
    }
    for (const auto& name : order) {
        auto& line = lines[name];
        std::sort(line.points.begin(), line.points.end());
        chart.lines.push_back(std::move(line));
    }
    chart.x_marks.assign(marks.begin(), marks.end());
    return chart;
}

void print_rows(std::ostream& out, const std::vector<result>& results) {
    out << "<table><tr><th>size<th>policy<th>admission<th>hits<th>byte hits<th>objects written"
           "<th>bytes written<th>writes avoided<th>hits lost<th>origin bytes</tr>\n";
    for (const auto& one : results) {
        const auto& counted = one.counted;
        out << "<tr><td>" << to_string(one.what.size) << "<td>" << to_string(one.what.policy)
            << "<td>" << html_text(describe_rest(one.what)) << "<td>"
            << fixed(100 * counted.hit_ratio(), 2) << " %<td>"
            << fixed(100 * counted.byte_hit_ratio(), 2) << " %<td>" << counted.written << "<td>"
            << bytes_text(static_cast<double>(counted.written_bytes)) << "<td>";
        if (one.without_admission) {
            out << one.writes_avoided() << "<td>" << one.hits_lost();
        } else {
            out << "<td>";
        }
        out << "<td>" << bytes_text(static_cast<double>(counted.origin_bytes())) << "</tr>\n";
    }
    out << "</table>\n";
}

void begin_page(std::ostream& out, const std::string& title) {
    out << "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
           "<title>reprise-replay</title>\n<style>"
           "body{font:15px/1.5 sans-serif;max-width:1000px;margin:2em auto;padding:0 1em}"
           "table{border-collapse:collapse;font-size:13px}td,th{padding:2px 9px;text-align:right;"
           "border-bottom:1px solid #ddd}td:nth-child(2),td:nth-child(3),th:nth-child(2),"
           "th:nth-child(3){text-align:left}"
           "table.words td.word,table.words th:first-child{text-align:left}"
           "table.words "
           "td.number{text-align:right}pre{background:#f4f4f4;padding:1em;overflow:auto}"
           "svg{max-width:100%;height:auto;display:block;margin:1.5em 0}</style></head><body>\n"
           "<h1>"
        << html_text(title) << "</h1>\n";
}

void begin_page(std::ostream& out, const trace_summary& of, const std::string& title) {
    begin_page(out, title);
    out << "<p>";
    for (const auto& path : of.paths) {
        out << "<code>" << html_text(path) << "</code> ";
    }
    const auto& figures = of.figures;
    const auto& totals = of.totals;
    if (const auto formats = formats_text(of.formats); !formats.empty()) {
        out << "(format: " << formats << ')';
    }
    out << "</p>\n<p>" << figures.requests << " requests of "
        << bytes_text(static_cast<double>(figures.bytes)) << " for " << totals.objects
        << " objects of " << bytes_text(static_cast<double>(totals.bytes))
        << ". A cache without bounds would have answered "
        << fixed(percent(of.possible_hits(), figures.requests), 2) << " % of the requests. Of "
        << figures.lines << " lines, "
        << figures.other_method + figures.other_status + figures.malformed
        << " did not count.</p>\n";
    if (const auto note = hidden_queries(figures); !note.empty()) {
        out << "<p>Note: " << note << ".</p>\n";
    }
}

void print_asked_once(std::ostream& out, const trace_summary& of) {
    const auto& figures = of.figures;
    const auto& totals = of.totals;
    out << "<h2>Asked for once</h2>\n";
    print_svg(out,
              bar_chart{"what is asked for once and never again",
                        {{"of objects", percent(totals.asked_once, totals.objects)},
                         {"of requests", percent(totals.asked_once, figures.requests)},
                         {"of unique bytes", percent(totals.asked_once_bytes, totals.bytes)},
                         {"of requested bytes", percent(totals.asked_once_bytes, figures.bytes)}}});
}

void end_page(std::ostream& out) {
    out << "</body></html>\n";
}

void print_report(std::ostream& out,
                  const trace_summary& of,
                  const std::vector<result>& results,
                  const std::vector<recommendation>& recommended,
                  objective wanted) {
    begin_page(out, of, "What caches would have done with this log");
    print_asked_once(out, of);

    out << "<h2>Hits and writes over size</h2>\n";
    print_svg(out,
              over_sizes(results, "requests answered from cache", "hit ratio", [](const tally& t) {
                  return 100 * t.hit_ratio();
              }));
    print_svg(
        out, over_sizes(results, "bytes answered from cache", "byte hit ratio", [](const tally& t) {
            return 100 * t.byte_hit_ratio();
        }));
    auto written = over_sizes(results, "bytes written", "bytes", [](const tally& t) {
        return static_cast<double>(t.written_bytes);
    });
    written.y_is_bytes = true;
    print_svg(out, written);
    auto origin = over_sizes(results, "bytes asked of origins", "bytes", [](const tally& t) {
        return static_cast<double>(t.origin_bytes());
    });
    origin.y_is_bytes = true;
    print_svg(out, origin);

    out << "<h2>Every configuration</h2>\n";
    print_rows(out, results);
    out << "<h2>Recommended</h2>\n<p>Of what was tried and can be set, the fewest "
        << (wanted == objective::seconds ? "seconds that clients wait"
            : wanted == objective::bytes ? "bytes that go to origins"
                                         : "requests that go to origins")
        << "; among those within half a percent of that, the one that writes "
           "least.</p>\n";
    for (const auto& one : recommended) {
        out << "<h3>" << to_string(one.chosen.what.size) << "</h3>\n<pre>"
            << html_text(one.settings) << "</pre>\n";
    }
    end_page(out);
}

}  // namespace reprise::replay
