// reprise-replay: what caches would have done with a log. README.md says how to read it.

#include "proxy/base/log.hpp"
#include "tools/replay/recommend.hpp"
#include "tools/replay/reference.hpp"
#include "tools/replay/report.hpp"
#include "tools/replay/results.hpp"
#include "tools/replay/run.hpp"
#include "tools/replay/setup.hpp"
#include "tools/replay/trace.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace reprise::replay;

struct command {
    std::vector<std::string> traces;
    std::string format;
    std::vector<std::string> sizes{"1%", "10%"};
    std::vector<std::string> policies{"lru", "sieve", "s3-fifo", "w-tinylfu", "gdsf"};
    std::vector<std::string> admissions{"always", "second-hit"};
    std::vector<std::string> probations{"0%"};
    std::string wanted = "requests";
    std::string memory;
    std::string write = "eviction";
    disk_choice disk;
    bool counts_overhead = false;
    bool remembers_automatically = false;
    std::uint64_t unit = 0;
    std::uint64_t objects = 1'000'000;
    unsigned threads = 0;
    bool csv = false, json = false, quiet = false;
    std::string html;
    std::string reference;
    std::string directory = ".";
};

template <class T>
T must(std::optional<T> value, const std::string& option, const std::string& text) {
    if (!value) {
        throw std::runtime_error{option + ": \"" + text + "\" is not one of its values (--help)"};
    }
    return *std::move(value);
}

// A line that is written over, on a terminal only.
class progress_bar {
public:
    explicit progress_bar(bool quiet) : shown_{!quiet && ::isatty(STDERR_FILENO) == 1} {}
    ~progress_bar() {
        if (shown_) {
            std::fprintf(stderr, "\r\033[K");
        }
    }
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;

    void show(const char* what, double share) {
        constexpr int width = 40;
        const auto percent = static_cast<int>(100 * share);
        if (!shown_ || percent == last_) {
            return;
        }
        last_ = percent;
        const std::string bar(static_cast<std::size_t>(width * share), '#');
        std::fprintf(stderr, "\r%-8s [%-*s] %3d %%", what, width, bar.c_str(), percent);
    }

private:
    bool shown_;
    int last_ = -1;
};

std::vector<setup> sweep_of(const command& asked) {
    std::optional<disk_choice> disk;
    if (!asked.memory.empty()) {
        disk = asked.disk;
        disk->memory = must(share_of(asked.memory), "--memory", asked.memory);
        if (asked.write != "eviction" && asked.write != "admission") {
            must(std::optional<int>{}, "--write", asked.write);
        }
        disk->write = asked.write == "admission" ? write_when::admission : write_when::eviction;
    }
    std::vector<setup> out;
    for (const auto& size : asked.sizes) {
        for (const auto& policy : asked.policies) {
            for (const auto& admission : asked.admissions) {
                for (const auto& probation : asked.probations) {
                    setup one;
                    one.size = must(cache_size_of(size), "--size", size);
                    one.policy = must(policy_choice_of(policy), "--policy", policy);
                    one.admission = must(admission_choice_of(admission), "--admission", admission);
                    one.probation = must(share_of(probation), "--probation", probation);
                    one.disk = disk;
                    one.counts_overhead = asked.counts_overhead;
                    one.wanted = asked.wanted == "bytes" ? objective::bytes : objective::requests;
                    one.remembers_automatically = asked.remembers_automatically;
                    if (one.admission.what == admission_choice::kind::always) {
                        one.probation = disk ? one.probation : 0;
                    }
                    if (std::find(out.begin(), out.end(), one) == out.end()) {
                        out.push_back(one);
                    }
                }
            }
        }
    }
    return out;
}

setup without_admission(setup what) {
    what.admission = {};
    what.probation = 0;
    return what;
}

bool has_shares(const std::vector<setup>& setups) {
    return std::any_of(setups.begin(), setups.end(), [](const setup& one) {
        return one.size.of_unique != 0 || one.admission.of_objects != 0;
    });
}

