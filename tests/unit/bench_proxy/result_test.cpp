#include "tools/bench_proxy/result.hpp"

#include <doctest/doctest.h>

namespace reprise::bench::test::of_result {

namespace {

result small_result() {
    result out;
    out.date = "2026-11-23T22:10:05Z";
    out.commit = "abc";
    out.form = "whole";
    out.machine = "one";
    out.rows = {{.name = "a", .unit = "x", .rounds = {1, 2, 3}, .goal = 1.5, .grain = 0.1},
                {.name = "b", .unit = "us", .rounds = {4}, .judged = false}};
    out.skipped = {"c: nobody is there"};
    out.notes = {"a: in words"};
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("bench_proxy/result");

TEST_CASE("the median of an even number is the mean of the middle two") {
    CHECK(median_of({3, 1, 2}) == 2);
    CHECK(median_of({4, 1, 2, 3}) == doctest::Approx{2.5});
    CHECK(median_of({}) == 0);
}

TEST_CASE("a result is read as it was written") {
    const auto read = result_from(nlohmann::json::parse(to_json(small_result()).dump()));
    CHECK(read.date == "2026-11-23T22:10:05Z");
    CHECK(read.machine == "one");
    CHECK(read.skipped == small_result().skipped);
    REQUIRE(read.rows.size() == 2);
    CHECK(read.rows[0].rounds == std::vector<double>{1, 2, 3});
    CHECK(read.rows[0].goal == 1.5);
    CHECK(read.rows[0].grain == 0.1);
    CHECK(read.rows[0].commit == "abc");
    CHECK_FALSE(read.rows[1].goal.has_value());
    CHECK_FALSE(read.rows[1].judged);
}

TEST_CASE("what is no result is refused") {
    CHECK_THROWS(result_from(nlohmann::json::parse(R"({"rows": []})")));
    CHECK_THROWS(result_from(nlohmann::json::parse("[]")));
}

TEST_CASE("rows that were measured anew take the place of theirs, and say when") {
    auto newer = small_result();
    newer.date = "2026-11-24T01:00:00Z";
    newer.commit = "def";
    newer.rows = {{.name = "b", .unit = "us", .rounds = {5}},
                  {.name = "d", .unit = "us", .rounds = {6}}};
    const auto both = merged(small_result(), newer);
    REQUIRE(both.rows.size() == 3);
    CHECK(both.find("a")->rounds == std::vector<double>{1, 2, 3});
    CHECK(both.find("a")->commit == "abc");
    CHECK(both.find("b")->rounds == std::vector<double>{5});
    CHECK(both.find("b")->commit == "def");
    CHECK(both.find("d")->date == "2026-11-24T01:00:00Z");
    CHECK(both.date == "2026-11-24T01:00:00Z");
    CHECK(both.notes == std::vector<std::string>{"a: in words"});
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_result
