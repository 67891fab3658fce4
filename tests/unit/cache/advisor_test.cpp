#include "proxy/cache/advisor.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

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
    explicit all(const config::options& options)
        : gate{options, wall},
          store{options.memory.size},
          one{options, start} {}
    void housekeep(std::uint64_t minute) {
        for (unsigned second = 0; second < 60; second += 10) {
            one.housekeep(gate, store, start + minutes{minute} + seconds{second});
        }
    }
    admission_gate gate;
    memory_tier store;
    advisor one;
};

}  // namespace

TEST_SUITE("cache/advisor") {
    TEST_CASE("auto changes to what was advised often enough, and no sooner") {
        all a{with_policy(admission_policy::automatic)};
        CHECK(a.gate.obeyed().policy == admission_policy::second_hit);
        CHECK(a.gate.probation() == 0);
        std::uint64_t minute = 0;
        while (a.gate.probation() == 0 && minute < 20) {
            CHECK(minute <= what_if::patience + 1);
            a_minute(a.one, minute++);
            a.housekeep(minute);
        }
        CHECK(minute >= what_if::patience);
        CHECK(a.gate.probation() > 0);
        const auto ruling = a.gate.peek(nth_key(99, 1), {{admission_policy::automatic, 2}});
        CHECK_FALSE(ruling.admitted);
        CHECK(ruling.may_wait);
        CHECK(ruling.policy == admission_policy::second_hit);
        // It is measured anew from then on.
        CHECK(a.one.report(start + minutes{minute}).requests == 0);
        for (const auto end = minute + 4; minute < end;) {
            a_minute(a.one, minute++);
            a.housekeep(minute);
        }
        CHECK(a.one.report(start + minutes{minute}).text.starts_with("admission costs little"));
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