int replay(const command& asked) {
    if (asked.wanted != "requests" && asked.wanted != "bytes") {
        must(std::optional<int>{}, "--objective", asked.wanted);
    }
    const auto wanted = asked.wanted == "bytes" ? objective::bytes : objective::requests;
    std::optional<log_format> format;
    if (!asked.format.empty()) {
        format = must(format_of(asked.format), "--format", asked.format);
    }
    const auto threads = asked.threads != 0 ? asked.threads
                                            : std::max(1u, std::thread::hardware_concurrency());

    // What was asked for, and behind it what that is compared with.
    const auto setups = sweep_of(asked);
    auto played = setups;
    for (const auto& one : setups) {
        const auto plain = without_admission(one);
        if (std::find(played.begin(), played.end(), plain) == played.end()) {
            played.push_back(plain);
        }
    }

    trace source{asked.traces, format};
    std::vector<std::unique_ptr<model>> models;
    const auto make_models = [&](const trace_scale& scale) {
        for (const auto& one : played) {
            models.push_back(make_model(one, scale));
        }
    };
    std::vector<double> seconds;
    progress_bar bar{asked.quiet};
    trace_scale scale{.objects = asked.objects, .unique_bytes = 0, .unit = asked.unit};
    if (has_shares(setups)) {
        const recorded_trace requests{source, [&bar](double share) { bar.show("reading", share); }};
        const auto totals = source.objects().sum();
        scale.objects = totals.objects;
        scale.unique_bytes = totals.bytes;
        if (scale.unit == 0) {
            // Sizes that are all 1 are none: an object then counts 16 KiB beside a filter's memory.
            scale.unit = totals.bytes == totals.objects ? unit_of_unknown : 1;
        }
        make_models(scale);
        seconds = run(
            requests, models, threads, [&bar](double share) { bar.show("playing", share); });
    } else {
        scale.unit = std::max<std::uint64_t>(1, scale.unit);
        make_models(scale);
        seconds = run(
            source, models, threads, [&bar](double share) { bar.show("playing", share); });
    }

    const trace_summary summary{
        asked.traces, source.formats(), source.figures(), source.objects().sum()};
    std::vector<result> results;
    for (std::size_t i = 0; i < setups.size(); ++i) {
        result one{.what = setups[i],
                   .capacity = setups[i].size.resolved(summary.totals.bytes),
                   .counted = models[i]->figures(),
                   .seconds = seconds[i],
                   .without_admission = {}};
        const auto plain = without_admission(setups[i]);
        if (plain != setups[i]) {
            const auto at = std::find(played.begin(), played.end(), plain) - played.begin();
            one.without_admission = models[static_cast<std::size_t>(at)]->figures();
        }
        results.push_back(std::move(one));
    }

    std::vector<recommendation> recommended;
    std::vector<cache_size> sizes;
    for (const auto& one : setups) {
        if (std::find(sizes.begin(), sizes.end(), one.size) == sizes.end()) {
            sizes.push_back(one.size);
        }
    }
    for (const auto& size : sizes) {
        if (const auto* best = best_of(results, size, wanted)) {
            recommended.push_back(
                {*best,
                 settings_for(*best, wanted, keys_remembered(best->what, scale), scale.unit)});
        }
    }

    if (asked.json) {
        print_json(std::cout,
                   summary,
                   results,
                   recommended.empty() ? std::string{} : recommended.back().settings);
    } else if (asked.csv) {
        print_csv(std::cout, results);
    } else {
        print_summary(std::cout, summary);
        std::cout << '\n';
        print_table(std::cout, results);
        for (const auto& one : recommended) {
            std::cout << "\nrecommended at " << to_string(one.chosen.what.size) << " for "
                      << to_string(wanted) << ":\n"
                      << one.settings << '\n';
        }
    }
    if (!asked.html.empty()) {
        std::ofstream out{asked.html};
        print_report(out, summary, results, recommended, wanted);
        out.close();
        if (!out) {
            throw std::runtime_error{asked.html + ": can't be written"};
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    command asked;
    CLI::App app{"Plays logs through the proxy's own policies: what each cache would have done."};
    app.set_version_flag("--version", std::string{"reprise-replay "} + REPRISE_VERSION);
    app.add_option("trace", asked.traces, "logs, plain, zstd or gzip; - is standard input");
    app.add_option("--format", asked.format, "trace, squid, combined or json (else found out)");
    app.add_option("--size", asked.sizes, "bytes (1GiB, \"50 GB\") or shares of unique bytes (10%)")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--policy",
                   asked.policies,
                   "lru, sieve, s3-fifo, w-tinylfu, gdsf, gdsf:EXPONENT, lfu-da, arc")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option(
           "--admission",
           asked.admissions,
           "always, second-hit, nth-hit:N, tinylfu (the proxy's gate); exact-second, window:N, "
           "window:N% (exact, of the last N distinct keys)")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--probation",
                   asked.probations,
                   "share of memory for first requests; with a disk 100%: all of it")
        ->delimiter(',')
        ->capture_default_str();
    app.add_flag("--remember-auto",
                 asked.remembers_automatically,
                 "the filter follows the store's age of eviction, instead of remembering as many "
                 "keys as the trace has");
    app.add_option(
           "--objective", asked.wanted, "requests or bytes: what gdsf and a recommendation are for")
        ->capture_default_str();
    app.add_option("--memory",
                   asked.memory,
                   "two tiers: memory's share of the size (20%), a disk has the rest; only what is "
                   "written to disk counts as written");
    app.add_option("--write", asked.write, "to disk at: eviction or admission")
        ->capture_default_str();
    app.add_option("--segments", asked.disk.segments, "of the disk")
        ->capture_default_str()
        ->check(CLI::Range(2u, 1'000'000u));
    app.add_option("--extents", asked.disk.extents, "of a segment: larger objects are cut")
        ->capture_default_str()
        ->check(CLI::Range(2u, 1'000'000u));
    app.add_option("--carry", asked.disk.carry, "share of a reclaimed segment that is kept")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 0.9));
    app.add_option("--exponent",
                   asked.disk.exponent,
                   "of size in the worth of a byte on disk (else the objective's)")
        ->check(CLI::Range(0.0, 1.0));
    app.add_flag("!--take-all",
                 asked.disk.selective,
                 "the disk takes all that admission lets in, as without disk.selective");
    app.add_flag("--by-object",
                 asked.disk.by_object,
                 "no segments: an object at a time, the yardstick beside them");
    app.add_flag(
        "!--free-overhead",
        asked.disk.counts_overhead,
        "with a disk: what filter and sketch take is not memory's, as memory.size means it");
    app.add_option("--sketch",
                   asked.disk.sketch,
                   "keys that requests are counted for, as a proxy's sketch is made (0: it grows "
                   "with the objects; a proxy's has one for 16 KiB of disk, 16384 at least)")
        ->capture_default_str();
    app.add_flag("--copies", asked.disk.copies, "what is on disk may stay in memory too");
    app.add_flag("--count-overhead", asked.counts_overhead, "the filter takes room from the size");
    app.add_option("--unit",
                   asked.unit,
                   "bytes that one of the trace's counts for beside a filter's (16384 where all "
                   "sizes are 1)");
    app.add_option("--objects",
                   asked.objects,
                   "that the filter remembers, where the trace is not read first (sizes in bytes)")
        ->capture_default_str();
    app.add_option("--threads", asked.threads, "0: one a processor");
    auto* csv = app.add_flag("--csv", asked.csv, "results as CSV");
    app.add_flag("--json", asked.json, "results as JSON")->excludes(csv);
    app.add_option("--html", asked.html, "writes a report with plots, one file");
    app.add_flag("--quiet", asked.quiet, "no progress bar");
    app.add_option("--check-reference",
                   asked.reference,
                   "holds the classes against the counts in this file, and plays nothing else");
    app.add_option("--traces", asked.directory, "where that file's traces are")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    // The gate says what its filter remembers; here there are as many gates as models.
    reprise::proxy::set_log_level(reprise::config::log_level::warn);
    try {
        const auto threads = asked.threads != 0 ? asked.threads
                                                : std::max(1u, std::thread::hardware_concurrency());
        if (!asked.reference.empty()) {
            return print_reference_check(asked.reference, asked.directory, threads, std::cout) ? 0
                                                                                               : 1;
        }
        if (asked.traces.empty()) {
            throw std::runtime_error{"no trace is named (--help)"};
        }
        return replay(asked);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "reprise-replay: %s\n", error.what());
        return 2;
    }
}
