#include "tools/bench_proxy/child.hpp"
#include "tools/bench_proxy/loop_watch.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>

namespace reprise::bench::test::of_loop_shim {

namespace {

namespace fs = std::filesystem;

/// tests/bench_proxy/looping.cpp under the library, to its end.
struct looped {
    looped()
        : folder{fs::temp_directory_path() / ("loop_shim_test-" + std::to_string(::getpid()))},
          watch{(fs::create_directories(folder), folder / "times")} {
        watch.begin_turn();
        auto program = child::of_program(
            {.words = {BENCH_LOOPING},
             .environment = {{"LD_PRELOAD", BENCH_LOOP_SHIM}, {loop_times_variable, watch.file()}},
             .log = folder / "log",
             .where = processor::any});
        for (int i = 0; i < 6000 && program.is_running(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
    }
    ~looped() { fs::remove_all(folder); }

    fs::path folder;
    loop_watch watch;
};

constexpr std::uint64_t twenty_ms = 20'000'000;

}  // namespace

TEST_SUITE_BEGIN("bench_proxy/loop_shim");

TEST_CASE("every span between two looks is counted, and the long one is the longest") {
    const looped all;
    const auto worker = all.watch.figures("worker");
    CHECK(worker->held.count() == 100);
    CHECK(worker->passed.count() == 100);
    CHECK(worker->held.longest() >= twenty_ms);
    CHECK(worker->held.count_from(twenty_ms) == 1);
    CHECK(worker->held_by_few.longest() == worker->held.longest());
    CHECK(worker->passed.longest() >= twenty_ms);
    CHECK(worker->events_at_longest == 0);
    REQUIRE(worker->longs.size() >= 1);
}

TEST_CASE("a lock that is waited for is counted once, by who waited") {
    const looped all;
    CHECK(all.watch.figures("other")->waited.count() == 1);
    CHECK(all.watch.figures("other")->locks >= 1);
    CHECK(all.watch.figures("other")->waits_at.size() == 1);
    CHECK(all.watch.figures("worker")->waited.count() == 0);
    CHECK(all.watch.figures("")->held.count() == 100);
}

TEST_CASE("a new turn begins with nothing") {
    looped all;
    all.watch.begin_turn();
    CHECK(all.watch.figures("")->held.count() == 0);
    CHECK(all.watch.figures("")->locks == 0);
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_loop_shim
