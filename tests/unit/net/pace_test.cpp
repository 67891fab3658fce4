#include "proxy/net/pace.hpp"
#include "tests/unit/net/loop.hpp"

#include <string>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

namespace {

/// A guard over a figure of the test's, on a loop that ticks every 5 ms.
struct paced : test_loop {
    std::uint64_t moved = 0;
    int looked = 0;
    int ended = 0;
    pace_guard guard{timer,
                     [this] {
                         ++looked;
                         return moved;
                     },
                     [this] { ++ended; }};
};

}  // namespace

TEST_SUITE_BEGIN("net/pace");

TEST_CASE("who takes nothing is given up, once") {
    paced bench;
    bench.guard.begin(100, 80ms);
    CHECK(!bench.guard.expired());
    bench.run_until([&] { return bench.ended > 0; });
    CHECK(bench.ended == 1);
    CHECK(bench.guard.expired());
    CHECK(bench.timer.armed() == 0);
}

TEST_CASE("who takes enough in each period is not given up, however long it lasts") {
    paced bench;
    bench.guard.begin(1'000, 200ms);  // 200 bytes each
    const auto until = steady_now() + 1s;
    bench.run_until([&] {
        bench.moved += 200;
        return bench.ended > 0 || steady_now() > until;
    });
    CHECK(bench.ended == 0);
    bench.guard.end();
    CHECK(bench.timer.armed() == 0);
}

TEST_CASE("a drip below the rate is given up") {
    paced bench;
    bench.guard.begin(1'000'000, 100ms);
    bench.run_until([&] {
        ++bench.moved;
        return bench.ended > 0;
    });
    CHECK(bench.ended == 1);
}

TEST_CASE("who moves backwards is given up") {
    paced bench;
    bench.moved = 1ull << 40;
    bench.guard.begin(0, 200ms);
    bench.run_until([&] {
        --bench.moved;
        return bench.ended > 0;
    });
    CHECK(bench.ended == 1);
}

TEST_CASE("without a rate one byte is enough") {
    paced bench;
    bench.guard.begin(0, 200ms);
    const auto until = steady_now() + 600ms;
    bench.run_until([&] {
        ++bench.moved;
        return bench.ended > 0 || steady_now() > until;
    });
    CHECK(bench.ended == 0);
}

TEST_CASE("waits add up, however short they are") {
    paced bench;
    const auto until = steady_now() + test_patience;
    while (bench.ended == 0 && steady_now() < until) {
        bench.guard.begin(1'000, 80ms);
        bench.run_for(6ms);
        if (bench.ended == 0) {
            bench.guard.end();
        }
        ++bench.moved;
    }
    CHECK(bench.ended == 1);
}

TEST_CASE("time between two waits does not count") {
    paced bench;
    for (int i = 0; i < 3; ++i) {
        bench.guard.begin(1'000, 10s);
        bench.guard.end();
        bench.run_for(20ms);
    }
    CHECK(bench.looked == 0);
}

TEST_CASE("nobody looks at a wait that is soon over") {
    paced bench;
    for (int i = 0; i < 100; ++i) {
        bench.guard.begin(100, 60s);
        bench.run_for(std::chrono::milliseconds{1});
        bench.guard.end();
    }
    CHECK(bench.looked == 0);
}

TEST_CASE("stopping the thread's deadlines ends the wait though it moves") {
    paced bench;
    bench.guard.begin(0, 60s);
    ++bench.moved;
    bench.timer.stop();
    CHECK(bench.ended == 1);
    CHECK(bench.guard.expired());
}

TEST_CASE("what the other side has not read is not acknowledged for ever") {
    test_loop loop;
    auto pair = connected_pair(loop.io);
    byte_stream ours{std::move(pair.ours)};
    keep_little_unsent(ours.native_handle());
    const std::vector<char> much(64 << 10);
    std::size_t written = 0;
    error_code error;
    for (std::size_t now = 1; now > 0 && !error;) {
        now = ours.try_write(asio::buffer(much), error);
        written += now;
    }
    REQUIRE(!error);
    const auto before = ours.not_acknowledged();
    CHECK(before > 0);
    CHECK(before <= 512 << 10);  // little has not gone, and of what has gone there is a window
    std::vector<char> taken(written);
    loop.run_until([&] {
        static_cast<void>(pair.theirs.read_some(asio::buffer(taken), error));
        return ours.not_acknowledged() < before;
    });
    CHECK((!error || error == asio::error::would_block));
    CHECK(ours.not_acknowledged() < before);
}

TEST_SUITE_END();
