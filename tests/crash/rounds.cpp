#include "tests/crash/rounds.hpp"

#include "tests/support/temp_dir.hpp"
#include "tests/support/traced.hpp"
#include "tests/support/waiting.hpp"

#include <algorithm>
#include <iostream>
#include <random>
#include <stdexcept>

namespace reprise::tests::crash {

namespace {

using std::chrono::milliseconds;

json settings_for(const run_options& options, const std::string& store) {
    auto out = storing_settings();
    out["access"]["purge_clients"] = {"127.0.0.1"};
    // So small that most hits come from disk.
    out["memory"] = {{"size", "4MiB"}, {"max_object", "256KiB"}};
    out["log"]["access"] = "off";
    if (options.disk) {
        out["disk"] = disk_of_all_admitted(store, std::to_string(options.size) + "B");
    }
    return out;
}

}  // namespace

struct runs::inside {
    explicit inside(const run_options& given)
        : options{given},
          things{sized(given)},
          owed{things},
          from{things, given.load.wrong},
          dice{given.seed} {
        options.load.authority = from.authority();
        settings = settings_for(options, store());
    }

    // More URLs than the store can hold, or nothing would be written the second time round.
    static stock sized(const run_options& given) {
        stock out;
        out.small = static_cast<std::uint32_t>(
            std::max<std::uint64_t>(6'000, given.size * out.small / (std::uint64_t{64} << 20)));
        return out;
    }
    [[nodiscard]] std::string store() const { return directory.file("store"); }
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) {
        return std::uniform_int_distribution<std::uint64_t>{0, limit - 1}(dice);
    }
    void say(const std::string& what) const {
        if (options.verbose) {
            std::cerr << what << std::endl;
        }
    }

    void start(const std::vector<std::string>& run_by = {}) {
        on.emplace(settings, start_options{.run_by = run_by, .limit = busy_machine});
    }
    void count(const store_figures& last) {
        out.written += last.written;
        out.puts += last.puts;
        out.skipped += last.skipped;
        out.carried += last.carried;
        out.evicted += last.evicted;
        out.invalidated += last.invalidated;
        out.damaged += last.damaged;
        out.errors += last.errors;
    }

    // A life: from a start to a kill, or to a stop in order. What it wrote joins the figures.
    enum class ending { kill, kill_early, stop };
    ledger::moment live(ending how);
    void check_after(const ledger::moment& when, check_figures& into);
    void fill();
    void kill_all();
    void damage_all();

    run_options options;
    temp_dir directory;
    catalogue things;
    ledger owed;
    sightings seen;
    cursors at;
    origin from;
    std::mt19937_64 dice;
    json settings;
    std::optional<proxy_process> on;  // between two kills
    std::vector<double> paces;
    bool counting = true;  // kills are of those that were asked for
    run_figures out;
    steady::time_point began = steady::now();
};

// Loads the program that was started, and ends it.
ledger::moment runs::inside::live(ending how) {
    const auto log_before = owed.log();
    load work{*on, things, owed, seen, at, options.load, options.seed + 1'000 * out.kills};
    if (how == ending::kill_early) {
        std::this_thread::sleep_for(milliseconds{below(150)});
    } else {
        // The pace is that of the last second, so there has to be one.
        std::this_thread::sleep_for(milliseconds{1'300 + below(1'200)});
    }
    const auto pace = work.pace();
    work.expect_the_end();
    if (how == ending::stop) {
        work.join();
        stop(*on);
    } else {
        kill(*on);
    }
    const auto killed = steady::now();
    work.join();
    work.settle(how == ending::stop ? std::nullopt : std::optional{killed});
    const auto last = work.last();
    on.reset();

    // What was written after the last look at the figures, and the rest of the segment that the
    // next start leaves: two segments are more than a tenth of a second fills.
    const auto segment = last.segments == 0 ? 0 : options.size / last.segments;
    owed.log_at(std::max(owed.log(), log_before + last.written) + 2 * segment);
    count(last);
    if (how == ending::kill_early) {
        ++out.kills_while_loading;
    } else if (how == ending::kill && counting && pace >= options.least_pace) {
        ++out.kills_at_pace;
        paces.push_back(pace);
    }
    out.kills += how == ending::stop ? 0 : 1;
    out.most_on_disk = std::max(out.most_on_disk, bytes_on_disk(store()));
    say("life " + std::to_string(out.kills) + ": " + std::to_string(static_cast<int>(pace)) +
        " writes/s, " + std::to_string(last.objects) + " objects, wrote " +
        std::to_string(last.written >> 20) + " MiB, evicted " + std::to_string(last.evicted) +
        ", carried " + std::to_string(last.carried) + ", skipped " + std::to_string(last.skipped));
    if (how == ending::stop) {
        owed.written_until(killed);
    } else {
        out.most_behind = std::max(out.most_behind, killed - owed.written());
    }
    return {killed,
            owed.written(),
            owed.log(),
            static_cast<std::uint64_t>(options.may_hold * static_cast<double>(options.size))};
}

// Starts it again and asks for everything.
void runs::inside::check_after(const ledger::moment& when, check_figures& into) {
    start();
    const auto asked = from.requests();
    const auto got = check_all(*on, things, owed, seen, options.load.authority, when);
    out.origin_asked_while_checking += from.requests() - asked;
    into += got;
    const auto now = figures_of(*on);
    say("  check: " + std::to_string(got.found) + " of " + std::to_string(got.asked) +
        " found; owed " + std::to_string(got.owed_found) + " of " + std::to_string(got.owed) +
        ", freshened " + std::to_string(got.freshened_found) + " of " +
        std::to_string(got.freshened) + ", large " + std::to_string(got.large_found) + " of " +
        std::to_string(got.large) + "; " + std::to_string(now.objects) + " objects, oldest lost " +
        std::to_string(got.oldest_lost.count()) + " ms, damaged " + std::to_string(now.damaged));
}

// Until the log has come round often enough.
void runs::inside::fill() {
    start();
    const auto enough = static_cast<std::uint64_t>(
        options.disk ? options.least_rounds * 1.05 * static_cast<double>(options.size) : 0);
    auto hurried = options.load;
    hurried.rate *= 3;
    load work{*on, things, owed, seen, at, hurried, options.seed};
    const bool full = eventually([&] { return owed.log() >= enough; }, std::chrono::minutes{5});
    work.join();
    work.settle(std::nullopt);  // it is stopped in order
    // A stop in order writes what waits for the writer, which nobody sees any more: the log would be
    // longer than the ledger knows, and what it has overtaken still be owed.
    const bool written = eventually([&] {
        const auto now = figures_of(*on);
        owed.log_at(now.written);
        return now.behind == 0;
    });
    count(work.last());
    if (!written) {
        throw std::runtime_error("the store's writer did not come to an end");
    }
    if (!full) {
        throw std::runtime_error("the store did not fill: " + std::to_string(owed.log()) +
                                 " bytes written, state " + work.last().state);
    }
    say("filled: " + std::to_string(owed.log() >> 20) + " MiB written");
    stop(*on);
    on.reset();
    start();
}

void runs::inside::kill_all() {
    // Kills below the pace are made and checked all the same; they only do not count.
    const auto most = 2 * options.kills + 20;
    for (std::uint64_t i = 0; i < most && out.kills_at_pace < options.kills; ++i) {
        check_after(live(ending::kill), out.checks);
        if (i % 8 == 7) {
            // While the index is loading, and at once after that.
            kill(*on);
            ++out.kills;
            ++out.kills_while_loading;
            start();
            check_after(live(ending::kill_early), out.checks);
        }
        if (seen.wrong + seen.stale > 100) {
            return;  // enough is known
        }
    }
}

void runs::inside::damage_all() {
    for (std::uint64_t i = 0; i < options.damages; ++i) {
        const auto when = live(i % 2 == 0 ? ending::stop : ending::kill);
        out.done += damage_store(store(), mix(options.seed + i));
        ++out.damage_rounds;
        check_after(when, out.damage_checks);
    }
}

runs::runs(const run_options& options) : inside_{std::make_unique<inside>(options)} {}
runs::~runs() = default;

void runs::run() {
    auto& in = *inside_;
    in.fill();
    in.kill_all();
    in.counting = false;
    in.damage_all();
    if (in.on) {
        const auto last = figures_of(*in.on);
        in.out.damaged += last.damaged;
        stop(*in.on);
        in.on.reset();
    }
    std::sort(in.paces.begin(), in.paces.end());
    if (!in.paces.empty()) {
        in.out.least_pace = in.paces.front();
        in.out.median_pace = in.paces[in.paces.size() / 2];
    }
    in.out.rounds = static_cast<double>(in.out.written) / static_cast<double>(in.options.size);
    in.out.took = std::chrono::duration_cast<std::chrono::seconds>(steady::now() - in.began);
}

call_figures runs::trace(std::chrono::seconds how_long) {
    auto& in = *inside_;
    const auto log = in.directory.file("calls");
    // What waits to be written is written at the end, at a tracer's pace.
    in.settings["timeouts"]["drain"] = "60s";
    call_figures all;
    // Twice: a store that is new, and one that is loaded and read.
    for (int i = 0; i < 2; ++i) {
        in.start(strace_words(log));
        const auto loops = threads_named(in.on->pid(), "worker");
        load work{*in.on, in.things, in.owed, in.seen, in.at, in.options.load, in.options.seed};
        // So many that some of them are read from the disk.
        const auto enough = in.seen.replies + 500;
        std::this_thread::sleep_for(how_long / 2);
        (void)eventually([&] { return in.seen.replies >= enough; }, busy_machine);
        work.join();
        work.settle(std::nullopt);
        stop(*in.on);
        in.on.reset();
        all += read_calls(log, loops);
    }
    return all;
}

const run_figures& runs::figures() const {
    return inside_->out;
}
const sightings& runs::seen() const {
    return inside_->seen;
}

}  // namespace reprise::tests::crash
