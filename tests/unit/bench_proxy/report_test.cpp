#include "tools/bench_proxy/report.hpp"

#include <doctest/doctest.h>

namespace reprise::bench::test::of_report {

TEST_SUITE_BEGIN("bench_proxy/report");

TEST_CASE("of a kernel's release the result keeps two numbers") {
    CHECK(short_release("6.18.44-name") == "6.18");
    CHECK(short_release("6.1-2-amd64") == "6.1");
    CHECK(short_release("6.1") == "6.1");
    CHECK(short_release("7") == "7");
    CHECK(this_machine().find("Linux ") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_report
