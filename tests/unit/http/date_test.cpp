#include "proxy/http/date.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::http {

namespace {

using namespace std::chrono_literals;

std::string written(wall_time when) {
    const auto text = format_date(when);
    return {text.data(), text.size()};
}

wall_time day(int year, unsigned month, unsigned day_of_month) {
    return std::chrono::sys_days{std::chrono::year{year} / static_cast<int>(month) /
                                 static_cast<int>(day_of_month)};
}

TEST_SUITE("http/date") {
    TEST_CASE("all three forms name the same moment") {
        for (const auto* text : {"Sun, 06 Nov 1994 08:49:37 GMT",
                                 "Sunday, 06-Nov-94 08:49:37 GMT",
                                 "Sun Nov  6 08:49:37 1994"}) {
            CAPTURE(text);
            CHECK(parse_date(text, day(2000, 1, 1)) == sunday);
        }
    }

    TEST_CASE("letter case does not matter") {
        for (const auto* text : {"SUN, 06 NOV 1994 08:49:37 gMT",
                                 "sunday, 06-nov-94 08:49:37 gmt",
                                 "sun nov  6 08:49:37 1994"}) {
            CAPTURE(text);
            CHECK(parse_date(text, day(2000, 1, 1)) == sunday);
        }
    }

    TEST_CASE("what is not exactly one of the forms is no date") {
        for (const auto* text : {"",
                                 "0",
                                 "-1",
                                 "784111777",
                                 "Thu, 18 Aug 2050 02:01:18 UTC",
                                 "Thu, 18 Aug 2050 02:01:18 AEST",
                                 "Thu, 18 Aug 2050 02:01:18 +0000",
                                 "Thu, 18 Aug 2050 02:01:18",
                                 "Thu, 18 Aug 50 02:01:18 GMT",
                                 "Thu 18 Aug 2050 02:01:18 GMT",
                                 "Thu, 18  Aug  2050 02:01:18 GMT",
                                 "Thu, 18-Aug-2050 02:01:18 GMT",
                                 "Thu, 18 Aug 2050 02.01.18 GMT",
                                 "Thu, 18 Aug 2050 2:01:18 GMT",
                                 "Thu, 8 Aug 2050 02:01:18 GMT",
                                 "Thursday, 18 Aug 2050 02:01:18 GMT",
                                 "Thu, 18 August 2050 02:01:18 GMT",
                                 "Thx, 18 Aug 2050 02:01:18 GMT",
                                 "Thu, 18 Aug 2050 02:01:18 GMT ",
                                 " Thu, 18 Aug 2050 02:01:18 GMT",
                                 "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:19 GMT",
                                 "Thu, 18 Aug 2050 -2:01:18 GMT",
                                 "Thu, 18 Aug +050 02:01:18 GMT",
                                 "Thu, 18-Aug-50 02:01:18 GMT",
                                 "Sun Nov 6 08:49:37 1994",
                                 "Sun Nov  6 08:49:37 94",
                                 "Sun Nov  6 08:49:37 1994 GMT"}) {
            CAPTURE(text);
            CHECK_FALSE(parse_date(text, sunday));
        }
    }

    TEST_CASE("a date that no calendar has is no date") {
        for (const auto* text : {"Sun, 00 Nov 1994 08:49:37 GMT",
                                 "Sun, 31 Nov 1994 08:49:37 GMT",
                                 "Mon, 29 Feb 1999 00:00:00 GMT",
                                 "Mon, 29 Feb 1900 00:00:00 GMT",
                                 "Sun, 06 Nov 1994 24:00:00 GMT",
                                 "Sun, 06 Nov 1994 08:60:37 GMT",
                                 "Sun, 06 Nov 1994 08:49:61 GMT",
                                 "Sun Nov  0 08:49:37 1994"}) {
            CAPTURE(text);
            CHECK_FALSE(parse_date(text, sunday));
        }
        CHECK(parse_date("Tue, 29 Feb 2000 00:00:00 GMT", sunday) == day(2000, 2, 29));
    }

    TEST_CASE("a leap second reads as the second before it") {
        CHECK(parse_date("Sat, 31 Dec 2016 23:59:60 GMT", sunday) == day(2017, 1, 1) - 1s);
    }

    TEST_CASE("the name of the day need not fit the date") {
        CHECK(parse_date("Mon, 06 Nov 1994 08:49:37 GMT", sunday) == sunday);
    }

    TEST_CASE("asctime takes a day of two digits") {
        CHECK(parse_date("Wed Nov 16 08:49:37 1994", sunday) == sunday + 240h);
    }

    TEST_CASE("a two-digit year lies at most 50 years ahead") {
        struct row {
            const char* text;
            wall_time now, expected;
        };
        const row rows[] = {
            {"Thursday, 18-Aug-50 00:00:00 GMT", day(2026, 11, 20), day(2050, 8, 18)},
            {"Thursday, 18-Aug-77 00:00:00 GMT", day(2026, 11, 20), day(1977, 8, 18)},
            {"Thursday, 20-Nov-76 00:00:00 GMT", day(2026, 11, 20), day(2076, 11, 20)},
            {"Thursday, 20-Nov-76 00:00:01 GMT", day(2026, 11, 20), day(1976, 11, 20) + 1s},
            {"Thursday, 01-Jan-05 00:00:00 GMT", day(2099, 6, 1), day(2105, 1, 1)},
            {"Thursday, 01-Jan-00 00:00:00 GMT", day(1999, 12, 31), day(2000, 1, 1)},
            {"Thursday, 29-Feb-00 00:00:00 GMT", day(2026, 1, 1), day(2000, 2, 29)},
        };
        for (const auto& each : rows) {
            CAPTURE(each.text);
            CHECK(parse_date(each.text, each.now) == each.expected);
        }
    }

    TEST_CASE("a clock at the end of its range harms nothing") {
        const auto* text = "Sunday, 06-Nov-94 08:49:37 GMT";
        CHECK(parse_date(text, wall_time::max()) == day(9994, 11, 6) + 8h + 49min + 37s);
        CHECK(parse_date("Sunday, 06-Nov-01 00:00:00 GMT", wall_time::max()) == day(9901, 11, 6));
        CHECK(parse_date(text, wall_time::min()));
        CHECK(written(wall_time::max()) == "Fri, 31 Dec 9999 23:59:59 GMT");
        CHECK(written(wall_time::min()) == "Sat, 01 Jan 0000 00:00:00 GMT");
    }

    TEST_CASE("format_date writes the preferred form and cuts off fractions") {
        CHECK(written(sunday) == "Sun, 06 Nov 1994 08:49:37 GMT");
        CHECK(written(sunday + 999ms) == "Sun, 06 Nov 1994 08:49:37 GMT");
        CHECK(written(wall_time{-1ms}) == "Wed, 31 Dec 1969 23:59:59 GMT");
    }

    TEST_CASE("append_date adds to what is there") {
        std::string text = "Date: ";
        append_date(text, sunday);
        CHECK(text == "Date: Sun, 06 Nov 1994 08:49:37 GMT");
    }

    TEST_CASE("parse_date undoes format_date over four centuries") {
        for (auto when = day(1800, 1, 1); when < day(2200, 1, 1); when += 97h + 61min + 7s) {
            const auto text = written(when);
            CAPTURE(text);
            REQUIRE(parse_date(text, sunday) == when);
        }
    }

    TEST_CASE("no prefix of a date is a date") {
        const std::string_view text = "Sunday, 06-Nov-94 08:49:37 GMT";
        for (std::size_t cut = 0; cut < text.size(); ++cut) {
            CAPTURE(cut);
            CHECK_FALSE(parse_date(text.substr(0, cut), sunday));
        }
    }
}

}  // namespace

}  // namespace reprise::proxy::http
