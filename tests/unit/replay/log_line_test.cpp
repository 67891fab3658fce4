#include "tools/replay/log_line.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

using namespace reprise::replay;

namespace {

constexpr std::string_view squid_line =
    "1286536309.586    921 192.0.2.68 TCP_MISS/200 507 GET http://www.example.com/a?b=c - "
    "HIER_DIRECT/198.51.100.7 text/html";
constexpr std::string_view combined_line =
    "192.0.2.7 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326 "
    "\"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"";
constexpr std::string_view json_line =
    R"({"time":"2024-05-06T07:08:09.123Z","id":"00000000000000aa","client":"192.0.2.1:5",)"
    R"("method":"GET","url":"http://example.com/\"x\"","http":"1.1","status":200,)"
    R"("outcome":"miss","bytes_in":80,"bytes_out":1234,"ms":0.123,"user_agent":"a, {b}"})";

log_line squid(std::string_view result, std::string_view method = "GET") {
    const auto line = "1.5 2 c " + std::string{result} + " 99 " + std::string{method} +
                      " http://x/ - y/z t";
    return parse_line(log_format::squid, line);
}

}  // namespace

TEST_SUITE_BEGIN("replay/log_line");

TEST_CASE("logs name the client, without its port; a trace knows of none") {
    CHECK(parse_line(log_format::squid, squid_line).client == "192.0.2.68");
    CHECK(parse_line(log_format::combined, combined_line).client == "192.0.2.7");
    CHECK(parse_line(log_format::json, json_line).client == "192.0.2.1");
    CHECK(parse_line(log_format::trace, "1,2,3").client.empty());
}

TEST_CASE("every format has a name, and the name its format") {
    for (const auto format : every_format) {
        CHECK(format_of(to_string(format)) == format);
    }
    CHECK_FALSE(format_of("clf").has_value());
}

TEST_CASE("a trace's line is seconds, key and bytes") {
    const auto read = parse_line(log_format::trace, "86399,object 17,1234");
    CHECK(read.kind == line_kind::request);
    CHECK(read.seconds == 86399);
    CHECK(read.key == "object 17");
    CHECK(read.bytes == 1234);
    CHECK(read.whole);
}

