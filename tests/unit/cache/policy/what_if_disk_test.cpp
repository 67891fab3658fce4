// The ghosts of a store with a disk.

#include "tests/unit/cache/policy/what_if_rows.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string_view>

namespace reprise::proxy::cache::test::of_what_if_disk {

using filter::test::nth_key;

TEST_SUITE("cache/policy/what_if_disk") {
    TEST_CASE("with a disk a ghost has one, below memory's share of the room") {
        // Hits of `row` in what `ask` asks for, after a store of twenty objects of 500 bytes was filled.
        const auto hits = [](const what_if_setup& setup, std::string_view row, auto ask) {
            what_if ghosts{setup, start, 1};
            for (std::uint64_t n = 100; n < 120; ++n) {
                for (int times = 0; times < 3; ++times) {
                    ghosts.note(nth_key(1, n), 500, start);
                }
            }
            const auto before = ghosts.report(start);
            ask(ghosts);
            const auto after = ghosts.report(start);
            const auto count = [row](const what_if_report& in) {
                return row_of(in, row).hit_ratio * static_cast<double>(in.requests);
            };
            return std::lround(count(after) - count(before));
        };
        const auto all_again = [](what_if& ghosts) {
            for (std::uint64_t n = 100; n < 120; ++n) {
                ghosts.note(nth_key(1, n), 500, start);
            }
        };
        const auto new_ones = [](what_if& ghosts) {
            for (int times = 0; times < 2; ++times) {
                for (std::uint64_t n = 0; n < 12; ++n) {
                    ghosts.note(nth_key(1, n), 500, start);
                }
            }
        };
        constexpr auto waits = "second-hit with probation 100%";
        const what_if_setup one{.capacity = 10'000};
        what_if_setup two{.capacity = 10'000, .largest_in_memory = 1'000, .memory_share = 0.2};
        CHECK(hits(one, waits, all_again) == 20);
        CHECK(hits(two, waits, all_again) == 20);  // 4 in memory, 16 on disk
        CHECK(hits(one, waits, new_ones) == 12);
        CHECK(hits(two, waits, new_ones) ==
              0);  // 4 wait, and have left when they are asked for again
    }

    TEST_CASE("what is too large for memory goes to the disk at once, if it is admitted") {
        what_if ghosts{
            {.capacity = 10'000, .largest_in_memory = 1'000, .memory_share = 0.2}, start, 1};
        for (int times = 0; times < 4; ++times) {
            ghosts.note(nth_key(1, 1), 1'500, start);
            ghosts.note(nth_key(1, 2), 2'001, start);  // too large for a quarter of the disk
        }
        const auto report = ghosts.report(start);
        CHECK(row_of(report, "always").hit_ratio == doctest::Approx(3.0 / 8));
        CHECK(row_of(report, "second-hit").hit_ratio == doctest::Approx(2.0 / 8));
        CHECK(row_of(report, "second-hit with probation 100%").hit_ratio ==
              doctest::Approx(2.0 / 8));
    }

    TEST_CASE("what a ghost's disk is written is told, and what it turns away is not") {
        what_if ghosts{{.capacity = 10'000, .memory_share = 0.2}, start, 1};
        const auto written = [&](std::string_view row) {
            return row_of(ghosts.report(start), row).written_bytes;
        };
        for (std::uint64_t n = 0; n < 20; ++n) {
            ghosts.note(nth_key(1, n), 500, start);
        }
        // While a sixteenth is free it takes first requests too.
        CHECK(written("always") == 8'000);
        CHECK(written("second-hit with probation 100%") == 7'500);
        CHECK(written("second-hit") == 0);
        for (std::uint64_t n = 100; n < 200; ++n) {
            ghosts.note(nth_key(1, n), 500, start);
        }
        // All were asked for once: but for one, by which it is found out what what is there is worth.
        CHECK(written("always") == 8'500);
        CHECK(written("second-hit with probation 100%") == 7'500);
    }
}

}  // namespace reprise::proxy::cache::test::of_what_if_disk
