#include "tools/replay/setup.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace reprise::replay;

TEST_SUITE_BEGIN("replay/setup");

TEST_CASE("a policy is read as it is printed") {
    for (const auto* name :
         {"lru", "sieve", "s3-fifo", "w-tinylfu", "gdsf", "gdsf:0.4", "gdsf:1", "lfu-da", "arc", "lhd"}) {
        CAPTURE(name);
        const auto read = policy_choice_of(name);
        REQUIRE(read.has_value());
        CHECK(to_string(*read) == name);
    }
    for (const auto* name : {"", "fifo", "gdsf:", "gdsf:2", "gdsf:-1", "gdsf:x", "lru:1"}) {
        CAPTURE(name);
        CHECK_FALSE(policy_choice_of(name).has_value());
    }
}

TEST_CASE("an admission rule is read as it is printed") {
    for (const auto* name : {"always",
                             "second-hit",
                             "nth-hit:3",
                             "tinylfu",
                             "exact-second",
                             "window:50000",
                             "window:5%",
                             "window:0.5%"}) {
        CAPTURE(name);
        const auto read = admission_choice_of(name);
        REQUIRE(read.has_value());
        CHECK(to_string(*read) == name);
    }
    for (const auto* name : {"",
                             "never?",
                             "nth-hit",
                             "nth-hit:1",
                             "nth-hit:99",
                             "window",
                             "window:x",
                             "window:0%",
                             "always:2"}) {
        CAPTURE(name);
        CHECK_FALSE(admission_choice_of(name).has_value());
    }
}

TEST_CASE("sizes are bytes with a unit, or a share of the unique bytes") {
    CHECK(cache_size_of("1GiB")->bytes == 1u << 30);
    CHECK(cache_size_of("1.5K")->bytes == 1536);
    CHECK(cache_size_of("500")->bytes == 500);
    CHECK(cache_size_of("1%")->resolved(212'868'867) == 2'128'688);
    CHECK(cache_size_of("0.1%")->resolved(258'368) == 258);
    CHECK(to_string(*cache_size_of("10%")) == "10%");
    CHECK(to_string(*cache_size_of("1.5GiB")) == "1.50GiB");
    for (const auto* text : {"", "0", "-1", "x", "1XB", "GiB", "0%", "99999999999TiB", "%"}) {
        CAPTURE(text);
        CHECK_FALSE(cache_size_of(text).has_value());
    }
}

TEST_CASE("sizes have the units that settings have, with a space or without") {
    CHECK(cache_size_of("50GB")->bytes == 50'000'000'000);
    CHECK(cache_size_of("50 GB")->bytes == 50'000'000'000);
    CHECK(cache_size_of("1 TiB")->bytes == std::uint64_t{1} << 40);
    CHECK(cache_size_of("100 B")->bytes == 100);
    CHECK(cache_size_of("7MB")->bytes == 7'000'000);
    CHECK(cache_size_of("1.5 GB")->bytes == 1'500'000'000);
    CHECK(cache_size_of("2.5KiB")->bytes == 2560);
    CHECK(cache_size_of("2T")->bytes == std::uint64_t{2} << 40);
    for (const auto* text :
         {"50  GB", "50 ", " 50GB", "50gb", "50 G B", "1e3", "0B", "0.5B", "16777216TiB", "5iB"}) {
        CAPTURE(text);
        CHECK_FALSE(cache_size_of(text).has_value());
    }
}

TEST_CASE("shares are percentages up to the whole") {
    CHECK(share_of("2%") == 0.02);
    CHECK(share_of("0%") == 0);
    CHECK(share_of("100%") == 1);
    for (const auto* text : {"", "2", "-1%", "101%", "nan%", "x%"}) {
        CAPTURE(text);
        CHECK_FALSE(share_of(text).has_value());
    }
}

TEST_SUITE_END();
