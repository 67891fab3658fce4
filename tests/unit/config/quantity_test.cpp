#include "config/quantity.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace reprise::config;
using namespace std::chrono_literals;

namespace {

template <class T>
bool refused(const parsed<T>& answer) {
    return value_of(answer) == nullptr;
}

}  // namespace

TEST_SUITE("config/quantity") {
    TEST_CASE("a size has a unit, of 1000 or 1024") {
        CHECK(parse_size("0B") == parsed<byte_count>{0u});
        CHECK(parse_size("10KiB") == parsed<byte_count>{10240u});
        CHECK(parse_size("1MB") == parsed<byte_count>{1'000'000u});
        CHECK(parse_size("256MiB") == parsed<byte_count>{256ull << 20});
        CHECK(parse_size("1GiB") == parsed<byte_count>{1ull << 30});
        CHECK(parse_size("2TiB") == parsed<byte_count>{2ull << 40});
        CHECK(parse_size("50 GB") == parsed<byte_count>{50'000'000'000u});
        CHECK(parse_size("18446744073709551615B") ==
              parsed<byte_count>{std::numeric_limits<std::uint64_t>::max()});
        for (const auto* text : {"",
                                 "256",
                                 "MiB",
                                 "-1MiB",
                                 "+1MiB",
                                 " 1MiB",
                                 "1  MiB",
                                 "1 ",
                                 "1\tMiB",
                                 "1.5GiB",
                                 "1mib",
                                 "1M",
                                 "1MiBs",
                                 "0x10B",
                                 "18446744073709551616B",
                                 "16777216TiB",
                                 "99999999999999999999999B"}) {
            CAPTURE(text);
            CHECK(refused(parse_size(text)));
        }
    }

    TEST_CASE("a duration has a unit") {
        CHECK(parse_duration("500ms") == parsed<milliseconds>{500ms});
        CHECK(parse_duration("10s") == parsed<milliseconds>{10s});
        CHECK(parse_duration("5m") == parsed<milliseconds>{5min});
        CHECK(parse_duration("50h") == parsed<milliseconds>{50h});
        CHECK(parse_duration("2d") == parsed<milliseconds>{48h});
        CHECK(parse_duration("2 d") == parsed<milliseconds>{48h});
        CHECK(parse_duration("9223372036854775807ms") == parsed<milliseconds>{milliseconds::max()});
        for (const auto* text : {"",
                                 "10",
                                 "s",
                                 "-1s",
                                 "1.5s",
                                 "1  s",
                                 "1S",
                                 "1sec",
                                 "1w",
                                 "9223372036854775808ms",
                                 "106751991168d",
                                 "99999999999999999999s"}) {
            CAPTURE(text);
            CHECK(refused(parse_duration(text)));
        }
    }

    TEST_CASE("a percentage is a number and its sign, from 0 to 100") {
        CHECK(parse_percentage("0%") == parsed<double>{0.0});
        CHECK(parse_percentage("2%") == parsed<double>{0.02});
        CHECK(parse_percentage("2.5%") == parsed<double>{0.025});
        CHECK(parse_percentage("100%") == parsed<double>{1.0});
        for (const auto* text : {"",
                                 "%",
                                 "2",
                                 "0.02",
                                 "2 %",
                                 " 2%",
                                 "+2%",
                                 "-2%",
                                 "100.1%",
                                 "2%%",
                                 "2e0%",
                                 "nan%",
                                 "inf%",
                                 "0x2%"}) {
            CAPTURE(text);
            CHECK(refused(parse_percentage(text)));
        }
        CHECK(percentage_to_string(0) == "0%");
        CHECK(percentage_to_string(0.5) == "50%");
        for (int tenths = 0; tenths <= 1'000; ++tenths) {
            const auto text = std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + '%';
            CAPTURE(text);
            const auto read = parse_percentage(text);
            REQUIRE(value_of(read) != nullptr);
            CHECK(parse_percentage(percentage_to_string(*value_of(read))) == read);
        }
    }

    TEST_CASE("what is shown is short and parses to the same again") {
        CHECK(size_to_string(0) == "0B");
        CHECK(size_to_string(100) == "100B");
        CHECK(size_to_string(1'000'000) == "1000000B");
        CHECK(size_to_string(64 << 10) == "64KiB");
        CHECK(size_to_string(1ull << 40) == "1TiB");
        CHECK(duration_to_string(0ms) == "0s");
        CHECK(duration_to_string(1500ms) == "1500ms");
        CHECK(duration_to_string(90s) == "90s");
        CHECK(duration_to_string(24h) == "24h");
        CHECK(duration_to_string(50h) == "50h");
        CHECK(duration_to_string(240h) == "10d");
        for (std::uint64_t bits = 0; bits < 60; ++bits) {
            CAPTURE(bits);
            const auto size = (1ull << bits) * 3 / 2;
            CHECK(parse_size(size_to_string(size)) == parsed<byte_count>{size});
            const milliseconds time{size};
            CHECK(parse_duration(duration_to_string(time)) == parsed<milliseconds>{time});
        }
    }
}
