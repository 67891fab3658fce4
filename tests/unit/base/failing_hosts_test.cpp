#include "proxy/base/failing_hosts.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::test::of_failing_hosts {

namespace {

using std::chrono::seconds;

const steady_time begun_at{seconds{1'000'000}};

std::uint64_t failures_of(const failing_hosts& of, std::string_view host, steady_time now) {
    for (const auto& one : of.last_minute(now)) {
        if (one.host == host) {
            return one.failures;
        }
    }
    return 0;
}

}  // namespace

TEST_SUITE_BEGIN("base/failing_hosts");

TEST_CASE("hosts that failed are named in lower case, the most frequent first") {
    failing_hosts some;
    some.note("a.test", begun_at);
    some.note("B.test", begun_at);
    some.note("b.TEST", begun_at + seconds{1});
    const auto all = some.last_minute(begun_at + seconds{1});
    REQUIRE(all.size() == 2);
    CHECK(all[0].host == "b.test");
    CHECK(all[0].failures == 2);
    CHECK(all[1].host == "a.test");
}

TEST_CASE("a failure counts for a minute, and for ten seconds more at most") {
    for (int later = 0; later < 10; ++later) {
        CAPTURE(later);
        failing_hosts some;
        const auto at = begun_at + seconds{later};
        some.note("a.test", at);
        for (int after = 0; after <= 60; ++after) {
            CHECK(failures_of(some, "a.test", at + seconds{after}) == 1);
        }
        CHECK(failures_of(some, "a.test", at + seconds{70}) == 0);
        CHECK(failures_of(some, "a.test", at + seconds{100'000}) == 0);
    }
}

TEST_CASE("what is of a minute before is not counted with what comes after a pause") {
    failing_hosts some;
    for (const int pause : {0, 10, 20, 65, 70, 75, 140, 700, 7'000}) {
        CAPTURE(pause);
        failing_hosts one;
        one.note("a.test", begun_at);
        const auto now = begun_at + seconds{pause};
        one.note("a.test", now);
        const auto failures = failures_of(one, "a.test", now);
        CHECK(failures == (pause <= 65 ? 2 : 1));
    }
}

TEST_CASE("a host too many takes the place of the one that has not failed for longest") {
    failing_hosts some;
    for (std::size_t i = 0; i < failing_hosts::most; ++i) {
        some.note("host" + std::to_string(i), begun_at + seconds{i == 5 ? 0 : 10});
    }
    some.note("one.more", begun_at + seconds{20});
    const auto now = begun_at + seconds{20};
    CHECK(some.last_minute(now).size() == failing_hosts::most);
    CHECK(failures_of(some, "one.more", now) == 1);
    CHECK(failures_of(some, "host5", now) == 0);
    CHECK(failures_of(some, "host6", now) == 1);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::test::of_failing_hosts
