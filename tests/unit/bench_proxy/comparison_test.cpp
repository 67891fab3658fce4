#include "tools/bench_proxy/comparison.hpp"

#include <doctest/doctest.h>

namespace reprise::bench::test::of_comparison {

namespace {

row row_of(std::vector<double> rounds, double grain = 0) {
    return {.name = "hit1k / bare", .unit = "x", .rounds = std::move(rounds), .grain = grain};
}

}  // namespace

TEST_SUITE_BEGIN("bench_proxy/comparison");

TEST_CASE("more than 5 % above, with all rounds above, is worse") {
    CHECK(compare(row_of({1.36, 1.34, 1.35, 1.38, 1.33}), row_of({1.25, 1.24, 1.26, 1.23, 1.25})) ==
          verdict::worse);
}

TEST_CASE("less than 5 % above is the same, however well the rounds agree") {
    CHECK(compare(row_of({1.30, 1.30, 1.30}), row_of({1.25, 1.25, 1.25})) == verdict::same);
}

TEST_CASE("one lucky round and one unlucky one do not hide a change that the others show") {
    CHECK(compare(row_of({1.36, 1.34, 1.10, 1.38, 1.33}), row_of({1.25, 1.24, 1.60, 1.23, 1.25})) ==
          verdict::worse);
}

TEST_CASE("a median above, of rounds that overlap, is unclear") {
    CHECK(compare(row_of({1.20, 1.22, 1.40, 1.45, 1.50}), row_of({1.10, 1.25, 1.25, 1.30, 1.35})) ==
          verdict::unclear);
}

TEST_CASE("of few rounds none is left out as lucky") {
    CHECK(compare(row_of({1.5, 1.5, 1.1}), row_of({1.2, 1.2, 1.2})) == verdict::unclear);
    CHECK(compare(row_of({1.5}), row_of({1.2})) == verdict::worse);
}

TEST_CASE("a difference below the grain of either row is none") {
    CHECK(compare(row_of({0.09}, 0.05), row_of({0.05})) == verdict::same);
    CHECK(compare(row_of({0.09}), row_of({0.05}, 0.05)) == verdict::same);
    CHECK(compare(row_of({0.11}, 0.05), row_of({0.05})) == verdict::worse);
}

TEST_CASE("less than 5 % below with rounds that agree is better") {
    CHECK(compare(row_of({1.0, 1.1, 1.05}), row_of({1.25, 1.2, 1.3})) == verdict::better);
    CHECK(compare(row_of({1.0, 1.1, 1.25}), row_of({1.25, 1.2, 1.3})) == verdict::same);
}

TEST_CASE("what is not judged is never worse") {
    auto told = row_of({2.0});
    told.judged = false;
    CHECK(compare(told, row_of({1.0})) == verdict::same);
}

TEST_CASE("a kept row that a whole run does not have is named, one that is new is no verdict") {
    result now, kept;
    now.rows = {row_of({1.0})};
    kept.rows = {row_of({1.0})};
    kept.rows.front().name = "gone";
    const auto all = compare(now, kept, true);
    REQUIRE(all.size() == 2);
    CHECK(all[0].said == verdict::no_row);
    CHECK(all[1].name == "gone");
    CHECK(all[1].said == verdict::no_row);
    CHECK(compare(now, kept, false).size() == 1);
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_comparison
