#include "tools/replay/results.hpp"

#include "tools/replay/columns.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace reprise::replay {

namespace {

std::int64_t difference(std::uint64_t a, std::uint64_t b) noexcept {
    return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
}

double share(std::uint64_t part, std::uint64_t of) noexcept {
    return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
}

std::string probation_text(double probation) {
    return percent_of(probation, probation * 100 == static_cast<int>(probation * 100) ? 0 : 1) +
           "%";
}

std::vector<column> columns_of(const std::vector<result>& results) {
    std::vector<column> out{{"size", true, {}},
                            {"policy", false, {}},
                            {"admission", false, {}},
                            {"hit %", true, {}},
                            {"byte hit %", true, {}},
                            {"objects written", true, {}},
                            {"bytes written", true, {}},
                            {"writes avoided", true, {}},
                            {"hits lost", true, {}},
                            {"origin bytes", true, {}},
                            {"Mreq/s", true, {}}};
    const bool waits = knows_waits(results);
    if (waits) {
        out.push_back({"waited s", true, {}});
        out.push_back({"spared %", true, {}});
    }
    for (const auto& one : results) {
        const auto& counted = one.counted;
        const bool compared = one.without_admission.has_value();
        char rate[32];
        std::snprintf(rate,
                      sizeof rate,
                      "%.1f",
                      one.seconds > 0 ? static_cast<double>(counted.requests) / one.seconds / 1e6
                                      : 0);
        const std::array<std::string, 11> cells{
            to_string(one.what.size),
            to_string(one.what.policy),
            describe_rest(one.what),
            percent_of(counted.hit_ratio(), 2),
            percent_of(counted.byte_hit_ratio(), 2),
            std::to_string(counted.written),
            bytes_text(static_cast<double>(counted.written_bytes)),
            compared ? std::to_string(one.writes_avoided()) : "",
            compared ? std::to_string(one.hits_lost()) : "",
            bytes_text(static_cast<double>(counted.origin_bytes())),
            rate};
        for (std::size_t i = 0; i < cells.size(); ++i) {
            out[i].cells.push_back(cells[i]);
        }
        if (waits) {
            out[cells.size()].cells.push_back(std::to_string(std::llround(counted.waited)));
            out[cells.size() + 1].cells.push_back(percent_of(counted.spared_ratio(), 2));
        }
    }
    return out;
}

nlohmann::ordered_json json_of(const result& one) {
    nlohmann::ordered_json out;
    const auto& counted = one.counted;
    out["size"] = to_string(one.what.size);
    out["capacity_bytes"] = one.capacity;
    out["policy"] = to_string(one.what.policy);
    out["admission"] = to_string(one.what.admission);
    out["probation"] = one.what.probation;
    if (const auto& disk = one.what.disk) {
        out["disk"] = {{"memory", disk->memory},
                       {"segments", disk->segments},
                       {"extents", disk->extents},
                       {"carry", disk->carry},
                       {"exponent", disk->exponent.value_or(exponent_of(one.what.wanted))},
                       {"write", disk->write == write_when::admission ? "admission" : "eviction"},
                       {"selective", disk->selective},
                       {"copies", disk->copies},
                       {"sketch", disk->sketch},
                       {"by_object", disk->by_object}};
    }
    out["requests"] = counted.requests;
    out["bytes"] = counted.bytes;
    out["hits"] = counted.hits;
    out["hit_bytes"] = counted.hit_bytes;
    out["hit_ratio"] = counted.hit_ratio();
    out["byte_hit_ratio"] = counted.byte_hit_ratio();
    out["disk_hits"] = counted.disk_hits;
    out["objects_written"] = counted.written;
    out["bytes_written"] = counted.written_bytes;
    out["bytes_carried"] = counted.carried_bytes;
    out["origin_bytes"] = counted.origin_bytes();
    out["refused"] = counted.refused;
    out["too_large"] = counted.too_large;
    out["overhead_bytes"] = counted.memory_bytes;
    if (one.without_admission) {
        out["writes_avoided"] = one.writes_avoided();
        out["bytes_avoided"] = one.bytes_avoided();
        out["hits_lost"] = one.hits_lost();
    }
    if (counted.waiting > 0) {
        out["waiting_seconds"] = counted.waiting;
        out["waited_seconds"] = counted.waited;
        out["spared_ratio"] = counted.spared_ratio();
    }
    out["seconds"] = one.seconds;
    if (!one.told.empty()) {
        out["auto"] = one.told;
    }
    return out;
}

}  // namespace

std::int64_t result::writes_avoided() const noexcept {
    return without_admission ? difference(without_admission->written, counted.written) : 0;
}

std::int64_t result::bytes_avoided() const noexcept {
    return without_admission ? difference(without_admission->written_bytes, counted.written_bytes)
                             : 0;
}

std::int64_t result::hits_lost() const noexcept {
    return without_admission ? difference(without_admission->hits, counted.hits) : 0;
}

bool knows_waits(const std::vector<result>& results) noexcept {
    return std::any_of(
        results.begin(), results.end(), [](const result& one) { return one.counted.waiting > 0; });
}

std::string describe_rest(const setup& what) {
    auto out = to_string(what.admission);
    if (what.probation > 0) {
        out += " probation " + probation_text(what.probation);
    }
    if (what.disk) {
        out += " memory " + (what.disk->memory_bytes != 0
                                 ? bytes_text(static_cast<double>(what.disk->memory_bytes))
                                 : probation_text(what.disk->memory));
        out += what.disk->write == write_when::admission ? " write admission" : " write eviction";
        out += what.disk->selective ? "" : " take all";
        out += what.disk->by_object ? " by object" : "";
    }
    return out;
}

