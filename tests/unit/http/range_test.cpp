#include "proxy/http/range.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::http {

namespace {

using texts = std::initializer_list<std::string_view>;

/// "0-4,9-9", "whole" or "unsatisfiable".
std::string ranges(std::string_view text, std::uint64_t length) {
    const auto set = parse_ranges(text, length);
    CHECK((set.answer == range_answer::part) == (set.count > 0));
    std::string result;
    for (const auto& part : set.ranges()) {
        result += (result.empty() ? "" : ",") + std::to_string(part.first) + "-" +
                  std::to_string(part.last);
    }
    return set.count > 0 ? result : std::string{to_string(set.answer)};
}

std::string judged(texts request, texts stored = {}, std::string_view method = "GET") {
    const auto verdict = judge_range(method, lines(request), lines(stored), 10, sunday);
    if (verdict.answer != range_answer::part) {
        return std::string{to_string(verdict.answer)};
    }
    return std::to_string(verdict.part.first) + "-" + std::to_string(verdict.part.last);
}

TEST_SUITE("http/range") {
    TEST_CASE("ranges read as RFC 9110 14.1.2 says, and what is malformed is ignored") {
        struct row {
            const char* text;
            std::uint64_t length;
            const char* expected;
        };
        const row rows[] = {
            {"bytes=0-4", 10, "0-4"},
            {"bytes=0-0", 10, "0-0"},
            {"bytes=9-9", 10, "9-9"},
            {"bytes=4-", 10, "4-9"},
            {"bytes=-3", 10, "7-9"},
            {"bytes=-99", 10, "0-9"},
            {"bytes=5-99", 10, "5-9"},
            {"BYTES=0-4", 10, "0-4"},
            {"bytes=000-0004", 10, "0-4"},
            {"bytes=0-4,-1, 6-6", 10, "0-4,9-9,6-6"},
            {"bytes=,, 0-4 ,\t,", 10, "0-4"},
            {"bytes=0-4,20-30", 10, "0-4"},
            {"bytes=10-", 10, "unsatisfiable"},
            {"bytes=10-20", 10, "unsatisfiable"},
            {"bytes=-0", 10, "unsatisfiable"},
            {"bytes=10-,11-", 10, "unsatisfiable"},
            {"bytes=0-", 0, "unsatisfiable"},
            {"bytes=-5", 0, "whole"},
            {"bytes=-0", 0, "unsatisfiable"},
            {"bytes=0-18446744073709551615", 10, "0-9"},
            {"bytes=0-99999999999999999999999", 10, "0-9"},
            {"bytes=99999999999999999999999-", 10, "unsatisfiable"},
            {"bytes=-99999999999999999999999", 10, "0-9"},
            {"bytes=18446744073709551614-",
             ~std::uint64_t{0},
             "18446744073709551614-"
             "18446744073709551614"},
            {"bytes=18446744073709551616-", ~std::uint64_t{0}, "unsatisfiable"},
            {"bytes=99999999999999999999999-5", 10, "whole"},
            {"bytes=4-3", 10, "whole"},
            {"bytes=0-4,4-3", 10, "whole"},
            {"bytes=", 10, "whole"},
            {"bytes=,", 10, "whole"},
            {"bytes=-", 10, "whole"},
            {"bytes=--1", 10, "whole"},
            {"bytes=0", 10, "whole"},
            {"bytes=0-4-", 10, "whole"},
            {"bytes=0 - 4", 10, "whole"},
            {"bytes=0x0-4", 10, "whole"},
            {"bytes=+0-4", 10, "whole"},
            {"bytes =0-4", 10, "whole"},
            {"bytes:0-4", 10, "whole"},
            {"bytes 0-4", 10, "whole"},
            {"items=0-4", 10, "whole"},
            {"0-4", 10, "whole"},
            {"", 10, "whole"},
        };
        for (const auto& each : rows) {
            CAPTURE(each.text);
            CHECK(ranges(each.text, each.length) == each.expected);
        }
    }

    TEST_CASE("more ranges than the bound are ignored") {
        std::string text = "bytes=0-0";
        for (std::size_t i = 1; i < most_ranges; ++i) {
            text += ",1-1";
        }
        CHECK(parse_ranges(text, 10).count == most_ranges);
        CHECK(ranges(text + ",2-2", 10) == "whole");
        CHECK(ranges(text + ",20-", 10) == "whole");
    }

    TEST_CASE("every satisfiable range lies within the representation") {
        const char* specs[] = {"0-", "-1", "3-7", "-100", "9-20", "1-1"};
        for (std::uint64_t length = 0; length < 12; ++length) {
            for (const auto* one : specs) {
                for (const auto* other : specs) {
                    const auto set = parse_ranges(std::string{"bytes="} + one + "," + other,
                                                  length);
                    for (const auto& part : set.ranges()) {
                        CHECK(part.first <= part.last);
                        CHECK(part.last < length);
                    }
                }
            }
        }
    }

    TEST_CASE("a GET with one range gets the part") {
        CHECK(judged({"Range: bytes=2-5"}) == "2-5");
        CHECK(judged({"Range: bytes=20-"}) == "unsatisfiable");
        CHECK(judged({}) == "whole");
    }

    TEST_CASE("other methods and several ranges get the whole") {
        CHECK(judged({"Range: bytes=2-5"}, {}, "HEAD") == "whole");
        CHECK(judged({"Range: bytes=2-5"}, {}, "POST") == "whole");
        CHECK(judged({"Range: bytes=2-5,7-8"}) == "whole");
        CHECK(judged({"Range: bytes=2-5", "Range: bytes=2-5"}) == "whole");
    }

    TEST_CASE("If-Range holds for the stored strong tag only") {
        const texts stored{"ETag: \"a\"", "Date: Sun, 06 Nov 1994 08:49:37 GMT"};
        CHECK(judged({"Range: bytes=2-5", "If-Range: \"a\""}, stored) == "2-5");
        for (const auto* other : {"If-Range: \"b\"",
                                  "If-Range: W/\"a\"",
                                  "If-Range: a",
                                  "If-Range:",
                                  "If-Range: *",
                                  "If-Range: \"a\", \"b\""}) {
            CAPTURE(other);
            CHECK(judged({"Range: bytes=2-5", other}, stored) == "whole");
        }
        CHECK(judged({"Range: bytes=2-5", "If-Range: W/\"a\""}, {"ETag: W/\"a\""}) == "whole");
        CHECK(judged({"Range: bytes=2-5", "If-Range: \"a\"", "If-Range: \"a\""}, stored) ==
              "whole");
        CHECK(judged({"Range: bytes=20-", "If-Range: \"b\""}, stored) == "whole");
    }

    TEST_CASE("If-Range holds for the very Last-Modified, where that is strong") {
        const auto* date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
        const auto* before = "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT";
        const auto* same_second = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
        const auto* range = "Range: bytes=2-5";
        CHECK(judged({range, "If-Range: Sun, 06 Nov 1994 08:49:36 GMT"}, {date, before}) == "2-5");
        CHECK(judged({range, "If-Range: Sunday, 06-Nov-94 08:49:36 GMT"}, {date, before}) == "2-5");
        CHECK(judged({range, "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"}, {date, before}) ==
              "whole");
        CHECK(judged({range, "If-Range: Sun, 06 Nov 1994 08:49:35 GMT"}, {date, before}) ==
              "whole");
        CHECK(judged({range, "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"}, {date, same_second}) ==
              "whole");
        CHECK(judged({range, "If-Range: Sun, 06 Nov 1994 08:49:36 GMT"}, {before}) == "whole");
        CHECK(judged({range, "If-Range: Sun, 06 Nov 1994 08:49:36 GMT"}, {date}) == "whole");
    }

    TEST_CASE("If-Range without Range changes nothing") {
        CHECK(judged({"If-Range: \"a\""}, {"ETag: \"a\""}) == "whole");
    }

    TEST_CASE("Content-Range is written for both answers") {
        std::string text;
        append_content_range(text, {7, 9}, 10);
        CHECK(text == "bytes 7-9/10");
        text.clear();
        append_unsatisfied_range(text, 10);
        CHECK(text == "bytes */10");
        CHECK(byte_range{7, 9}.size() == 3);
    }
}

}  // namespace

}  // namespace reprise::proxy::http