TEST_CASE("how long a fetch took is told by a fourth column, and by a miss of Squid's and ours") {
    CHECK_FALSE(parse_line(log_format::trace, "1,2,3").wait);
    CHECK(parse_line(log_format::trace, "1,2,3,4567").wait == 4567);
    CHECK(parse_line(log_format::trace, "1,2,3,4567\r").wait == 4567);
    const auto squid_wait = [](const std::string& how, const std::string& elapsed) {
        return parse_line(log_format::squid,
                          "1286536309.586 " + elapsed + " 192.0.2.1 " + how +
                              " 507 GET http://x/ - DIRECT/x text/html")
            .wait;
    };
    CHECK(squid_wait("TCP_MISS/200", "921") == 921'000);
    CHECK(squid_wait("TCP_REFRESH_MISS/200", "921") == 921'000);
    CHECK_FALSE(squid_wait("TCP_HIT/200", "1"));
    CHECK_FALSE(squid_wait("TCP_MISS/304", "921"));
    CHECK_FALSE(squid_wait("TCP_MISS/200", "-1"));
    CHECK(squid_wait("TCP_MISS/200", "9223372036854775807") == 3'600'000'000);
    const auto ours = [](const std::string& outcome, const std::string& ms) {
        return parse_line(log_format::json,
                          R"({"time":"2024-05-06T07:08:09.123Z","method":"GET","url":"http://x/",)"
                          R"("status":200,"outcome":")" +
                              outcome + R"(","bytes_out":1,"origin_ms":)" + ms + "}")
            .wait;
    };
    CHECK(ours("miss", "12.345") == 12'345);
    CHECK_FALSE(ours("revalidated", "12.345"));
    CHECK_FALSE(ours("miss", "-1"));
    CHECK_FALSE(ours("miss", "nan"));
    CHECK(ours("miss", "inf") == 3'600'000'000);
}

TEST_CASE("a carriage return at a line's end is no part of it") {
    CHECK(parse_line(log_format::trace, "1,2,3\r").bytes == 3);
}

TEST_CASE("Squid's native line: time, status, bytes, method and URL") {
    const auto read = parse_line(log_format::squid, squid_line);
    CHECK(read.kind == line_kind::request);
    CHECK(read.seconds == 1286536309);
    CHECK(read.key == "http://www.example.com/a?b=c");
    CHECK(read.bytes == 507);
}

TEST_CASE("a combined line: time with its zone, request line, status and bytes") {
    const auto read = parse_line(log_format::combined, combined_line);
    CHECK(read.kind == line_kind::request);
    CHECK(read.seconds == 971211336);
    CHECK(read.key == "/apache_pb.gif");
    CHECK(read.bytes == 2326);
}

TEST_CASE("combined: a size of - is none, an escaped quotation mark does not end the request") {
    const auto read = parse_line(
        log_format::combined,
        R"(::1 - a b [01/Jan/1970:01:00:00 +0100] "GET /a\"b HTTP/1.1" 304 - "-" "-")");
    CHECK(read.kind == line_kind::request);
    CHECK(read.seconds == 0);
    CHECK(read.key == R"(/a\"b)");
    CHECK(read.bytes == 0);
    CHECK_FALSE(read.whole);
}

TEST_CASE("combined: bytes that were no request are no request, and no error") {
    CHECK(
        parse_line(log_format::combined, R"(c - - [10/Oct/2000:13:55:36 +0000] "-" 400 0)").kind ==
        line_kind::other_method);
    CHECK(parse_line(log_format::combined, R"(c - - [10/Oct/2000:13:55:36 +0000] "\x16\x03" 400 0)")
              .kind == line_kind::other_method);
}

TEST_CASE("a line that is no request has its time, as one that is") {
    CHECK(squid("TCP_DENIED/403").seconds == 1);
    CHECK(squid("TCP_TUNNEL/200", "CONNECT").seconds == 1);
    CHECK(parse_line(log_format::combined, R"(c - - [01/Jan/1970:00:00:07 +0000] "-" 400 0)")
              .seconds == 7);
    const auto read = parse_line(
        log_format::json,
        R"({"time":"1970-01-01T00:00:07Z","method":"?","url":"","status":400,"bytes_out":0})");
    CHECK(read.kind == line_kind::other_method);
    CHECK(read.seconds == 7);
}

TEST_CASE("our own JSON line, its strings as they are written") {
    const auto read = parse_line(log_format::json, json_line);
    CHECK(read.kind == line_kind::request);
    CHECK(read.seconds == 1714979289);
    CHECK(read.key == R"(http://example.com/\"x\")");
    CHECK(read.bytes == 1234);
}

TEST_CASE("a query that the log hides is told from one that it has") {
    CHECK(hides_query(log_format::json, "http://x/a?b=*&c=*"));
    CHECK(hides_query(log_format::json, "http://x/a?*"));
    CHECK_FALSE(hides_query(log_format::json, "http://x/*"));
    CHECK_FALSE(hides_query(log_format::json, "http://x/a?b=1"));
    CHECK(hides_query(log_format::squid, "http://x/a?"));
    CHECK_FALSE(hides_query(log_format::squid, "http://x/a?b=*"));
    CHECK_FALSE(hides_query(log_format::combined, "/a?b=*"));
    CHECK_FALSE(hides_query(log_format::trace, "?"));
}

TEST_CASE("only GET counts, and only what may be stored by its status") {
    CHECK(squid("TCP_MISS/200", "POST").kind == line_kind::other_method);
    CHECK(squid("TCP_TUNNEL/200", "CONNECT").kind == line_kind::other_method);
    CHECK(squid("TCP_MISS/200", "HEAD").kind == line_kind::other_method);
    for (const auto* status : {"200", "203", "204", "300", "301", "308", "404", "410", "501"}) {
        CAPTURE(status);
        CHECK(squid(std::string{"TCP_MISS/"} + status).kind == line_kind::request);
    }
    for (const auto* status : {"000", "302", "400", "403", "500", "502", "504"}) {
        CAPTURE(status);
        CHECK(squid(std::string{"TCP_DENIED/"} + status).kind == line_kind::other_status);
    }
}

TEST_CASE("a 206 and a 304 ask for an object, whose size they do not tell") {
    for (const auto* status : {"206", "304"}) {
        const auto read = squid(std::string{"TCP_MISS/"} + status);
        CHECK(read.kind == line_kind::request);
        CHECK_FALSE(read.whole);
    }
}

TEST_CASE("what is no line of its format is malformed") {
    for (const auto* line : {"",
                             ",",
                             "1,2",
                             "1,,3",
                             "x,2,3",
                             "1,2,-3",
                             "1,2,3 ",
                             "1,2,3,",
                             "1,2,3,x",
                             "1,2,3,-4",
                             "1,2,3,4,5"}) {
        CAPTURE(line);
        CHECK(parse_line(log_format::trace, line).kind == line_kind::malformed);
    }
    for (const auto* line :
         {"", "#Fields: x", "1 2 3", "x 2 c M/200 9 GET u", "1 2 c M200 9 GET u"}) {
        CAPTURE(line);
        CHECK(parse_line(log_format::squid, line).kind == line_kind::malformed);
    }
    for (const auto* line : {"[",
                             "[]",
                             "a [10/Oct/2000:13:55:36 -0700] \"GET /\\\"",
                             "a [31/Feb/2000:13:55:36 -0700] \"GET / H\" 200 1",
                             "a [10/anF/2000:13:55:36 -0700] \"GET / H\" 200 1",
                             "a [10/Oct/2000:24:55:36 -0700] \"GET / H\" 200 1",
                             "a [10/Oct/2000:13:55:36 -0700] \"GET / H\" ok 1"}) {
        CAPTURE(line);
        CHECK(parse_line(log_format::combined, line).kind == line_kind::malformed);
    }
    for (const auto* line :
         {"{",
          "{}",
          "[1]",
          R"({"time":"2024-05-06T07:08:09Z"})",
          R"({"time":"2024-05-06T07:08","method":"GET","status":200,"bytes_out":1})",
          R"({"a":{"b":1}})",
          R"({"a":"\)"}) {
        CAPTURE(line);
        CHECK(parse_line(log_format::json, line).kind == line_kind::malformed);
    }
}

TEST_CASE("no prefix of a line is read beyond its end") {
    // Under AddressSanitizer each prefix is a heap block of its own, exactly as long.
    const std::array lines{std::pair{log_format::trace, std::string_view{"123,abc,456"}},
                           std::pair{log_format::squid, squid_line},
                           std::pair{log_format::combined, combined_line},
                           std::pair{log_format::json, json_line}};
    for (const auto& [format, line] : lines) {
        for (std::size_t cut = 0; cut < line.size(); ++cut) {
            CAPTURE(to_string(format));
            CAPTURE(cut);
            const std::vector<char> exact(line.begin(), line.begin() + static_cast<long>(cut));
            const auto read = parse_line(format, {exact.data(), exact.size()});
            if (read.kind == line_kind::request) {
                CHECK(read.key.data() + read.key.size() <= exact.data() + exact.size());
            }
        }
    }
}

TEST_CASE("a format is found from its lines, though some of them are none") {
    const std::vector<std::string_view> squids{squid_line, "", squid_line};
    CHECK(detect_format(squids) == log_format::squid);
    const std::vector<std::string_view> combineds{combined_line};
    CHECK(detect_format(combineds) == log_format::combined);
    const std::vector<std::string_view> jsons{json_line};
    CHECK(detect_format(jsons) == log_format::json);
    const std::vector<std::string_view> traces{"timestamp,key,size", "1,2,3"};
    CHECK(detect_format(traces) == log_format::trace);
    const std::vector<std::string_view> nothing{"hello", "1,2,3", "world"};
    CHECK_FALSE(detect_format(nothing).has_value());
    CHECK_FALSE(detect_format({}).has_value());
}

TEST_SUITE_END();
