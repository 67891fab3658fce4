#include "proxy/admin/windows.hpp"

#include <doctest/doctest.h>

using namespace reprise::proxy;
using namespace reprise::proxy::admin;
using std::chrono::seconds;

namespace {

const steady_time start{seconds{1'000'000}};

totals counts_of(std::uint64_t hits, std::uint64_t misses) {
    totals counts;
    counts.requests[static_cast<std::size_t>(outcome::hit)] = hits;
    counts.requests[static_cast<std::size_t>(outcome::miss)] = misses;
    counts.body_bytes_to_clients = 10 * (hits + misses);
    counts.body_bytes_from_store = 10 * hits;
    return counts;
}

}  // namespace

TEST_SUITE("admin/windows") {

    TEST_CASE("without requests there is no ratio") {
        const ratio_windows windows{start};
        CHECK_FALSE(windows.since_start(start, {}).hit_ratio().has_value());
        CHECK_FALSE(windows.last(seconds{60}, start + seconds{5}, {}).byte_hit_ratio().has_value());
    }

    TEST_CASE("a young process answers every window with what it has") {
        const ratio_windows windows{start};
        const auto now = start + seconds{3};
        const auto figures = windows.last(seconds{600}, now, counts_of(1, 3));
        CHECK(figures.hit_ratio() == 0.25);
        CHECK(figures.byte_hit_ratio() == 0.25);
        CHECK(figures.span == seconds{3});
    }

    TEST_CASE("a window forgets what came before it") {
        ratio_windows windows{start};
        // An hour of misses, then two minutes of hits, one request a second.
        std::uint64_t hits = 0, misses = 0;
        auto now = start;
        for (int second = 0; second < 3600 + 120; ++second) {
            now += seconds{1};
            ++(second < 3600 ? misses : hits);
            windows.tick(now, counts_of(hits, misses));
        }
        const auto counts = counts_of(hits, misses);
        const auto minute = windows.last(seconds{60}, now, counts);
        CHECK(minute.hit_ratio() == 1.0);
        CHECK(minute.span >= seconds{60});
        CHECK(minute.span <= seconds{60} + ratio_windows::every);
        const auto ten = windows.last(seconds{600}, now, counts);
        CHECK(ten.span >= seconds{600});
        CHECK(ten.span <= seconds{605});
        CHECK(ten.hits == 120);
        CHECK(windows.since_start(now, counts).requests == 3720);
        CHECK(windows.since_start(now, counts).span == seconds{3720});
    }

    TEST_CASE("ticks that come late leave longer spans, not wrong ratios") {
        ratio_windows windows{start};
        windows.tick(start + seconds{300}, counts_of(0, 10));
        const auto figures = windows.last(seconds{60}, start + seconds{310}, counts_of(5, 10));
        CHECK(figures.span == seconds{310});
        CHECK(figures.requests == 15);
    }

    TEST_CASE("a window longer than what is kept is cut to it") {
        ratio_windows windows{start};
        auto now = start;
        for (int i = 0; i < 5000; ++i) {
            now += seconds{1};
            windows.tick(now, {});
        }
        CHECK(windows.last(std::chrono::hours{5}, now, {}).span <= seconds{605});
    }

}  // TEST_SUITE
