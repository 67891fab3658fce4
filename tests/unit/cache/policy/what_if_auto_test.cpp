// What the ghosts say for "auto": what to change to, from how much evidence, and that it comes to rest.
// Who puts it in force is tested in tests/unit/cache/advisor_test.cpp.

#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/what_if.hpp"
#include "tests/unit/cache/policy/what_if_requests.hpp"
#include "tests/unit/cache/policy/what_if_rows.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

namespace reprise::proxy::cache::test::of_what_if_auto {

using filter::test::nth_key;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_SUITE("cache/policy/what_if_auto") {
    TEST_CASE("auto follows what is better beyond chance, and no ghost begins cold for it") {
        std::vector<std::uint64_t> keys;
        for (std::uint64_t n = 0; n < 5'000; ++n) {
            keys.push_back(n);
            keys.push_back(n);
        }
        what_if_setup setup{.capacity = 1'000'000};
        what_if ghosts{setup, start, 1};
        play(ghosts, {keys.begin(), keys.begin() + 2'000});
        CHECK_FALSE(ghosts.decide(start));  // as clear as it is
        play(ghosts, {keys.begin() + 2'000, keys.end()}, 1'000, start + seconds{8});
        auto now = start + minutes{1};
        const auto advice = ghosts.decide(now);
        REQUIRE(advice);
        CHECK(advice->gain == doctest::Approx(0.5).epsilon(0.01));
        CHECK(advice->of_misses == doctest::Approx(0.5).epsilon(0.01));
        setup.admission = advice->admission;
        ghosts.set(setup, now);
        CHECK(ghosts.report(now).requests == 0);
        CHECK_FALSE(ghosts.decide(now));
        // The ghost that was right goes on with what it holds.
        ghosts.note(nth_key(1, 4'999), 1'000, now);
        const auto after = ghosts.report(now);
        CHECK(row_of(after, to_string(advice->admission)).in_force);
        CHECK(row_of(after, to_string(advice->admission)).hit_ratio == 1);
        // So do the others, as the store does.
        CHECK(row_of(after, "x2", what_if_row::group::size).hit_ratio == 1);
    }

    TEST_CASE("a ghost with less probation than is allowed is not advised, and hides no other") {
        // A scan beside what is popular: the less room what waits has, the better.
        std::mt19937_64 random{6};
        std::vector<std::uint64_t> keys;
        for (std::uint64_t n = 0; n < 20'000; ++n) {
            keys.push_back(n % 2 == 0 ? random() % 100 : 1'000 + n);
        }
        what_if ghosts{
            {.capacity = 100'000, .policy = eviction_kind::lru, .admission = {.probation = 1}},
            start,
            1};
        play(ghosts, keys);
        const auto now = start + minutes{1};
        const auto freely = ghosts.decide(now);
        REQUIRE(freely);
        CHECK(freely->admission.probation < 0.1);
        const auto above = ghosts.decide(now, 0.1);
        REQUIRE(above);
        CHECK(above->admission.probation == 0.1);
        // What is left is to store everything, which is no better.
        CHECK_FALSE(ghosts.decide(now, 1));
    }

    TEST_CASE(
        "storing everything is advised whatever probation is allowed, for nothing waits then") {
        // Each twice, with sixty others in between: what waits in a tenth of the room has left
        // before its second request.
        std::vector<std::uint64_t> keys;
        for (std::uint64_t n = 30; n < 10'000; ++n) {
            keys.push_back(n);
            keys.push_back(n - 30);
        }
        what_if ghosts{
            {.capacity = 100'000, .policy = eviction_kind::lru, .admission = {.probation = 0.1}},
            start,
            1};
        play(ghosts, keys);
        const auto advice = ghosts.decide(start + minutes{1}, 0.5);
        REQUIRE(advice);
        CHECK((advice->admission.what == admission_variant::kind::always ||
               advice->admission.probation == 1));
    }

    TEST_CASE("however requests alternate, auto comes to rest") {
        // In turn some thousands that everything be admitted for (twice each, soon), and as many that
        // nothing new may be admitted for (a scan beside what is popular).
        for (const std::uint64_t period : {3'000, 10'000, 40'000}) {
            CAPTURE(period);
            what_if_setup setup{.capacity = 100'000};
            what_if ghosts{setup, start, 1};
            const auto requests = std::min<std::uint64_t>(800'000, 50 * period);
            std::uint64_t steps = 0, late = 0, fresh = 1'000;
            std::mt19937_64 random{period};
            for (std::uint64_t i = 0; i < requests; ++i) {
                const auto now = start + seconds{i / 100};
                const bool soon = i / period % 2 == 0;
                const auto key = soon ? 1'000'000 + i / 2 : i % 2 == 0 ? random() % 100 : ++fresh;
                ghosts.note(nth_key(soon ? 1 : 2, key), 1'000, now);
                if (i % 1'000 == 0) {
                    if (const auto next = ghosts.decide(now)) {
                        setup.admission = next->admission;
                        ghosts.set(setup, now);
                        ++steps;
                        late += i > requests / 2 ? 1 : 0;
                    }
                }
            }
            CHECK(steps <= 8);  // 12 of the slowest, if steps did not grow dear
            CHECK(late == 0);
        }
    }

    TEST_CASE("of the exponents the best is taken at once, wherever it is on the ladder") {
        // Few large objects push out what many small ones would be hits of.
        what_if_setup setup{.capacity = 8'000'000,
                            .policy = eviction_kind::gdsf,
                            .exponent = 0,
                            .admission = {.probation = 1}};
        what_if ghosts{setup, start, 1};
        std::mt19937_64 random{8};
        for (std::uint64_t n = 0; n < 40'000; ++n) {
            const bool large = n % 4 == 0;
            ghosts.note(nth_key(large ? 2 : 3, random() % (large ? 1'500 : 6'000)),
                        large ? 40'000 : 1'000,
                        start + std::chrono::milliseconds{n});
        }
        const auto first = ghosts.decide(start + minutes{1});
        REQUIRE(first);
        CHECK(first->exponent == 1);
        CHECK(first->admission == setup.admission);
    }
}

}  // namespace reprise::proxy::cache::test::of_what_if_auto
