#include "tests/crash/report.hpp"

#include <iomanip>
#include <ostream>
#include <sstream>

namespace reprise::tests::crash {

namespace {

double percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<std::string> broken_promises(const run_options& asked,
                                         const run_figures& f,
                                         const sightings& seen) {
    std::vector<std::string> bad;
    const auto refuse = [&](bool broken, const std::string& what) {
        if (broken) {
            bad.push_back(what);
        }
    };
    refuse(seen.wrong != 0, "wrong bytes were served");
    refuse(seen.stale != 0, "what was purged was served");
    refuse(seen.failed != 0, "replies failed while the program should have been well");
    refuse(f.damage_rounds == 0 && seen.broken != 0, "replies broke off though nothing is damaged");
    refuse(f.damage_rounds == 0 && f.damaged != 0,
           "records are damaged though nobody damaged them");
    refuse(f.kills_at_pace < asked.kills, "too few kills fell at the pace asked for");
    refuse(percent(f.checks.owed_found, f.checks.owed) < 99, "less than 99 % are hits again");
    refuse(percent(f.checks.freshened_found, f.checks.freshened) < 99,
           "less than 99 % of what a 304 prolonged are hits again");
    refuse(asked.disk && asked.kills > 0 && f.checks.owed == 0, "nothing was owed");
    refuse(asked.disk && asked.kills >= 10 && f.checks.large == 0, "nothing large was owed");
    refuse(f.most_on_disk > asked.size, "the store is larger than its limit");
    return bad;
}

bool saw(sabotage wrong, const run_figures& f, const sightings& seen) {
    switch (wrong) {
    case sabotage::none: return false;
    case sabotage::torn: return seen.wrong != 0;
    case sabotage::stale: return seen.stale != 0;
    case sabotage::lost: return percent(f.checks.owed_found, f.checks.owed) < 99;
    }
    return false;
}

void print(std::ostream& out, const run_options& asked, const run_figures& f, const sightings& s) {
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
    out << "seed " << asked.seed << ", disk.size " << (asked.size >> 20) << " MiB, "
        << f.took.count() << " s\n";
    row("kills", f.kills);
    row("  at " + std::to_string(static_cast<int>(asked.least_pace)) + " writes/s or more",
        f.kills_at_pace,
        "least " + std::to_string(static_cast<int>(f.least_pace)) + ", median " +
            std::to_string(static_cast<int>(f.median_pace)));
    row("  just after a start", f.kills_while_loading);
    row("objects written", f.puts, std::to_string(f.skipped) + " skipped");
    row("bytes written", f.written);
    row("rounds of the log", f.rounds);
    row("objects carried forward", f.carried, std::to_string(f.evicted) + " evicted");
    row("most bytes on disk", f.most_on_disk, "limit " + std::to_string(asked.size));
    row("replies under load", s.replies.load(), std::to_string(s.hits.load()) + " hits");
    row("  answered 304 by the origin", s.validated.load());
    row("  large objects", s.large.load());
    row("purges by URL, hard", s.hard.load(), "soft " + std::to_string(s.soft.load()));
    row("purges by prefix", s.prefix.load(), "by tag " + std::to_string(s.tag.load()));
    row("unsafe methods",
        s.unsafe.load(),
        std::to_string(s.withdrawn.load()) + " within a second of a kill");
    row("changes the disk did not keep in time", s.unkept.load());
    row("kills with the writer behind, by its word, by",
        std::chrono::duration_cast<std::chrono::milliseconds>(f.most_behind).count(),
        "ms at most");
    row("URLs asked after kills", f.checks.asked, std::to_string(f.checks.ranges) + " ranges more");
    row("  found", f.checks.found);
    share("  admitted a second before, hits again", f.checks.owed_found, f.checks.owed);
    share("    of these large", f.checks.large_found, f.checks.large);
    row("    lost: admitted before the kill, at most", f.checks.oldest_lost.count(), "ms");
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
        row("  replies broken off", s.broken.load(), "never as complete");
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
