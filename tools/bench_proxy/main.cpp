// What the proxy costs, beside floors and peers in one run: processor time, memory, for how long a
// loop is held. tools/bench builds all and starts it; README.md has the rows and how they are made.
//
//   bench_proxy whole|short|trial [options]     measures, prints, writes, compares
//   bench_proxy compare NOW KEPT                two results' files
//
// Exit status: 0; 1 when a row is worse than the kept one; 2 when something could not be measured.

#include "tools/bench_proxy/parts.hpp"
#include "tools/bench_proxy/report.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace reprise::bench;
namespace fs = std::filesystem;

plan plan_of(const std::string& form) {
    plan out;
    out.form = form;
    if (form != "whole") {
        out.rounds = 3;
        out.seconds = 1;
        out.tail_rounds = 1;
        out.memory_rounds = 2;
        out.scale_rounds = 2;
        out.lock_rounds = 1;
        out.tail_seconds = 2;
        out.rate_rounds = 1;
        out.rate_seconds = 4;
        out.stored = 50'000;
        out.listed = 50'000;
        out.seen = 100'000;
        out.shrunk = 30'000;
        out.asked_once = 5000;
    }
    if (form == "trial") {  // for the test of the bench: all that it does, little of each
        out.rounds = 1;
        out.memory_rounds = 1;
        out.scale_rounds = 1;
        out.tail_seconds = 0.3;
        out.rate_seconds = 0.3;
        out.tail_rate = 1000;
        out.idle = 50;
        out.half_heads = 50;
        out.peak_wait = 0;
        out.stored = 2000;
        out.purged = 2000;
        out.shrunk = 3000;
        out.listed = 2000;
        out.seen = 2000;
        out.asked_once = 200;
        out.slow_readers = 20;
    }
    return out;
}

std::vector<row> measured(const plan& wanted, result& into) {
    const lab all{wanted};
    peak high{all};
    std::vector<row> out;
    const auto take = [&](found_rows found) {
        std::move(found.rows.begin(), found.rows.end(), std::back_inserter(out));
        std::move(found.skipped.begin(), found.skipped.end(), std::back_inserter(into.skipped));
        std::move(found.notes.begin(), found.notes.end(), std::back_inserter(into.notes));
    };
    take(measure_costs(all));
    take(measure_https_costs(all));
    take(measure_memory(all));
    take(measure_https_memory(all));
    take(measure_tails(all));
    take(measure_scale(all));
    take(measure_rates(all));
    take(high.measure());
    return out;
}

/// The names of rows that look worse, as --only takes them: without what is behind ':' or '/'.
std::vector<std::string> suspects(const std::vector<compared_row>& compared) {
    std::vector<std::string> out;
    for (const auto& one : compared) {
        if (one.said == verdict::worse) {
            out.push_back(one.name.substr(0, std::min(one.name.find(" / "), one.name.find(": "))));
        }
    }
    return out;
}

int say_what_is_worse(const std::vector<compared_row>& compared, const result& kept) {
    int status = 0;
    for (const auto& one : compared) {
        if (one.said == verdict::worse) {
            std::fprintf(stderr,
                         "bench: WORSE: %s: %.3f %s, was %.3f on %s (%+.1f %%)\n",
                         one.name.c_str(),
                         one.now,
                         one.unit.c_str(),
                         one.kept,
                         kept.date.c_str(),
                         100 * (one.now / one.kept - 1));
            status = 1;
        } else if (one.said == verdict::unclear) {
            std::fprintf(stderr,
                         "bench: unclear: %s: the median is %.3f, was %.3f, but the rounds "
                         "do not agree\n",
                         one.name.c_str(),
                         one.now,
                         one.kept);
        }
    }
    return status;
}

struct places {
    std::string out, results, commit = "unknown";
    bool keep = false;
};

