#include "tools/bench_proxy/plan.hpp"

#include <doctest/doctest.h>

namespace reprise::bench::test::of_plan {

TEST_SUITE_BEGIN("bench_proxy/plan");

TEST_CASE("without a choice every row is wanted") {
    const plan all;
    CHECK(all.wants("costs", "hit1k"));
    CHECK(all.wants_any("costs", {"hit"}));
}

TEST_CASE("a part's name wants all of its rows, and no other part's") {
    plan some;
    some.only = {"costs"};
    CHECK(some.wants("costs", "hit1k"));
    CHECK(some.wants_any("costs", {"hit", "miss"}));
    CHECK_FALSE(some.wants("memory", "idle connection"));
    CHECK_FALSE(some.wants_any("memory", {"idle"}));
}

TEST_CASE("the beginning of a row's name wants the row, and its part has something to do") {
    plan some;
    some.only = {"hit1k", "tail q"};
    CHECK(some.wants("costs", "hit1k"));
    CHECK_FALSE(some.wants("costs", "hits1000"));
    CHECK(some.wants_any("costs", {"hit", "miss"}));
    CHECK_FALSE(some.wants_any("costs", {"miss"}));
    CHECK(some.wants("tails", "tail quiet"));
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_plan
