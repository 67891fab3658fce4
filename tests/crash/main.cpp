// crash_disk: kills the program again and again while it writes, and asks for everything it ever
// stored. README.md says what is promised, how it is judged and how to run it.

#include "tests/crash/rounds.hpp"
#include "tests/support/traced.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <map>

namespace {

using namespace reprise::tests::crash;

constexpr int skipped = 77;  // ctest's SKIP_RETURN_CODE here, as in tests/clients

int trace(const run_options& options, int seconds) {
    if (!reprise::tests::can_strace()) {
        std::cout << "skipped: strace is not installed or may not trace here\n";
        return skipped;
    }
    runs all{options};
    const auto calls = all.trace(std::chrono::seconds{seconds});
    std::cout << "calls of event-loop threads that strace saw: " << calls.seen << " (other threads "
              << calls.of_others << ")\n";
    for (const auto& [name, count] : calls.by_name) {
        std::cout << "  " << name << " " << count << "\n";
    }
    std::cout << "of these preadv2 with RWF_NOWAIT: " << calls.no_wait
              << "\nforbidden: " << calls.forbidden_count << "\n";
    for (const auto& line : calls.forbidden) {
        std::cout << "  " << line << "\n";
    }
    const auto& seen = all.seen();
    std::cout << "replies " << seen.replies << ", wrong " << seen.wrong << ", stale " << seen.stale
              << ", failed " << seen.failed << "\n";
    for (const auto& words : seen.words()) {
        std::cout << "  " << words << "\n";
    }
    const bool well = calls.forbidden_count == 0 && calls.seen != 0 && calls.of_others != 0 &&
                      (!options.disk || calls.no_wait != 0) &&
                      seen.wrong + seen.stale + seen.failed == 0;
    return well ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    run_options options;
    int traced_seconds = 0;
    std::uint64_t mebibytes = 64;
    bool memory_only = false;

    CLI::App app{
        "Kills the proxy while it writes to its store, and checks every byte it serves after"};
    std::string program;
    app.add_option("--program", program, "the proxy; default: of the same build");
    app.add_option("--kills", options.kills, "that fall at the pace asked for")
        ->capture_default_str();
    app.add_option("--damage", options.damages, "rounds with files damaged, after the kills");
    app.add_option("--strace", traced_seconds, "seconds under strace, and nothing else");
    app.add_option("--seed", options.seed, "of all that is random")->capture_default_str();
    app.add_option("--size", mebibytes, "disk.size in MiB")->capture_default_str();
    app.add_option("--rate", options.load.rate, "requests a second")->capture_default_str();
    app.add_option("--pace", options.least_pace, "writes a second for a kill to count")
        ->capture_default_str();
    app.add_option("--rounds", options.least_rounds, "of the log before the first kill")
        ->capture_default_str();
    app.add_option(
           "--sabotage", options.load.wrong, "what the checker must find: torn, stale, lost")
        ->transform(CLI::CheckedTransformer(std::map<std::string, sabotage>{
            {"torn", sabotage::torn}, {"stale", sabotage::stale}, {"lost", sabotage::lost}}));
    app.add_flag("--memory-only", memory_only, "no store on disk: then nothing comes back");
    app.add_flag("--verbose", options.verbose, "a line for each kill and check");
    CLI11_PARSE(app, argc, argv);
    if (!program.empty()) {
        ::setenv("REPRISE_PROGRAM", program.c_str(), 1);
    }
    options.size = mebibytes << 20;
    options.disk = !memory_only;

    try {
        if (traced_seconds > 0) {
            return trace(options, traced_seconds);
        }
        runs all{options};
        try {
            all.run();
        } catch (...) {
            print(std::cout, options, all.figures(), all.seen());
            throw;
        }
        print(std::cout, options, all.figures(), all.seen());
        if (options.load.wrong != sabotage::none) {
            const bool found = saw(options.load.wrong, all.figures(), all.seen());
            std::cout << (found ? "the checker saw it\n" : "BROKEN: the checker saw nothing\n");
            return found ? 0 : 1;
        }
        const auto bad = broken_promises(options, all.figures(), all.seen());
        for (const auto& what : bad) {
            std::cout << "BROKEN: " << what << "\n";
        }
        std::cout << (bad.empty() ? "all promises held\n" : "");
        return bad.empty() ? 0 : 1;
    } catch (const std::exception& what) {
        std::cerr << "crash_disk: " << what.what() << "\n";
        return 2;
    }
}
