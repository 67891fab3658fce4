#include "tools/replay/judge.hpp"
#include "tools/replay/report.hpp"
#include "tools/replay/svg_chart.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <ostream>
#include <stdexcept>

namespace reprise::replay {

namespace {

constexpr std::array sizes{"1%", "10%"};
constexpr std::array every_size{"0.1%", "1%", "10%"};

std::string text(const char* format, double value) {
    char out[32];
    std::snprintf(out, sizeof out, format, value);
    return out;
}

double misses(const tally& of) noexcept {
    return 1 - of.hit_ratio();
}

double byte_misses(const tally& of) noexcept {
    return 1 - of.byte_hit_ratio();
}

double written(const tally& of, const tally& lru) noexcept {
    return static_cast<double>(of.written_bytes) / static_cast<double>(lru.written_bytes);
}

// "0.411 / 0.523 / 0.17": misses, byte misses, bytes written beside LRU's.
std::string three(const tally& of, const tally& lru) {
    return text("%.4f", misses(of)) + " / " + text("%.4f", byte_misses(of)) + " / " +
           text("%.3f", written(of, lru));
}

std::string percent(double share) {
    return text("%+.2f %%", 100 * share);
}

const char* word(bool met) noexcept {
    return met ? "yes" : "**no**";
}

std::string best_second(const trace_verdicts& of, const char* size, objective wanted) {
    std::string best = "lru, second";
    for (const auto* name :
         {"w-tinylfu, second", "s3-fifo, second", "sieve, second", "arc, second"}) {
        const auto& one = of.of(size, name);
        const auto& least = of.of(size, best);
        if (wanted == objective::requests ? one.misses() < least.misses()
                                          : one.origin_bytes() < least.origin_bytes()) {
            best = name;
        }
    }
    return best;
}

void print_objective(std::ostream& out, const std::vector<trace_verdicts>& all, objective wanted) {
    const bool requests = wanted == objective::requests;
    const std::string name{to_string(wanted)};
    out << (requests ? "## (a) objective requests\n\n" : "## (b) objective bytes\n\n")
        << "Misses / byte misses / bytes written beside LRU's.\n\n"
        << "| trace, size | profile | best of four | "
        << (requests ? "misses above it | byte misses above LRU's | " : "byte misses above it | ")
        << "met | by object | LRU | strict: LRU + second | strict: best + second | strict: "
           "profile, no probation |\n|---|---|---|"
        << (requests ? "---:|---:|" : "---:|") << "---|---|---|---|---|---|\n";
    int met = 0, rows = 0;
    for (const auto& one : all) {
        for (const auto* size : sizes) {
            const auto& lru = one.of(size, "lru");
            const auto& profile = one.of(size, name);
            const auto four = one.best_of_four(size, wanted);
            const auto& best = one.of(size, four);
            const auto second = best_second(one, size, wanted);
            const bool is_met = requests ? meets_requests(one.trace, profile, best, lru)
                                         : meets_bytes(profile, best, lru);
            met += is_met ? 1 : 0;
            ++rows;
            out << "| " << one.trace << ' ' << size << " | " << three(profile, lru) << " | " << four
                << ' ' << three(best, lru) << " | ";
            if (requests) {
                out << percent(above(profile.misses(), best.misses())) << " | "
                    << percent(above(profile.origin_bytes(), lru.origin_bytes())) << " | ";
            } else {
                out << percent(above(profile.origin_bytes(), best.origin_bytes())) << " | ";
            }
            out << word(is_met) << " | " << three(one.of(size, name + ", by object"), lru) << " | "
                << three(lru, lru) << " | " << three(one.of(size, "lru, second"), lru) << " | "
                << second << ' ' << three(one.of(size, second), lru) << " | "
                << three(one.of(size, name + ", strict"), lru) << " |\n";
        }
    }
    out << "\nMet: " << met << " of " << rows << ".\n\n";
}

void print_way(std::ostream& out, const std::vector<trace_verdicts>& all) {
    out << "## (c) the way to Belady by size\n\n| trace, size | LRU | Belady by size | profile | "
           "of the way | written beside LRU's | met |\n|---|---:|---:|---:|---:|---:|---|\n";
    int met = 0, rows = 0;
    for (const auto& one : all) {
        if (one.trace != "cdnweb" && one.trace != "synth1m") {
            continue;
        }
        for (const auto* size : sizes) {
            const auto& lru = one.of(size, "lru");
            const auto& belady = one.of(size, "belady");
            const auto& profile = one.of(size, "requests");
            const bool is_met = meets_way(profile, lru, belady);
            met += is_met ? 1 : 0;
            ++rows;
            out << "| " << one.trace << ' ' << size << " | " << text("%.4f", misses(lru)) << " | "
                << text("%.4f", misses(belady)) << " | " << text("%.4f", misses(profile)) << " | "
                << text("%.1f %%", 100 * way_to_belady(profile, lru, belady)) << " | "
                << text("%.3f", written(profile, lru)) << " | " << word(is_met) << " |\n";
        }
    }
    out << "\nMet: " << met << " of " << rows << ".\n\n";
}

void print_regret(std::ostream& out, const std::vector<trace_verdicts>& all) {
    out << "## (d) no regret\n\n| trace, size | LRU misses | profile, requests | above LRU | met | "
           "profile, bytes | above LRU |\n|---|---:|---:|---:|---|---:|---:|\n";
    int met = 0, rows = 0;
    for (const auto& one : all) {
        for (const auto* size : every_size) {
            const auto& lru = one.of(size, "lru");
            const auto& profile = one.of(size, "requests");
            const auto& bytes = one.of(size, "bytes");
            const bool is_met = regrets_nothing(profile, lru);
            met += is_met ? 1 : 0;
            ++rows;
            out << "| " << one.trace << ' ' << size << " | " << text("%.4f", misses(lru)) << " | "
                << text("%.4f", misses(profile)) << " | "
                << percent(above(profile.misses(), lru.misses())) << " | " << word(is_met) << " | "
                << text("%.4f", misses(bytes)) << " | "
                << percent(above(bytes.misses(), lru.misses())) << " |\n";
        }
    }
    out << "\nMet: " << met << " of " << rows << ".\n\n";
}

void print_ways_to_write(std::ostream& out, const std::vector<trace_verdicts>& all) {
    out << "## When and what is written\n\nObjective requests; misses / byte misses / bytes "
           "written beside LRU's.\n\n| trace, size | at eviction, selective (the profile) | at "
           "eviction, all | at admission, selective | at admission, all |\n|---|---|---|---|---|\n";
    for (const auto& one : all) {
        for (const auto* size : sizes) {
            const auto& lru = one.of(size, "lru");
            out << "| " << one.trace << ' ' << size;
            for (const auto* way :
                 {"", ", take all", ", at admission", ", at admission, take all"}) {
                out << " | " << three(one.of(size, std::string{"requests"} + way), lru);
            }
            out << " |\n";
        }
    }
    out << '\n';
}

void write_chart(const std::string& path, const line_chart& chart) {
    std::ofstream out{path};
    print_svg(out, chart);
    out.close();
    if (!out) {
        throw std::runtime_error{path + ": can't be written"};
    }
}

}  // namespace

void print_verdicts(std::ostream& out, const std::vector<trace_verdicts>& all) {
    print_objective(out, all, objective::requests);
    print_objective(out, all, objective::bytes);
    print_way(out, all);
    print_regret(out, all);
    print_ways_to_write(out, all);
}

void write_plots(const std::string& directory, const trace_verdicts& of) {
    std::vector<result> results;
    for (const auto* name :
         {"requests", "lru", "w-tinylfu", "s3-fifo", "sieve", "arc", "requests, strict"}) {
        for (const auto* size : every_size) {
            if (const auto found = of.played.find({size, name}); found != of.played.end()) {
                results.push_back(found->second);
            }
        }
    }
    write_chart(directory + '/' + of.trace + "-hits.svg",
                over_sizes(results,
                           of.trace + ": requests answered from cache",
                           "hit ratio",
                           [](const tally& t) { return 100 * t.hit_ratio(); }));
    auto bytes = over_sizes(results, of.trace + ": bytes written", "bytes", [](const tally& t) {
        return static_cast<double>(t.written_bytes);
    });
    bytes.y_is_bytes = true;
    write_chart(directory + '/' + of.trace + "-written.svg", bytes);
}

}  // namespace reprise::replay
