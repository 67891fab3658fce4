#include "proxy/http/range.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

namespace reprise::proxy::http {

namespace {

using texts = std::initializer_list<std::string_view>;

/// "0-4,9-9", "whole" or "unsatisfiable".
std::string shown(const range_set& set) {
    CHECK((set.answer == range_answer::part) == (set.count > 0));
    std::string result;
    for (const auto& part : set.ranges()) {
        result += (result.empty() ? "" : ",") + std::to_string(part.first) + "-" +
                  std::to_string(part.last);
    }
    return set.count > 0 ? result : std::string{to_string(set.answer)};
}

std::string ranges(std::string_view text, std::uint64_t length) {
    return shown(parse_ranges(text, length));
}

std::string judged_ranges(texts request, texts stored = {}, std::string_view method = "GET") {
    return shown(judge_ranges(method, lines(request), lines(stored), 10, sunday));
}

/// What judge_ranges would send.
std::string planned(std::string_view range,
                    texts stored_lines = {},
                    std::uint64_t length = 10'000) {
    const field line{field_id::range, "Range", range};
    const auto stored = lines(stored_lines);
    const auto set = judge_ranges("GET", {&line, 1}, stored, length, sunday);
    std::string all;
    for (const auto& part : set.ranges()) {
        all += (all.empty() ? "" : " ") + std::to_string(part.first) + "-" +
               std::to_string(part.last);
    }
    return all.empty() ? std::string{to_string(set.answer)} : all;
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
        CHECK(judged_ranges({"Range: bytes=2-5"}) == "2-5");
        CHECK(judged_ranges({"Range: bytes=20-"}) == "unsatisfiable");
        CHECK(judged_ranges({}) == "whole");
    }

    TEST_CASE("other methods, and several ranges where one part is all that can be sent") {
        CHECK(judged_ranges({"Range: bytes=2-5"}, {}, "HEAD") == "whole");
        CHECK(judged_ranges({"Range: bytes=2-5"}, {}, "POST") == "whole");
        CHECK(judged_ranges({"Range: bytes=2-5,7-8"}) == "2-8");
        CHECK(judged_ranges({"Range: bytes=2-5", "Range: bytes=2-5"}) == "whole");
    }

    TEST_CASE("If-Range holds for the stored strong tag only") {
        const texts stored{"ETag: \"a\"", "Date: Sun, 06 Nov 1994 08:49:37 GMT"};
        CHECK(judged_ranges({"Range: bytes=2-5", "If-Range: \"a\""}, stored) == "2-5");
        for (const auto* other : {"If-Range: \"b\"",
                                  "If-Range: W/\"a\"",
                                  "If-Range: a",
                                  "If-Range:",
                                  "If-Range: *",
                                  "If-Range: \"a\", \"b\""}) {
            CAPTURE(other);
            CHECK(judged_ranges({"Range: bytes=2-5", other}, stored) == "whole");
        }
        CHECK(judged_ranges({"Range: bytes=2-5", "If-Range: W/\"a\""}, {"ETag: W/\"a\""}) ==
              "whole");
        CHECK(judged_ranges({"Range: bytes=2-5", "If-Range: \"a\"", "If-Range: \"a\""}, stored) ==
              "whole");
        CHECK(judged_ranges({"Range: bytes=20-", "If-Range: \"b\""}, stored) == "whole");
    }

    TEST_CASE("If-Range holds for the very Last-Modified, where that is strong") {
        const auto* date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
        const auto* before = "Last-Modified: Sun, 06 Nov 1994 08:49:36 GMT";
        const auto* same_second = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT";
        const auto* range = "Range: bytes=2-5";
        CHECK(judged_ranges({range, "If-Range: Sun, 06 Nov 1994 08:49:36 GMT"}, {date, before}) ==
              "2-5");
        CHECK(judged_ranges({range, "If-Range: Sunday, 06-Nov-94 08:49:36 GMT"}, {date, before}) ==
              "2-5");
        CHECK(judged_ranges({range, "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"}, {date, before}) ==
              "whole");
        CHECK(judged_ranges({range, "If-Range: Sun, 06 Nov 1994 08:49:35 GMT"}, {date, before}) ==
              "whole");
        CHECK(judged_ranges({range, "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"},
                            {date, same_second}) == "whole");
        CHECK(judged_ranges({range, "If-Range: Sun, 06 Nov 1994 08:49:36 GMT"}, {before}) ==
              "whole");
        CHECK(judged_ranges({range, "If-Range: Sun, 06 Nov 1994 08:49:36 GMT"}, {date}) == "whole");
    }