std::string formats_text(const std::vector<std::optional<log_format>>& formats) {
    std::string out;
    for (const auto format : every_format) {
        const auto count = std::count(formats.begin(), formats.end(), format);
        if (count == 0) {
            continue;
        }
        out += out.empty() ? "" : "; ";
        out += to_string(format);
        if (static_cast<std::size_t>(count) != formats.size()) {
            out += ", " + std::to_string(count) + " of " + std::to_string(formats.size());
        }
    }
    return out;
}

std::string hidden_queries(const trace_figures& figures) {
    return figures.query_hidden == 0
               ? std::string{}
               : "the log hides the queries of " + std::to_string(figures.query_hidden) +
                     " requests (log.query_values; Squid: strip_query_terms): what differs in "
                     "them alone counts as one object, so a cache has fewer hits than this says";
}

void print_summary(std::ostream& out, const trace_summary& of) {
    const auto& figures = of.figures;
    const auto& totals = of.totals;
    if (const auto formats = formats_text(of.formats); !formats.empty()) {
        out << "format: " << formats << '\n';
    }
    out << figures.requests << " requests of " << bytes_text(static_cast<double>(figures.bytes))
        << " for " << totals.objects << " objects of "
        << bytes_text(static_cast<double>(totals.bytes)) << '\n';
    out << "asked for once: " << percent_of(share(totals.asked_once, totals.objects), 1)
        << " % of objects, " << percent_of(share(totals.asked_once, figures.requests), 1)
        << " % of requests, " << percent_of(share(totals.asked_once_bytes, totals.bytes), 1)
        << " % of unique bytes; a cache without bounds would have "
        << percent_of(share(of.possible_hits(), figures.requests), 2) << " % hits\n";
    const auto skipped = figures.other_method + figures.other_status + figures.malformed;
    if (skipped != 0 || figures.size_unknown != 0) {
        out << figures.lines << " lines; not counted: " << figures.other_method << " not GET, "
            << figures.other_status << " of a status that is not stored, " << figures.malformed
            << " unreadable; of unknown size: " << figures.size_unknown << '\n';
    }
    if (const auto note = hidden_queries(figures); !note.empty()) {
        out << note << '\n';
    }
}

void print_table(std::ostream& out, const std::vector<result>& results) {
    print_columns(out, columns_of(results));
    for (const auto& one : results) {
        if (!one.told.empty()) {
            out << "\nauto at " << to_string(one.what.size) << ", " << to_string(one.what.policy)
                << ":\n";
        }
        for (const auto& line : one.told) {
            out << "  " << line << '\n';
        }
    }
}

void print_csv(std::ostream& out, const std::vector<result>& results) {
    out << "size,capacity_bytes,policy,admission,probation,memory,write,requests,hits,hit_bytes,"
           "hit_ratio,byte_hit_ratio,disk_hits,objects_written,bytes_written,bytes_carried,"
           "origin_bytes,writes_avoided,bytes_avoided,hits_lost,overhead_bytes,seconds"
        << (knows_waits(results) ? ",waiting_seconds,waited_seconds\n" : "\n");
    for (const auto& one : results) {
        const auto& counted = one.counted;
        const auto& disk = one.what.disk;
        const auto if_compared = [&](std::int64_t value) {
            return one.without_admission ? std::to_string(value) : std::string{};
        };
        out << to_string(one.what.size) << ',' << one.capacity << ',' << to_string(one.what.policy)
            << ',' << to_string(one.what.admission) << ',' << one.what.probation << ','
            << (disk ? disk->memory : 1) << ','
            << (!disk                                  ? ""
                : disk->write == write_when::admission ? "admission"
                                                       : "eviction")
            << ',' << counted.requests << ',' << counted.hits << ',' << counted.hit_bytes << ','
            << counted.hit_ratio() << ',' << counted.byte_hit_ratio() << ',' << counted.disk_hits
            << ',' << counted.written << ',' << counted.written_bytes << ','
            << counted.carried_bytes << ',' << counted.origin_bytes() << ','
            << if_compared(one.writes_avoided()) << ',' << if_compared(one.bytes_avoided()) << ','
            << if_compared(one.hits_lost()) << ',' << counted.memory_bytes << ',' << one.seconds;
        if (knows_waits(results)) {
            out << ',' << counted.waiting << ',' << counted.waited;
        }
        out << '\n';
    }
}

void print_json(std::ostream& out,
                const trace_summary& of,
                const std::vector<result>& results,
                const std::string& recommended) {
    nlohmann::ordered_json root;
    auto& about = root["trace"];
    about["paths"] = of.paths;
    about["format"] = formats_text(of.formats);
    about["lines"] = of.figures.lines;
    about["requests"] = of.figures.requests;
    about["bytes"] = of.figures.bytes;
    about["objects"] = of.totals.objects;
    about["unique_bytes"] = of.totals.bytes;
    about["asked_once"] = of.totals.asked_once;
    about["asked_once_bytes"] = of.totals.asked_once_bytes;
    about["possible_hits"] = of.possible_hits();
    about["not_get"] = of.figures.other_method;
    about["status_not_stored"] = of.figures.other_status;
    about["unreadable"] = of.figures.malformed;
    about["size_unknown"] = of.figures.size_unknown;
    about["query_hidden"] = of.figures.query_hidden;
    root["results"] = nlohmann::ordered_json::array();
    for (const auto& one : results) {
        root["results"].push_back(json_of(one));
    }
    if (!recommended.empty()) {
        root["recommended"] = nlohmann::ordered_json::parse(recommended);
    }
    // Paths are whatever bytes the file system had.
    out << root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace reprise::replay
