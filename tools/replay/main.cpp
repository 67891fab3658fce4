// reprise-replay: what caches would have done with a log. README.md says how to read it.

#include "config/options.hpp"
#include "config/quantity.hpp"
#include "proxy/admin/admin_client.hpp"
#include "proxy/base/log.hpp"
#include "tools/replay/answer.hpp"
#include "tools/replay/answer_report.hpp"
#include "tools/replay/live.hpp"
#include "tools/replay/progress_bar.hpp"
#include "tools/replay/recommend.hpp"
#include "tools/replay/reference.hpp"
#include "tools/replay/report.hpp"
#include "tools/replay/results.hpp"
#include "tools/replay/run.hpp"
#include "tools/replay/setup.hpp"
#include "tools/replay/sweep.hpp"
#include "tools/replay/trace.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
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

// That a scaled filter remembers where the trace is not read first.
constexpr std::uint64_t usual_objects = 1'000'000;
// Requests that are kept to answer with: 128 MiB, and some seconds a configuration.
constexpr std::uint64_t usual_sample = 4'000'000;

// Options that say what is to be tried.
constexpr std::array tried_by{
    "--size",          "--policy",        "--admission",      "--probation", "--scaled",
    "--objects",       "--write",         "--segments",       "--extents",   "--carry",
    "--exponent",      "--take-all",      "--by-object",      "--sketch",    "--copies",
    "--remember-auto", "--free-overhead", "--count-overhead", "--behind",    "--after"};
constexpr std::uint64_t least_disk = 16u << 20;  // that settings take

struct command : sweep_words {
    std::vector<std::string> traces;
    std::string format;
    std::vector<std::string> origins;  ///< what they take
    bool behind = false;               ///< each trace is other traffic, behind the one before
    std::string after;                 ///< a share of the last trace that does not count
    std::uint64_t unit = 0;
    unsigned threads = 0;
    bool csv = false, json = false, quiet = false;
    std::string html, settings;
    std::uint64_t sample = usual_sample;
    bool answers = false;  ///< nothing is named that says what to try
    prices costs;
    std::string live, token_file;
    std::string reference;
    std::string directory = ".";
};

std::optional<log_format> format_asked(const command& asked) {
    if (asked.format.empty()) {
        return std::nullopt;
    }
    return must(format_of(asked.format), "--format", asked.format);
}

trace trace_of(const command& asked) {
    trace out{asked.behind ? asked.traces : by_first_request(asked.traces, format_asked(asked)),
              format_asked(asked)};
    if (asked.behind) {
        out.one_behind_another();
    }
    std::vector<reprise::proxy::cache::packed_wait> origins;
    for (const auto& text : asked.origins) {
        const auto took = reprise::config::parse_duration(text);
        const auto* value = reprise::config::value_of(took);
        if (value == nullptr) {
            throw std::runtime_error{"--origins: \"" + text + "\" is no time, such as 50ms"};
        }
        origins.emplace_back(std::chrono::duration_cast<std::chrono::microseconds>(*value));
    }
    out.draw_waits(std::move(origins));
    return out;
}

setup without_admission(setup what) {
    what.admission = {};
    what.probation = 0;
    return what;
}

// How many requests there are before those that count.
std::uint64_t skipped_of(const command& asked, const trace& all) {
    const auto began = asked.behind ? all.last_began().requests : 0;
    const auto share = asked.after.empty() ? 0.0
                                           : must(share_of(asked.after), "--after", asked.after);
    return began +
           static_cast<std::uint64_t>(share * static_cast<double>(all.figures().requests - began));
}

bool has_shares(const std::vector<setup>& setups) {
    return std::any_of(setups.begin(), setups.end(), [](const setup& one) {
        return one.size.of_unique != 0 || one.admission.of_objects != 0;
    });
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& print) {
    std::ofstream out{path};
    print(out);
    out.close();
    if (!out) {
        throw std::runtime_error{path + ": can't be written"};
    }
}

