#include "tests/crash/rounds.hpp"

#include "tests/support/temp_dir.hpp"
#include "tests/support/waiting.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>

namespace reprise::tests::crash {

namespace {

using std::chrono::milliseconds;

json settings_for(const run_options& options, const std::string& store) {
    json out{
        {"listeners", json::array({json{{"address", "127.0.0.1:0"}}})},
        {"admin", {{"address", "127.0.0.1:0"}}},
        {"threads", 2},
        {"access",
         {{"allow_destinations", json::array({"127.0.0.0/8"})},
          {"purge_clients", json::array({"127.0.0.1"})}}},
        {"timeouts", {{"drain", "500ms"}}},
        {"admission", "always"},
        // So small that most hits come from disk.
        {"memory", {{"size", "4MiB"}, {"max_object", "256KiB"}}},
        {"log", {{"access", "off"}, {"level", "info"}}},
    };
    if (options.disk) {
        out["disk"] = {{"path", store}, {"size", std::to_string(options.size) + "B"}};
    }
    return out;
}

double percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
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
        program.program = options.program;
        program.directory = directory.path();
        program.settings = settings_for(options, store());
    }

    // More URLs than the store can hold, or nothing would be written the second time round.
    static stock sized(const run_options& given) {
        stock out;
        out.small = static_cast<std::uint32_t>(
            std::max<std::uint64_t>(6'000, given.size / (std::uint64_t{64} << 20) * out.small));
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

    // A life: from a start to a kill, or to a stop in order. What it wrote joins the figures.
    enum class ending { kill, kill_early, stop };
    ledger::moment live(ending how);
    void check_after(const ledger::moment& at, check_figures& into);
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
    victim_options program;
    std::unique_ptr<victim> on;  // between two kills
    std::vector<double> paces;
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
        on->stop();
    } else {
        on->kill();
    }
    const auto killed = steady::now();
    work.join();
    const auto last = work.last();
    on.reset();

    // What was written after the last look at the figures, and the rest of the segment that the
    // next start leaves: two segments are more than a tenth of a second fills.
    const auto segment = last.segments == 0 ? 0 : options.size / last.segments;
    owed.log_at(std::max(owed.log(), log_before + last.written) + 2 * segment);
    out.written += last.written;
    out.puts += last.puts;
    out.skipped += last.skipped;
    out.carried += last.carried;
    out.evicted += last.evicted;
    out.invalidated += last.invalidated;
    out.damaged += last.damaged;
    out.errors += last.errors;
    if (how == ending::kill_early) {
        ++out.kills_while_loading;
    } else if (how == ending::kill && pace >= options.least_pace) {
        ++out.kills_at_pace;
        paces.push_back(pace);
    }
    out.kills += how == ending::stop ? 0 : 1;
    out.most_on_disk = std::max(out.most_on_disk, bytes_on_disk(store()));
    say("life " + std::to_string(out.kills) + ": " + std::to_string(static_cast<int>(pace)) +
        " writes/s, " + std::to_string(last.objects) + " objects, wrote " +
        std::to_string(last.written >> 20) + " MiB, evicted " + std::to_string(last.evicted) +
        ", carried " + std::to_string(last.carried) + ", skipped " + std::to_string(last.skipped));
    return {killed,
            owed.log(),
            static_cast<std::uint64_t>(options.may_hold * static_cast<double>(options.size))};
}

// Starts it again and asks for everything.
void runs::inside::check_after(const ledger::moment& when, check_figures& into) {
    on = std::make_unique<victim>(program);
    const auto asked = from.requests();
    const auto got = check_all(*on, things, owed, seen, options.load.authority, when);
    out.origin_asked_while_checking += from.requests() - asked;
    into += got;
    const auto now = on->figures();
    say("  check: " + std::to_string(got.found) + " of " + std::to_string(got.asked) +
        " found; owed " + std::to_string(got.owed_found) + " of " + std::to_string(got.owed) +
        ", freshened " + std::to_string(got.freshened_found) + " of " +
        std::to_string(got.freshened) + ", large " + std::to_string(got.large_found) + " of " +
        std::to_string(got.large) + "; " + std::to_string(now.objects) + " objects, damaged " +
        std::to_string(now.damaged));
}

// Until the log has come round often enough.
void runs::inside::fill() {
    on = std::make_unique<victim>(program);
    const auto enough = static_cast<std::uint64_t>(
        options.disk ? options.least_rounds * 1.05 * static_cast<double>(options.size) : 0);
    auto hurried = options.load;
    hurried.rate *= 3;
    load work{*on, things, owed, seen, at, hurried, options.seed};
    const bool full = eventually([&] { return owed.log() >= enough; }, std::chrono::minutes{5});
    work.join();
    out.written += work.last().written;
    out.puts += work.last().puts;
    out.skipped += work.last().skipped;
    out.carried += work.last().carried;
    out.evicted += work.last().evicted;
    if (!full) {
        throw std::runtime_error("the store did not fill: " + std::to_string(owed.log()) +
                                 " bytes written, state " + work.last().state);
    }
    say("filled: " + std::to_string(owed.log() >> 20) + " MiB written");
    on->stop();
    on.reset();
    on = std::make_unique<victim>(program);
}

void runs::inside::kill_all() {
    // Kills below the pace are made and checked all the same; they only do not count.
    const auto most = 2 * options.kills + 20;
    for (std::uint64_t i = 0; i < most && out.kills_at_pace < options.kills; ++i) {
        check_after(live(ending::kill), out.checks);
        if (i % 8 == 7) {
            // While the index is loading, and at once after that.
            on->kill();
            ++out.kills;
            ++out.kills_while_loading;
            on = std::make_unique<victim>(program);
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
    in.damage_all();
    if (in.on) {
        const auto last = in.on->figures();
        in.out.damaged += last.damaged;
        in.on->stop();
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
    auto traced = in.program;
    traced.prefix = strace_words(log);
    call_figures all;
    // Twice: a store that is new, and one that is loaded and read.
    for (int i = 0; i < 2; ++i) {
        in.on = std::make_unique<victim>(traced);
        const auto loops = threads_named(in.on->pid(), "worker");
        load work{*in.on, in.things, in.owed, in.seen, in.at, in.options.load, in.options.seed};
        std::this_thread::sleep_for(how_long / 2);
        work.join();
        in.on->stop();
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

std::vector<std::string> runs::judged() const {
    const auto& in = *inside_;
    const auto& f = in.out;
    std::vector<std::string> bad;
    const auto refuse = [&](bool broken, const std::string& what) {
        if (broken) {
            bad.push_back(what);
        }
    };
    refuse(in.seen.wrong != 0, "wrong bytes were served");
    refuse(in.seen.stale != 0, "what was purged was served");
    refuse(in.seen.failed != 0, "replies failed while the program should have been well");
    refuse(f.damage_rounds == 0 && in.seen.broken != 0,
           "bodies broke off though nothing is damaged");
    refuse(f.damage_rounds == 0 && f.damaged != 0,
           "records are damaged though nobody damaged them");
    refuse(f.kills_at_pace < in.options.kills, "too few kills fell at the pace asked for");
    refuse(percent(f.checks.owed_found, f.checks.owed) < 99, "less than 99 % are hits again");
    refuse(percent(f.checks.freshened_found, f.checks.freshened) < 99,
           "less than 99 % of what a 304 prolonged are hits again");
    refuse(in.options.disk && in.options.kills > 0 && f.checks.owed == 0, "nothing was owed");
    refuse(f.most_on_disk > in.options.size, "the store is larger than its limit");
    return bad;
}

bool runs::saw(sabotage wrong) const {
    const auto& in = *inside_;
    switch (wrong) {
    case sabotage::none: return false;
    case sabotage::torn: return in.seen.wrong != 0;
    case sabotage::stale: return in.seen.stale != 0;
    case sabotage::lost: return percent(in.out.checks.owed_found, in.out.checks.owed) < 99;
    }
    return false;
}

void runs::print(std::ostream& out) const {
    const auto& in = *inside_;
    const auto& f = in.out;
    const auto& s = in.seen;
    const auto row = [&](const std::string& name, const auto& value, const std::string& more = "") {
        out << "| " << std::left << std::setw(44) << name << " | " << std::right << std::setw(12)
            << value << " | " << more << "\n";
    };
    const auto share = [&](const std::string& name, std::uint64_t part, std::uint64_t whole) {
        std::ostringstream text;
        text << "of " << whole << ": " << std::fixed << std::setprecision(3) << percent(part, whole)
             << " %";
        row(name, part, text.str());
    };
    out << "seed " << in.options.seed << ", disk.size " << (in.options.size >> 20) << " MiB, "
        << f.took.count() << " s\n";
    row("kills", f.kills);
    row("  at " + std::to_string(static_cast<int>(in.options.least_pace)) + " writes/s or more",
        f.kills_at_pace,
        "least " + std::to_string(static_cast<int>(f.least_pace)) + ", median " +
            std::to_string(static_cast<int>(f.median_pace)));
    row("  just after a start", f.kills_while_loading);
    row("objects written", f.puts, std::to_string(f.skipped) + " skipped, queue full");
    row("bytes written", f.written);
    row("rounds of the log", f.rounds);
    row("objects carried forward", f.carried, std::to_string(f.evicted) + " evicted");
    row("most bytes on disk", f.most_on_disk, "limit " + std::to_string(in.options.size));
    row("replies under load", s.replies.load(), std::to_string(s.hits.load()) + " hits");
    row("  answered 304 by the origin", s.validated.load());
    row("  large objects", s.large.load());
    row("purges by URL, hard", s.hard.load(), "soft " + std::to_string(s.soft.load()));
    row("purges by prefix", s.prefix.load(), "by tag " + std::to_string(s.tag.load()));
    row("unsafe methods", s.unsafe.load());
    row("changes the disk did not keep in time", s.unkept.load());
    row("URLs asked after kills", f.checks.asked, std::to_string(f.checks.ranges) + " ranges more");
    row("  found", f.checks.found);
    share("  admitted a second before, hits again", f.checks.owed_found, f.checks.owed);
    share("    of these large", f.checks.large_found, f.checks.large);
    share("  prolonged by a 304, hits again", f.checks.freshened_found, f.checks.freshened);
    row("origin asked while checking", f.origin_asked_while_checking);
    if (f.damage_rounds != 0) {
        row("rounds with damage", f.damage_rounds);
        row("  bits flipped", f.done.flipped_bits);
        row("  pages zeroed",
            f.done.zeroed_pages,
            std::to_string(f.done.foreign_pages) + " foreign");
        row("  files cut off", f.done.truncated, std::to_string(f.done.removed) + " removed");
        row("  journals struck", f.done.journals);
        row("  URLs asked", f.damage_checks.asked);
        share("    hits again", f.damage_checks.owed_found, f.damage_checks.owed);
        row("  bodies broken off", s.broken.load(), "never as complete");
    }
    row("records found damaged", f.damaged, std::to_string(f.errors) + " I/O errors");
    row("wrong bytes", s.wrong.load());
    row("stale after purge", s.stale.load());
    row("replies failed", s.failed.load());
    for (const auto& words : s.words()) {
        out << "  " << words << "\n";
    }
}

}  // namespace reprise::tests::crash
