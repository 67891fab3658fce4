#include "tools/replay/reference.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace reprise::replay;

namespace {

const std::string traces = REPRISE_TEST_DATA "/traces/";

std::vector<reference_row> rows_of(const std::string& trace) {
    std::ifstream in{traces + "reference.csv"};
    std::vector<reference_row> out;
    for (auto& row : read_reference(in)) {
        if (row.trace == trace) {
            out.push_back(std::move(row));
        }
    }
    return out;
}

void check_every_row(const std::string& trace) {
    const auto rows = rows_of(trace);
    REQUIRE(rows.size() == 15);
    for (const auto& check : check_reference(rows, traces + trace + ".csv.zst", 1)) {
        CAPTURE(check.row.capacity);
        CAPTURE(check.row.rule);
        CAPTURE(check.row.window);
        CHECK(check.requests == check.row.requests);
        CHECK(check.misses == check.row.misses);
        CHECK(check.inserts == check.row.inserts);
        CHECK(check.insert_bytes == check.row.insert_bytes);
        CHECK(check.is_exact());
        CHECK(check.filter_is_close());
    }
}

}  // namespace

TEST_SUITE_BEGIN("replay/reference");

TEST_CASE("the proxy's LRU counts what two other simulators count on a university's requests") {
    check_every_row("bu1998");
}

TEST_CASE("the proxy's LRU counts what two other simulators count on a blog's requests") {
    check_every_row("blog2016");
}

TEST_CASE("one miss more or one byte less is not exact") {
    reference_check check{.row = {.trace = "t", .capacity = 1, .rule = "none"}};
    check.row.requests = check.requests = 10;
    check.row.misses = check.misses = 5;
    check.row.insert_bytes = check.insert_bytes = 50;
    CHECK(check.is_exact());
    check.misses = 6;
    CHECK_FALSE(check.is_exact());
    check.misses = 5;
    check.insert_bytes = 49;
    CHECK_FALSE(check.is_exact());
}

TEST_CASE("a filter's run is close within 0.2 points of misses, 2 % of bytes and 2 bytes a key") {
    reference_check check{.row = {.trace = "t", .capacity = 1, .rule = "second"}};
    check.row.requests = 1000;
    check.row.misses = check.filter_misses = 500;
    check.row.insert_bytes = check.filter_insert_bytes = 10'000;
    check.filter_bytes_a_key = 2;
    CHECK(check.filter_is_close());
    check.filter_misses = 503;
    CHECK_FALSE(check.filter_is_close());
    check.filter_misses = 502;
    CHECK(check.filter_is_close());
    check.filter_insert_bytes = 9'799;
    CHECK_FALSE(check.filter_is_close());
    check.filter_insert_bytes = 9'800;
    CHECK(check.filter_is_close());
    check.filter_bytes_a_key = 2.01;
    CHECK_FALSE(check.filter_is_close());
}

TEST_CASE("a reference that can't be read names its line") {
    std::istringstream in{"trace,capacity,rule,N,requests,misses,rmr,bmr,inserts,insert_bytes\n"
                          "a,10,none,0,1,1,1.0,1.0,1,5\n"
                          "a,ten,none,0,1,1,1.0,1.0,1,5\n"};
    std::string said;
    try {
        (void)read_reference(in);
    } catch (const std::runtime_error& error) {
        said = error.what();
    }
    CHECK(said == "line 3: \"ten\" is no number");
}

TEST_SUITE_END();
