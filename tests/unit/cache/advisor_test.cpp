#include "proxy/cache/advisor.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

namespace reprise::proxy::cache::test::of_advisor {

using config::admission_policy;
using filter::test::nth_key;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr wall_time wall{std::chrono::hours{500'000}};
constexpr steady_time start{std::chrono::hours{1'000}};

config::options with_policy(admission_policy policy) {
    config::options options;
    options.memory.size = 16u << 20;
    options.admission.choice = {policy, 2};
    return options;
}

/// A minute in which everything is asked for exactly twice, so that admission costs every hit, but
/// for a tenth that is asked for once, so that storing all of it writes more than probation does.
void a_minute(advisor& one, std::uint64_t which) {
    const auto now = start + minutes{which};
    for (std::uint64_t n = 0; n < 10'000; ++n) {
        const auto key = nth_key(1 + which, n);
        one.note(key, 500, now + std::chrono::milliseconds{n});
        if (n % 10 != 0) {
            one.note(key, 500, now + std::chrono::milliseconds{n + 50});
        }
    }
}

struct all {
    explicit all(const config::options& options) : gate{options, wall}, one{options, start} {}
    void housekeep(std::uint64_t minute) {
        for (unsigned second = 0; second < 60; second += 10) {
            const auto next = one.housekeep(gate, start + minutes{minute} + seconds{second});
            told = next ? next : told;
        }
    }
    admission_gate gate;
    std::optional<advisor::tuning> told{};
    advisor one;
};

}  // namespace

TEST_SUITE("cache/advisor") {
    TEST_CASE("auto changes to what is better, at a minute's look, and rests there") {
        all a{with_policy(admission_policy::automatic)};
        CHECK(a.gate.obeyed().policy == admission_policy::second_hit);
        CHECK(a.gate.probation() == 0);
        a.one.note(nth_key(1, 1), 500, start);
        a.housekeep(0);
        CHECK_FALSE(a.told);
        std::uint64_t minute = 0;
        a_minute(a.one, minute++);
        a.housekeep(minute);
        CHECK(a.gate.probation() > 0);
        const auto ruling = a.gate.peek(nth_key(99, 1), {{admission_policy::automatic, 2}});
        CHECK_FALSE(ruling.admitted);
        CHECK(ruling.may_wait);
        CHECK(ruling.policy == admission_policy::second_hit);
        // It is measured anew from then on.
        CHECK(a.one.report(start + minutes{minute}).requests == 0);
        const auto chosen = a.gate.probation();
        for (const auto end = minute + 20; minute < end;) {
            a_minute(a.one, minute++);
            a.housekeep(minute);
        }
        CHECK(a.gate.probation() == chosen);
        CHECK(a.one.report(start + minutes{minute}).text.starts_with("admission costs little"));
    }

    TEST_CASE("frozen, auto goes on telling and changes nothing, until it is let go") {
        auto options = with_policy(admission_policy::automatic);
        options.admission.frozen = true;
        all a{options};
        std::uint64_t minute = 0;
        while (minute < 8) {
            a_minute(a.one, minute++);
            a.housekeep(minute);
        }
        CHECK_FALSE(a.told);
        CHECK(a.gate.probation() == 0);
        CHECK(a.one.report(start + minutes{minute}).advice);
        CHECK(a.one.report(start + minutes{minute}).automatic.starts_with("frozen at second-hit"));
        options.admission.frozen = false;
        a.gate.adopt(options);
        a.one.adopt(options, a.gate, start + minutes{minute});
        a_minute(a.one, minute++);
        a.housekeep(minute);
        CHECK(a.told);
        CHECK(a.gate.probation() > 0);
        CHECK(a.one.report(start + minutes{minute}).automatic.starts_with("second-hit with"));
    }

    TEST_CASE(
        "by default with a disk auto may leave probation, but not what is written in settings") {
        auto options = with_policy(admission_policy::automatic);
        options.admission.probation = 1;
        admission_gate by_default{options, wall};
        CHECK(by_default.probation() == 1);
        by_default.obey({admission_policy::second_hit, 2}, 0.02);
        CHECK(by_default.probation() == 0.02);
        options.admission.has_probation = {true};
        admission_gate as_written{options, wall};
        as_written.obey({admission_policy::second_hit, 2}, 0.02);
        CHECK(as_written.probation() == 1);
    }

    TEST_CASE(
        "where what is written forbids the best admission, auto finds the best exponent still") {
        auto options = with_policy(admission_policy::automatic);
        options.memory.policy = eviction_kind::gdsf;
        options.memory.size = 400'000;
        options.admission.probation = 1;
        options.admission.has_probation = {true};
        all a{options};
        REQUIRE(a.one.exponent() == 1);
        // A scan of small objects beside larger ones that are popular: best would be that it gets no
        // room at all, next best that size counts for less.
        std::mt19937_64 random{8};
        std::uint64_t fresh = 0;
        for (std::uint64_t minute = 0; minute < 3 && !a.told;) {
            const auto now = start + minutes{minute};
            for (std::uint64_t n = 0; n < 20'000; ++n) {
                const auto at = now + std::chrono::milliseconds{n};
                if (const auto popular = random() % 300; n % 3 == 0) {
                    a.one.note_charged(nth_key(1, popular), popular % 4 == 0 ? 2'000 : 1'500, at);
                } else {
                    a.one.note_charged(nth_key(2, fresh++), 400, at);
                }
            }
            a.housekeep(++minute);
        }
        REQUIRE(a.told);
        CHECK(a.told->exponent < 1);
        CHECK(a.one.exponent() == a.told->exponent);
        CHECK(a.told->probation == 1);
        CHECK(a.gate.obeyed().policy == admission_policy::second_hit);
    }

    TEST_CASE("with gdsf auto changes the exponent too, and a fixed policy has its own") {
        auto options = with_policy(admission_policy::automatic);
        options.memory.policy = eviction_kind::gdsf;
        options.memory.size = 8u << 20;
        options.caching.objective = config::caching_objective::bytes;
        all a{options};
        REQUIRE(a.one.exponent() == 0.05);
        // Few large objects push out what many small ones would be hits of, but for bytes.
        options.caching.objective = config::caching_objective::requests;
        options.disk.path = "(none)";
        options.disk.size = 1;
        all b{options};
        REQUIRE(b.one.exponent() == 0.3);
        std::mt19937_64 random{5};
        for (std::uint64_t minute = 0; minute < 30 && b.one.exponent() == 0.3;) {
            const auto now = start + minutes{minute};
            for (std::uint64_t n = 0; n < 20'000; ++n) {
                const bool large = n % 4 == 0;
                b.one.note(nth_key(large ? 2 : 3, random() % (large ? 1'500 : 6'000)),
                           large ? 40'000 : 1'000,
                           now + std::chrono::milliseconds{n});
            }
            b.housekeep(++minute);
        }
        CHECK(b.one.exponent() >= 0.5);
        REQUIRE(b.told);
        CHECK(b.told->exponent == b.one.exponent());
        CHECK(b.one.report(start + minutes{60}).exponent == b.one.exponent());
        options.admission.choice = {admission_policy::second_hit, 2};
        b.gate.adopt(options);
        b.one.adopt(options, b.gate, start + minutes{31});
        CHECK(b.one.exponent() == 0.3);
        CHECK(b.one.report(start + minutes{31}).automatic.starts_with("not in use"));
        // In memory alone and for requests it begins where small objects count most.
        options.disk = {};
        options.admission.choice = {admission_policy::automatic, 2};
        CHECK(all{options}.one.exponent() == 1);
    }

    TEST_CASE("traffic of some hundred requests an hour is decided on too") {
        // One every 36 s; all but a tenth come twice, soon.
        all a{with_policy(admission_policy::automatic)};
        std::uint64_t n = 0;
        for (std::uint64_t minute = 0; minute < 4'000 && !a.told; ++minute, ++n) {
            a.one.note(nth_key(1, n), 500, start + minutes{minute});
            if (n % 10 != 0) {
                a.one.note(nth_key(1, n), 500, start + minutes{minute} + seconds{36});
            }
            a.housekeep(minute + 1);
        }
        CHECK(a.told);
        CHECK(2 * n >= what_if::least_evidence);
        CHECK(n < 1'500);
    }

    TEST_CASE("any other policy is advised, and stays") {
        all a{with_policy(admission_policy::second_hit)};
        for (std::uint64_t minute = 0; minute < 12;) {
            a_minute(a.one, minute++);
            a.housekeep(minute);
        }
        CHECK(a.one.report(start + minutes{12}).advice);
        CHECK(a.gate.probation() == 0);
        CHECK_FALSE(a.gate.peek(nth_key(99, 1), {{admission_policy::second_hit, 2}}).may_wait);
    }

    TEST_CASE("a reload that changes what is in force begins the measuring anew") {
        auto options = with_policy(admission_policy::second_hit);
        all a{options};
        a_minute(a.one, 0);
        REQUIRE(a.one.report(start + minutes{1}).requests > 0);
        options.log.level = config::log_level::debug;
        a.gate.adopt(options);
        a.one.adopt(options, a.gate, start + minutes{1});
        CHECK(a.one.report(start + minutes{1}).requests > 0);
        options.admission.probation = 0.05;
        a.gate.adopt(options);
        a.one.adopt(options, a.gate, start + minutes{1});
        CHECK(a.gate.probation() == 0.05);
        CHECK(a.one.report(start + minutes{1}).requests == 0);
    }

    TEST_CASE("where everything is stored, another probation is nothing to measure anew") {
        auto options = with_policy(admission_policy::always);
        all a{options};
        a_minute(a.one, 0);
        const auto requests = a.one.report(start + minutes{1}).requests;
        REQUIRE(requests > 0);
        options.admission.probation = 0.05;
        a.gate.adopt(options);
        a.one.adopt(options, a.gate, start + minutes{1});
        CHECK(a.one.report(start + minutes{1}).requests == requests);
    }

    TEST_CASE("what auto chose goes with it when another policy is set") {
        auto options = with_policy(admission_policy::automatic);
        all a{options};
        a.gate.obey({admission_policy::always, 2}, 0.1);
        CHECK(a.gate.probation() == 0.1);
        options.admission.choice = {admission_policy::second_hit, 2};
        a.gate.adopt(options);
        CHECK(a.gate.probation() == 0);
        options.admission.choice = {admission_policy::automatic, 2};
        a.gate.adopt(options);
        CHECK(a.gate.probation() == 0.1);
        CHECK(a.gate.peek(nth_key(1, 1), {options.admission.choice}).admitted);
    }
}

}  // namespace reprise::proxy::cache::test::of_advisor
