#include "tools/replay/answer_report.hpp"

#include "tools/replay/columns.hpp"
#include "tools/replay/report.hpp"
#include "tools/replay/svg_chart.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <ostream>
#include <sstream>

namespace reprise::replay {

namespace {

std::string size_text(std::uint64_t bytes) {
    return bytes_text(static_cast<double>(bytes));
}

std::string money_text(double sum) {
    char text[48];
    std::snprintf(text, sizeof text, "%.2f", sum);
    return text;
}

double unbounded_byte_hits(const trace_summary& of) {
    return of.figures.bytes == 0
               ? 0
               : 1 - static_cast<double>(of.totals.bytes) / static_cast<double>(of.figures.bytes);
}

double unbounded_hits(const trace_summary& of) {
    return of.figures.requests == 0
               ? 0
               : static_cast<double>(of.possible_hits()) / static_cast<double>(of.figures.requests);
}

std::vector<column> gains_of(const answer& found, const trace_summary& of, std::uint64_t unit) {
    std::vector<column> out{{"", false},
                            {"hits %", true},
                            {"byte hits %", true},
                            {"asked of origins", true},
                            {"written to disk", true}};
    const auto add = [&out](const std::vector<std::string>& cells) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            out[i].cells.push_back(cells[i]);
        }
    };
    for (const auto& [name, what, has_disk] : rows_of(found)) {
        const auto& counted = what->counted;
        add({name,
             percent_of(counted.hit_ratio(), 2),
             percent_of(counted.byte_hit_ratio(), 2),
             size_text(counted.origin_bytes() * unit),
             has_disk ? size_text(counted.written_bytes * unit) : ""});
    }
    add({"a cache without bounds",
         percent_of(unbounded_hits(of), 2),
         percent_of(unbounded_byte_hits(of), 2),
         size_text(of.totals.bytes * unit),
         ""});
    return out;
}

std::vector<column> growth_of(const answer& found, const question& asked) {
    std::vector<column> out{{"room", true},
                            {"memory", true},
                            {"disk", true},
                            {"hits %", true},
                            {"byte hits %", true},
                            {"plain LRU hits %", true},
                            {"byte hits %", true}};
    if (asked.costs.any()) {
        out.push_back({"costs a month", true});
    }
    out.push_back({"", false});
    for (const auto& one : found.rooms) {
        std::vector<std::string> cells{size_text(one.bytes),
                                       size_text(one.memory),
                                       one.bytes > one.memory ? size_text(one.bytes - one.memory)
                                                              : "",
                                       percent_of(one.best.counted.hit_ratio(), 2),
                                       percent_of(one.best.counted.byte_hit_ratio(), 2),
                                       percent_of(one.lru.counted.hit_ratio(), 2),
                                       percent_of(one.lru.counted.byte_hit_ratio(), 2)};
        if (asked.costs.any()) {
            cells.push_back(money_text(one.cost));
        }
        cells.push_back(std::string{one.bytes == found.enough ? "enough" : ""} +
                        (one.bytes == found.cheapest ? " cheapest" : ""));
        for (std::size_t i = 0; i < cells.size(); ++i) {
            out[i].cells.push_back(cells[i]);
        }
    }
    return out;
}

line_chart chart_of(const answer& found,
                    const std::string& title,
                    double (tally::*ratio)() const noexcept) {
    line_chart out{.title = title,
                   .x_name = "room: memory up to " + size_text(found.memory) + ", the rest disk",
                   .y_name = "",
                   .lines = {{"best found", {}}, {"plain LRU", {}}},
                   .x_marks = {}};
    for (const auto& one : found.rooms) {
        const auto x = static_cast<double>(one.bytes);
        out.lines[0].points.emplace_back(x, 100 * (one.best.counted.*ratio)());
        out.lines[1].points.emplace_back(x, 100 * (one.lru.counted.*ratio)());
        // Rooms that were named lie between the powers of two: too near for two names.
        if (out.x_marks.empty() || x > 1.4 * out.x_marks.back().first) {
            out.x_marks.emplace_back(x, size_text(one.bytes));
        }
    }
    return out;
}

nlohmann::ordered_json row_json(const result& one, std::uint64_t unit) {
    return {{"configuration", in_words(one.what)},
            {"hit_ratio", one.counted.hit_ratio()},
            {"byte_hit_ratio", one.counted.byte_hit_ratio()},
            {"origin_bytes", one.counted.origin_bytes() * unit}};
}

}  // namespace

std::string in_words(const setup& what) {
    auto out = to_string(what.policy) + ", " + to_string(what.admission);
    if (what.probation > 0) {
        out += ", probation " + percent_of(what.probation, 0) + "%";
    }
    if (what.disk) {
        out += what.disk->write == write_when::admission ? ", written at admission"
                                                         : ", written at eviction";
        out += what.disk->selective ? ", selective" : "";
    }
    return out;
}