int measure(plan wanted, const places& where) {
    const auto begun = now_as_text();
    result now;
    now.date = begun;
    now.commit = where.commit;
    now.form = wanted.form;
    now.machine = this_machine();
    now.rows = measured(wanted, now);

    const auto kept = last_kept(where.results);
    std::vector<compared_row> compared;
    if (kept && kept->machine == now.machine) {
        compared = compare(now, *kept, wanted.only.empty());
        if (const auto again = suspects(compared); !again.empty()) {
            std::fprintf(stderr, "bench: what looks worse is measured once more\n");
            auto second = wanted;
            second.only = again;
            result aside;
            for (auto& one : measured(second, aside)) {
                for (auto& first : now.rows) {
                    if (first.name == one.name) {
                        first.rounds.insert(
                            first.rounds.end(), one.rounds.begin(), one.rounds.end());
                    }
                }
            }
            compared = compare(now, *kept, wanted.only.empty());
        }
    }
    std::printf("%s, %s, commit %s\n%s\n",
                now.date.c_str(),
                now.form.c_str(),
                now.commit.c_str(),
                now.machine.c_str());
    std::fputs(table_of(now, compared).c_str(), stdout);

    fs::create_directories(where.out);
    auto stamp = now.date;
    std::replace(stamp.begin(), stamp.end(), ':', '-');
    const auto file = where.out + "/" + stamp + ".json";
    write_result(file, now);
    std::printf("written: %s\n", file.c_str());
    std::fflush(stdout);
    if (where.keep) {
        fs::create_directories(where.results);
        const auto name = where.results + "/" + now.date.substr(0, 10) + "-bench.json";
        write_result(name, kept && !wanted.only.empty() ? merged(*kept, now) : now);
        std::printf("kept: %s\n", name.c_str());
    }
    if (!kept) {
        std::printf("nothing to compare with: no result is kept in %s\n", where.results.c_str());
        return 0;
    }
    if (kept->machine != now.machine) {
        std::printf("not compared: what is kept is of another machine (%s)\n",
                    kept->machine.c_str());
        return 0;
    }
    return say_what_is_worse(compared, *kept);
}

int compare_files(const std::string& now, const std::string& kept) {
    const auto one = read_result(now);
    const auto other = read_result(kept);
    const auto compared = compare(one, other, true);
    std::fputs(table_of(one, compared).c_str(), stdout);
    std::fflush(stdout);
    return say_what_is_worse(compared, other);
}

void allow_many_files() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 40000);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Measures the proxy beside floors and peers."};
    app.require_subcommand(1);
    plan given;
    places where;
    std::string temporary = fs::temp_directory_path(), now, kept;
    unsigned rounds = 0, seconds = 0;
    const auto measuring = [&](const char* name, const char* what) {
        auto* const form = app.add_subcommand(name, what);
        form->add_option("--program", given.program, "the proxy")
            ->required()
            ->check(CLI::ExistingFile);
        form->add_option("--shim", given.shim, "the preloaded library")
            ->required()
            ->check(CLI::ExistingFile);
        form->add_option("--before", given.before, "another build of the proxy, set beside")
            ->check(CLI::ExistingFile);
        form->add_option("--only",
                         given.only,
                         "parts (costs, https, memory, tails, scale, rates), or rows by the "
                         "beginning of their names")
            ->delimiter(',');
        form->add_option("--rounds", rounds, "of each row");
        form->add_option("--seconds", seconds, "of load, in a round");
        form->add_option("--listed", given.listed, "objects of which a digest is published");
        form->add_option("--out", where.out, "folder for the result")->required();
        form->add_option("--results", where.results, "folder of the kept results")->required();
        form->add_option("--commit", where.commit, "what is measured");
        form->add_option("--dir", temporary, "folder for what is written meanwhile")
            ->check(CLI::ExistingDirectory);
        form->add_option(
                "--profile", given.profile, "folder for what perf says of long spans of a loop")
            ->check(CLI::ExistingDirectory);
        form->add_flag("--keep", where.keep, "write the result into the folder of kept ones too");
        return form;
    };
    const auto* const whole = measuring("whole", "all rows");
    const auto* const brief = measuring("short", "all rows, in three minutes");
    (void)measuring("trial", "all rows, in seconds: the figures mean nothing");
    auto* const comparing = app.add_subcommand("compare", "two results that were written");
    comparing->add_option("now", now)->required()->check(CLI::ExistingFile);
    comparing->add_option("kept", kept)->required()->check(CLI::ExistingFile);
    CLI11_PARSE(app, argc, argv);

    try {
        if (comparing->parsed()) {
            return compare_files(now, kept);
        }
        auto wanted = plan_of(whole->parsed() ? "whole" : brief->parsed() ? "short" : "trial");
        wanted.program = fs::absolute(given.program);
        wanted.before = given.before.empty() ? given.before : fs::absolute(given.before).string();
        wanted.shim = fs::absolute(given.shim);
        wanted.only = given.only;
        wanted.profile = given.profile;
        if (rounds != 0) {
            wanted.rounds = wanted.tail_rounds = wanted.memory_rounds = rounds;
            wanted.scale_rounds = wanted.lock_rounds = rounds;
        }
        wanted.seconds = seconds != 0 ? seconds : wanted.seconds;
        wanted.listed = given.listed != plan{}.listed ? given.listed : wanted.listed;
        wanted.folder = fs::absolute(temporary).string() + "/bench_proxy-" +
                        std::to_string(::getpid());
        fs::create_directories(wanted.folder);
        allow_many_files();
        stay_on(processor::second);
        int status = 2;
        try {
            status = measure(wanted, where);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "bench: %s\n", error.what());
        }
        fs::remove_all(wanted.folder);
        return status;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench: %s\n", error.what());
        return 2;
    }
}