    TEST_CASE("If-Range without Range changes nothing") {
        CHECK(judged_ranges({"If-Range: \"a\""}, {"ETag: \"a\""}) == "whole");
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

    TEST_CASE("several ranges far apart are several parts, in the order asked for") {
        CHECK(planned("bytes=0-9,1000-1009") == "0-9 1000-1009");
        CHECK(planned("bytes=1000-1009,0-9") == "1000-1009 0-9");
        CHECK(planned("bytes=0-9,1000-1009,-5") == "0-9 1000-1009 9995-9999");
        CHECK(planned("bytes=0-9,20000-,1000-1009") == "0-9 1000-1009");
        CHECK(planned("bytes=20000-,30000-") == "unsatisfiable");
        CHECK(planned("bytes=0-9") == "0-9");
    }

    TEST_CASE("ranges that overlap, touch or lie close are sent as one") {
        CHECK(planned("bytes=0-99,50-149") == "0-149");
        CHECK(planned("bytes=50-149,0-99") == "0-149");
        CHECK(planned("bytes=0-99,100-199") == "0-199");
        CHECK(planned("bytes=0-99,20-29") == "0-99");
        CHECK(planned("bytes=0-0,128-128") == "0-128");
        CHECK(planned("bytes=0-0,129-129") == "0-0 129-129");
        CHECK(planned("bytes=0-9,20-29,5000-5009") == "0-29 5000-5009");
        CHECK(planned("bytes=0-,-1") == "0-9999");
    }

    TEST_CASE("three ranges over one byte, or out of order, get the whole") {
        CHECK(planned("bytes=0-99,50-149,90-200") == "whole");
        CHECK(planned("bytes=0-,0-,0-") == "whole");
        CHECK(planned("bytes=0-99,50-149,140-200") == "0-200");
        CHECK(planned("bytes=0-9,5000-5009,1000-1009") == "whole");
    }

    TEST_CASE("parts that would be no smaller than the whole are not worth their heads") {
        CHECK(planned("bytes=0-4000,4200-9999") == "whole");
        CHECK(planned("bytes=0-4000,5000-9000") == "0-4000 5000-9000");
        CHECK(planned("bytes=0-0,299-299", {}, 300) == "0-0 299-299");
        CHECK(planned("bytes=0-0,199-199", {}, 200) == "whole");
    }

    TEST_CASE("several parts of a coded representation are not sent, one is") {
        CHECK(planned("bytes=0-9,1000-1009", {"Content-Encoding: gzip"}) == "whole");
        CHECK(planned("bytes=0-9,20-29", {"Content-Encoding: gzip"}) == "0-29");
    }

    TEST_CASE("If-Range holds for several parts as for one") {
        const auto request = lines({"Range: bytes=0-9,1000-1009", "If-Range: \"b\""});
        const auto stored = lines({"ETag: \"a\""});
        CHECK(judge_ranges("GET", request, stored, 10'000, sunday).answer == range_answer::whole);
        const auto same = lines({"ETag: \"b\""});
        CHECK(judge_ranges("GET", request, same, 10'000, sunday).count == 2);
        CHECK(judge_ranges("HEAD", request, same, 10'000, sunday).answer == range_answer::whole);
    }

    TEST_CASE("the parts of any request are disjoint and fewer bytes than the whole") {
        std::minstd_rand random{3};
        for (int round = 0; round < 5'000; ++round) {
            const std::uint64_t length = 1 + random() % 4000;
            std::string text = "bytes=";
            for (auto count = 1 + random() % 5; count > 0; --count) {
                const auto first = random() % 4000;
                text += std::to_string(first) + "-" + std::to_string(first + random() % 400) + ",";
            }
            CAPTURE(text);
            CAPTURE(length);
            const field line{field_id::range, "Range", text};
            const auto set = judge_ranges("GET", {&line, 1}, {}, length, sunday);
            const auto wanted = parse_ranges(text, length);
            std::uint64_t bytes = 0;
            for (const auto& one : set.ranges()) {
                bytes += one.size();
                REQUIRE(one.last < length);
                for (const auto& other : set.ranges()) {
                    REQUIRE((&one == &other || one.last < other.first || other.last < one.first));
                }
            }
            REQUIRE(bytes <= length);
            if (set.answer == range_answer::part) {
                // Each satisfiable range asked for lies within one of the parts.
                for (const auto& asked : wanted.ranges()) {
                    REQUIRE(std::any_of(
                        set.ranges().begin(), set.ranges().end(), [&](const byte_range& part) {
                            return part.first <= asked.first && asked.last <= part.last;
                        }));
                }
            }
        }
    }
}

}  // namespace

}  // namespace reprise::proxy::http