std::vector<answer_row> rows_of(const answer& found) {

    const auto memory = "memory " + size_text(found.memory);
    const auto both = memory + " and disk " + size_text(found.disk);
    std::vector<answer_row> out{
        {memory + ", as it comes: " + in_words(found.as_it_comes.what), &found.as_it_comes},
        {memory + ", plain LRU", &found.plain_lru},
        {memory + ", best found: " + in_words(found.best_in_memory.what), &found.best_in_memory}};
    if (found.best_with_disk) {
        out.push_back({both + ", as it comes: " + in_words(found.disk_as_it_comes->what),
                       &*found.disk_as_it_comes,
                       true});
        out.push_back({both + ", plain LRU of the same room", &*found.lru_of_both});
        out.push_back({both + ", best found: " + in_words(found.best_with_disk->what),
                       &*found.best_with_disk,
                       true});
    }
    return out;
}

std::vector<std::string> remarks_on(const answer& found, const question& asked) {
    const auto* const unit = asked.wanted == objective::bytes     ? "byte"
                             : asked.wanted == objective::seconds ? "second"
                                                                  : "request";
    std::vector<std::string> out;
    if (found.enough != 0) {
        out.push_back("From " + size_text(found.enough) +
                      " on more room stops paying: all that follows brings less than one more " +
                      unit + " in a hundred.");
    }
    if (found.cheapest != 0) {
        out.push_back("What costs least, with what is asked of origins and waited for, is " +
                      size_text(found.cheapest) + ".");
    }
    if (!found.disk_was_named && found.disk == 0) {
        out.push_back("No disk is worth it: memory holds what is enough.");
    }
    if (found.sample < 1) {
        std::ostringstream share;
        share << 100 * found.sample;
        out.push_back("Figures are of a sample of " + share.str() +
                      " % of the objects (--sample 0: of all).");
    }
    return out;
}

void print_answer(std::ostream& out,
                  const answer& found,
                  const question& asked,
                  const trace_summary& of,
                  std::uint64_t unit) {
    out << "What these clients would get:\n\n";
    print_columns(out, gains_of(found, of, unit));
    out << "\nHow it grows with room:\n\n";
    print_columns(out, growth_of(found, asked));
    out << '\n';
    for (const auto& one : remarks_on(found, asked)) {
        out << one << '\n';
    }
    out << "\nSettings for the best that was found (reprise --check-config takes them as they "
           "are):\n"
        << found.settings << '\n';
}

void print_answer_page(std::ostream& out,
                       const answer& found,
                       const question& asked,
                       const trace_summary& of,
                       std::uint64_t unit) {
    begin_page(out, of, "What a cache would do for these clients");
    out << "<h2>What these clients would get</h2>\n";
    print_html_columns(out, gains_of(found, of, unit));
    out << "<h2>How it grows with room</h2>\n";
    print_svg(out, chart_of(found, "requests answered from cache", &tally::hit_ratio));
    print_svg(out, chart_of(found, "bytes answered from cache", &tally::byte_hit_ratio));
    print_html_columns(out, growth_of(found, asked));
    for (const auto& one : remarks_on(found, asked)) {
        out << "<p>" << html_text(one) << "</p>\n";
    }
    out << "<h2>Settings for the best that was found</h2>\n<pre>" << html_text(found.settings)
        << "</pre>\n";
    print_asked_once(out, of);
    out << "<h2>Everything that was tried</h2>\n";
    print_rows(out, found.results);
    end_page(out);
}

void print_answer_json(std::ostream& out,
                       const answer& found,
                       const question& asked,
                       const trace_summary& of,
                       std::uint64_t unit) {
    std::ostringstream plain;
    print_json(plain, of, found.results, found.settings);
    auto root = nlohmann::ordered_json::parse(plain.str());
    auto& told = root["answer"];
    told["memory_bytes"] = found.memory;
    told["disk_bytes"] = found.disk;
    told["enough_bytes"] = found.enough;
    told["sample"] = found.sample;
    told["as_it_comes"] = row_json(found.as_it_comes, unit);
    told["plain_lru"] = row_json(found.plain_lru, unit);
    told["best_in_memory"] = row_json(found.best_in_memory, unit);
    if (found.best_with_disk) {
        told["disk_as_it_comes"] = row_json(*found.disk_as_it_comes, unit);
        told["plain_lru_of_both"] = row_json(*found.lru_of_both, unit);
        told["best_with_disk"] = row_json(*found.best_with_disk, unit);
    }
    told["rooms"] = nlohmann::ordered_json::array();
    for (const auto& one : found.rooms) {
        told["rooms"].push_back({{"bytes", one.bytes},
                                 {"memory_bytes", one.memory},
                                 {"hit_ratio", one.best.counted.hit_ratio()},
                                 {"byte_hit_ratio", one.best.counted.byte_hit_ratio()},
                                 {"plain_lru_hit_ratio", one.lru.counted.hit_ratio()}});
        if (asked.costs.any()) {
            told["rooms"].back()["monthly_cost"] = one.cost;
        }
    }
    if (found.cheapest != 0) {
        told["cheapest_bytes"] = found.cheapest;
    }
    out << root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace reprise::replay