int replay(const command& asked) {
    const auto wanted = must(objective_of(asked.wanted), "--objective", asked.wanted);
    const auto threads = asked.threads != 0 ? asked.threads
                                            : std::max(1u, std::thread::hardware_concurrency());

    // What was asked for, and behind it what that is compared with.
    const auto setups = setups_of(asked);
    auto played = setups;
    for (const auto& one : setups) {
        const auto plain = without_admission(one);
        if (std::find(played.begin(), played.end(), plain) == played.end()) {
            played.push_back(plain);
        }
    }

    trace source = trace_of(asked);
    std::vector<std::unique_ptr<model>> models;
    const auto make_models = [&](const trace_scale& scale, std::uint64_t skipped) {
        for (const auto& one : played) {
            models.push_back(make_model(one, scale));
            if (skipped != 0) {
                models.back() = std::make_unique<counted_late>(std::move(models.back()), skipped);
            }
        }
    };
    std::vector<double> seconds;
    progress_bar bar{asked.quiet};
    trace_scale scale{.objects = asked.objects != 0 ? asked.objects : usual_objects,
                      .unique_bytes = 0,
                      .unit = asked.unit};
    if (has_shares(setups) || asked.behind || !asked.after.empty()) {
        const recorded_trace requests{source, [&bar](double share) { bar.show("reading", share); }};
        const auto totals = source.objects().sum(source.last_began().objects);
        scale.objects = totals.objects;
        scale.unique_bytes = totals.bytes;
        if (scale.unit == 0) {
            // Sizes that are all 1 are none: an object then counts 16 KiB beside a filter's memory.
            scale.unit = totals.bytes == totals.objects ? unit_of_unknown : 1;
        }
        make_models(scale, skipped_of(asked, source));
        seconds = run(
            requests, models, threads, [&bar](double share) { bar.show("playing", share); });
    } else {
        scale.unit = std::max<std::uint64_t>(1, scale.unit);
        make_models(scale, 0);
        seconds = run(
            source, models, threads, [&bar](double share) { bar.show("playing", share); });
    }

    const trace_summary summary{asked.traces,
                                source.formats(),
                                source.figures(),
                                source.objects().sum(source.last_began().objects)};
    std::vector<result> results;
    for (std::size_t i = 0; i < setups.size(); ++i) {
        result one{.what = setups[i],
                   .capacity = setups[i].size.resolved(summary.totals.bytes),
                   .counted = models[i]->figures(),
                   .seconds = seconds[i],
                   .without_admission = {},
                   .told = models[i]->told()};
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
        write_file(asked.html, [&](std::ostream& out) {
            print_report(out, summary, results, recommended, wanted);
        });
    }
    if (!asked.settings.empty() && !recommended.empty()) {
        write_file(asked.settings,
                   [&](std::ostream& out) { out << recommended.back().settings << '\n'; });
    }
    return 0;
}

int answer_it(const command& asked) {
    question what{.memory = {},
                  .disk = {},
                  .wanted = must(objective_of(asked.wanted), "--objective", asked.wanted),
                  .costs = asked.costs};
    if (asked.memory.size() > 1 || asked.disks.size() > 1) {
        throw std::runtime_error{"with several memories or disks, say what to try there: --policy, "
                                 "--admission (--help)"};
    }
    if (!asked.memory.empty()) {
        what.memory = bytes_named(asked.memory.front(), "--memory");
    }
    if (!asked.disks.empty()) {
        const auto& text = asked.disks.front();
        what.disk = text == "0" ? 0 : bytes_named(text, "--disk");
        if (*what.disk != 0 && *what.disk < least_disk) {
            throw std::runtime_error{"--disk: a disk is to have 16 MiB at least"};
        }
    }
    const auto threads = asked.threads != 0 ? asked.threads
                                            : std::max(1u, std::thread::hardware_concurrency());
    trace source = trace_of(asked);
    progress_bar bar{asked.quiet};
    const recorded_trace requests{source,
                                  [&bar](double share) { bar.show("reading", share); },
                                  asked.sample == 0 ? ~std::uint64_t{0} : asked.sample};
    const auto totals = source.objects().sum();
    const trace_summary summary{asked.traces, source.formats(), source.figures(), totals};
    if (summary.figures.requests == 0) {
        throw std::runtime_error{"no request that counts is in it"};
    }
    const auto unit = asked.unit != 0                  ? asked.unit
                      : totals.bytes == totals.objects ? unit_of_unknown
                                                       : 1;
    const auto found = find_answer(what, requests, summary, unit, threads, [&bar](double share) {
        bar.show("playing", share);
    });

    if (asked.json) {
        print_answer_json(std::cout, found, what, summary, unit);
    } else if (asked.csv) {
        print_csv(std::cout, found.results);
    } else {
        print_summary(std::cout, summary);
        std::cout << '\n';
        print_answer(std::cout, found, what, summary, unit);
    }
    if (!asked.html.empty()) {
        write_file(asked.html,
                   [&](std::ostream& out) { print_answer_page(out, found, what, summary, unit); });
    }
    if (!asked.settings.empty()) {
        write_file(asked.settings, [&](std::ostream& out) { out << found.settings << '\n'; });
    }
    return 0;
}

// What goes along; empty: no file is named. @throws std::runtime_error
std::string token_named(const std::string& path) {
    auto token = path.empty() ? std::string{} : reprise::proxy::admin::token_in(path);
    if (token.empty() && !path.empty()) {
        throw std::runtime_error{"--token-file: " + path +
                                 ": can't be read, or is not one line of 4,096 bytes at most"};
    }
    return token;
}

int answer_live(const command& asked) {
    const auto wanted = must(objective_of(asked.wanted), "--objective", asked.wanted);
    const auto told = read_live(stats_of(asked.live, token_named(asked.token_file)));
    if (asked.json) {
        print_live_json(std::cout, told, wanted);
    } else {
        print_live(std::cout, told, wanted);
    }
    if (!asked.html.empty()) {
        write_file(asked.html, [&](std::ostream& out) { print_live_page(out, told, wanted); });
    }
    if (!asked.settings.empty()) {
        const auto found = answer_of(told, wanted);
        write_file(asked.settings, [&](std::ostream& out) {
            out << (found.settings.empty() ? "{}" : found.settings) << '\n';
        });
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    command asked;
    CLI::App app{
        "Plays logs through the proxy's own policies. A log alone is answered with what its "
        "clients would get, and settings for that; --size, --policy, --admission and the "
        "like say what is to be tried instead."};
    app.set_version_flag("--version", std::string{"reprise-replay "} + REPRISE_VERSION);
    app.add_option("trace", asked.traces, "logs, plain, zstd or gzip; - is standard input");
    app.add_option("--format", asked.format, "trace, squid, combined or json (else found out)");
    app.add_flag(
        "--behind",
        asked.behind,
        "the traces are different traffic, each behind the one before; figures, and shares "
        "of bytes, are of the last one");
    app.add_option("--after",
                   asked.after,
                   "a share of the (last) trace (10%): only what is asked for after it counts");
    app.add_option("--size", asked.sizes, "bytes (1GiB, \"50 GB\") or shares of unique bytes (10%)")
        ->delimiter(',');
    app.add_option("--memory",
                   asked.memory,
                   "bytes of memory (1GiB); or with --size its share of that (20%), a disk having "
                   "the rest")
        ->delimiter(',');
    app.add_option("--disk",
                   asked.disks,
                   "bytes of disk below the memory (\"50 GB\"); only what is written there counts "
                   "as written")
        ->delimiter(',');
    app.add_option("--policy",
                   asked.policies,
                   "lru, sieve, s3-fifo, w-tinylfu, gdsf, gdsf:EXPONENT, lfu-da, arc, lhd")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option(
           "--admission",
           asked.admissions,
           "always, second-hit, nth-hit:N, tinylfu, auto (the proxy's); exact-second, window:N, "
           "window:N% (exact, of the last N distinct keys)")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--probation",
                   asked.probations,
                   "share of memory for first requests; with a disk 100%: all of it")
        ->delimiter(',')
        ->capture_default_str();
    app.add_flag(
        "--scaled",
        asked.scaled,
        "a small cache stands for a large one: filter and sketch are as large as the trace "
        "wants them, instead of as a proxy of that size has them");
    app.add_flag("--remember-auto",
                 asked.remembers_automatically,
                 "with --scaled: the filter follows the store's age of eviction, instead of "
                 "remembering as many keys as the trace has");
    app.add_option("--objective",
                   asked.wanted,
                   "requests, bytes or seconds: what gdsf, the disk and a recommendation are for")
        ->capture_default_str();
    app.add_option("--origins",
                   asked.origins,
                   "what origins take, of which the log tells nothing: one of these for each host "
                   "(5ms,50ms,500ms)")
        ->delimiter(',');
    app.add_option("--write", asked.write, "to disk at: eviction or admission")
        ->capture_default_str();
    app.add_option("--segments", asked.disk.segments, "of the disk (else as the proxy has them)")
        ->check(CLI::Range(2u, 1'000'000u));
    app.add_option("--extents",
                   asked.disk.extents,
                   "of a segment: larger objects are cut (else as the proxy has them)")
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
    app.add_flag("!--free-overhead",
                 asked.disk.counts_overhead,
                 "with --scaled and a disk: what filter and sketch take is not memory's");
    app.add_option("--sketch",
                   asked.disk.sketch,
                   "keys that the disk counts requests for (else as many as the proxy's does)");
    app.add_flag("--copies", asked.disk.copies, "what is on disk may stay in memory too");
    app.add_flag("--count-overhead",
                 asked.counts_overhead,
                 "with --scaled: the filter takes room from the size");
    app.add_option("--unit",
                   asked.unit,
                   "bytes that one of the trace's counts for beside a filter's (16384 where all "
                   "sizes are 1)");
    app.add_option(
        "--objects",
        asked.objects,
        "that the filter remembers (else it follows the store); with --scaled, where the "
        "trace is not read first");
    app.add_option("--threads", asked.threads, "0: one a processor");
    auto* csv = app.add_flag("--csv", asked.csv, "results as CSV");
    app.add_flag("--json", asked.json, "results as JSON")->excludes(csv);
    app.add_option("--html", asked.html, "writes a report with plots, one file");
    app.add_option("--settings", asked.settings, "writes the recommended settings, one file");
    app.add_option("--sample",
                   asked.sample,
                   "requests that are kept to answer with: of a longer log some of its objects are "
                   "played (0: all)")
        ->capture_default_str();
    app.add_option("--cost-memory", asked.costs.memory, "of a GB of memory for 30 days")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--cost-disk", asked.costs.disk, "of a GB of disk for 30 days")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--cost-origin", asked.costs.origin, "of a GB asked of origins")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--cost-second", asked.costs.second, "of a second that a client waits")
        ->check(CLI::NonNegativeNumber);
    app.add_option(
           "--miss-seconds", asked.costs.miss_seconds, "that a miss takes longer than a hit")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_flag("--quiet", asked.quiet, "no progress bar");
    app.add_option(
           "--live",
           asked.live,
           "no log: asks a proxy that runs, at its admin address (http://127.0.0.1:3180) or "
           "socket, what its ghosts know of other settings")
        ->excludes("trace")
        ->excludes(csv);
    app.add_option("--token-file", asked.token_file, "with --live: the admin listener's token");
    app.add_option("--check-reference",
                   asked.reference,
                   "holds the classes against the counts in this file, and plays nothing else");
    app.add_option("--traces", asked.directory, "where that file's traces are")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    // Whoever says what is to be tried gets that, and all others an answer.
    const auto named = [&app](const char* option) { return app.count(option) != 0; };
    asked.answers = std::none_of(tried_by.begin(), tried_by.end(), named) &&
                    std::none_of(asked.memory.begin(), asked.memory.end(), [](const auto& text) {
                        return text.ends_with('%');
                    });
    // The gate says what its filter remembers; here there are as many gates as models.
    reprise::proxy::set_log_level(reprise::config::log_level::warn);
    try {
        const auto threads = asked.threads != 0 ? asked.threads
                                                : std::max(1u, std::thread::hardware_concurrency());
        if (!asked.reference.empty()) {
            return print_reference_check(asked.reference, asked.directory, threads, std::cout) ? 0
                                                                                               : 1;
        }
        if (!asked.live.empty()) {
            return answer_live(asked);
        }
        if (asked.traces.empty()) {
            throw std::runtime_error{"no trace is named (--help)"};
        }
        return asked.answers ? answer_it(asked) : replay(asked);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "reprise-replay: %s\n", error.what());
        return 2;
    }
}
