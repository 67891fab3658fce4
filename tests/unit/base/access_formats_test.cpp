#include "proxy/base/access_formats.hpp"
#include "proxy/base/access_log.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace reprise::proxy;
using namespace std::chrono_literals;
namespace config = reprise::config;

namespace {

access_record request_to_log() {
    access_record record;
    record.time = wall_time{1'715'000'000'042ms};
    record.client = "127.0.0.1:4711";
    record.method = "GET";
    record.url = "http://example.org/a?key=secret";
    record.status = 200;
    record.how = outcome::miss;
    record.bytes_out = 4096;
    record.total = 12'345'678ns;
    record.origin = "192.0.2.1:80";
    record.user_agent = "curl/8";
    record.content_type = "text/html; charset=utf-8";
    return record;
}

std::string squid(const access_record& record, bool query_values = false) {
    std::string line;
    append_squid_line(line, record, query_values);
    return line;
}

std::string combined(const access_record& record, bool query_values = false) {
    std::string line;
    append_combined_line(line, record, query_values);
    return line;
}

std::vector<std::string> words(const std::string& line) {
    std::istringstream in{line};
    std::vector<std::string> out;
    for (std::string word; in >> word;) {
        out.push_back(word);
    }
    return out;
}

}  // namespace

TEST_SUITE("base/access_formats") {

    TEST_CASE("Squid's native line") {
        CHECK(squid(request_to_log()) ==
              "1715000000.042     12 127.0.0.1 TCP_MISS/200 4096 GET http://example.org/a?key=* - "
              "HIER_DIRECT/192.0.2.1 text/html\n");
        auto record = request_to_log();
        record.client = "::1:4711";
        record.user = "alice";
        record.origin = "[2001:db8::1]:8080";
        record.peer = "up";
        record.content_type = "";
        CHECK(
            squid(record, true) ==
            "1715000000.042     12 ::1 TCP_MISS/200 4096 GET http://example.org/a?key=secret alice "
            "FIRSTUP_PARENT/2001:db8::1 -\n");
    }

    TEST_CASE("the combined line") {
        CHECK(combined(request_to_log()) ==
              "127.0.0.1 - - [06/May/2024:12:53:20 +0000] \"GET http://example.org/a?key=* "
              "HTTP/1.1\" 200 4096 \"-\" \"curl/8\"\n");
        auto record = request_to_log();
        record.user = "alice";
        record.http_version = 10;
        record.bytes_out = 0;
        record.user_agent = "";
        record.referer = "http://u:p@b.example/?q=1";
        CHECK(combined(record) ==
              "127.0.0.1 - alice [06/May/2024:12:53:20 +0000] \"GET http://example.org/a?key=* "
              "HTTP/1.0\" 200 - \"http://b.example/?q=*\" \"-\"\n");
    }

    TEST_CASE("a request that could not be read is a line too") {
        access_record record;
        record.client = "127.0.0.1:1";
        record.status = 400;
        record.how = outcome::client_error;
        CHECK(squid(record) ==
              "0.000      0 127.0.0.1 NONE/400 0 NONE error:invalid-request - HIER_NONE/- -\n");
        CHECK(combined(record) ==
              "127.0.0.1 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 - \"-\" \"-\"\n");
    }

    TEST_CASE("each outcome has its result code") {
        struct row {
            outcome how;
            const char* code;
            const char* hierarchy;
        };
        const row rows[]{{outcome::hit, "TCP_MEM_HIT", "HIER_NONE"},
                         {outcome::revalidated, "TCP_REFRESH_UNMODIFIED", "HIER_DIRECT"},
                         {outcome::stale, "TCP_MEM_HIT", "HIER_NONE"},
                         {outcome::miss, "TCP_MISS", "HIER_DIRECT"},
                         {outcome::sibling, "TCP_MISS", "CD_SIBLING_HIT"},
                         {outcome::collapsed, "TCP_CF_HIT", "HIER_NONE"},
                         {outcome::pass, "TCP_MISS", "HIER_DIRECT"},
                         {outcome::tunnel, "TCP_TUNNEL", "HIER_DIRECT"},
                         {outcome::local, "NONE", "HIER_NONE"},
                         {outcome::only_if_cached, "TCP_MISS", "HIER_NONE"},
                         {outcome::client_error, "NONE", "HIER_NONE"},
                         {outcome::refused, "TCP_DENIED", "HIER_NONE"},
                         {outcome::error, "TCP_MISS", "HIER_DIRECT"},
                         {outcome::cut_short, "TCP_MISS_ABORTED", "HIER_DIRECT"},
                         {outcome::client_gone, "TCP_MISS_ABORTED", "HIER_DIRECT"}};
        static_assert(std::size(rows) == outcome_count);
        for (const auto& each : rows) {
            auto record = request_to_log();
            record.how = each.how;
            record.origin = std::string_view{each.hierarchy} == "HIER_NONE" ? "" : record.origin;
            CAPTURE(each.code);
            CHECK(result_code(record) == each.code);
            CHECK(hierarchy_code(record) == each.hierarchy);
        }
    }

    TEST_CASE("what more is known of a request makes a finer code") {
        const auto code = [](outcome how, auto&& change) {
            auto record = request_to_log();
            record.how = how;
            change(record);
            return result_code(record);
        };
        using record_ref = access_record&;
        CHECK(code(outcome::hit, [](record_ref r) { r.from_disk = true; }) == "TCP_HIT");
        CHECK(code(outcome::hit, [](record_ref r) {
                  r.status = 304;
                  r.if_modified_since = true;
              }) == "TCP_IMS_HIT");
        CHECK(code(outcome::hit, [](record_ref r) {
                  r.status = 304;
                  r.if_modified_since = r.if_none_match = true;
              }) == "TCP_INM_HIT");
        CHECK(code(outcome::hit, [](record_ref r) { r.if_modified_since = true; }) ==
              "TCP_MEM_HIT");
        CHECK(code(outcome::hit, [](record_ref r) {
                  r.status = 404;
                  r.reason = "negative";
              }) == "TCP_NEGATIVE_HIT");
        for (const auto* reason : {"origin-failed", "origin-error"}) {
            CHECK(code(outcome::stale, [&](record_ref r) { r.reason = reason; }) ==
                  "TCP_REFRESH_FAIL_OLD");
        }
        CHECK(code(outcome::miss, [](record_ref r) { r.over = asked_over::stale; }) ==
              "TCP_REFRESH_MODIFIED");
        CHECK(code(outcome::miss, [](record_ref r) { r.over = asked_over::reload; }) ==
              "TCP_CLIENT_REFRESH_MISS");
        CHECK(code(outcome::error, [](record_ref r) { r.over = asked_over::stale; }) ==
              "TCP_REFRESH_FAIL_ERR");
        CHECK(code(outcome::client_gone, [](record_ref r) { r.method = ""; }) == "NONE_ABORTED");
    }

    TEST_CASE("what a client sends ends neither field nor line") {
        auto record = request_to_log();
        record.method = "GE\"T x";
        record.url = "http://a.example/ b\n1715000000.000 \x80\"\\";
        record.user = "al ice\t-";
        record.content_type = "text/x y\nz";
        record.user_agent = "a\" 200 5\n\\";
        record.referer = "x\"\r\n";
        const auto native = squid(record);
        CHECK(native.find(
                  "GE%22T%20x http://a.example/%20b%0A1715000000.000%20%80%22\\ al%20ice%09- ") !=
              std::string::npos);
        CHECK(words(native).size() == 10);
        const auto other = combined(record);
        CHECK(other.find(R"("GE\"T x http://a.example/ b\x0a1715000000.000 \x80\"\\ HTTP/1.1")") !=
              std::string::npos);
        CHECK(other.find(R"("x\"\x0d\x0a" "a\" 200 5\x0a\\")") != std::string::npos);
    }

    TEST_CASE("any bytes make one line of ten fields, or of quoted ones, and a bounded one") {
        for (unsigned seed = 1; seed <= 50; ++seed) {
            CAPTURE(seed);
            std::mt19937 random{seed};
            const auto bytes = [&](std::size_t most) {
                std::string out(1 + random() % most, '\0');
                std::generate(out.begin(), out.end(), [&] { return static_cast<char>(random()); });
                return out;
            };
            const auto method = bytes(500), url = bytes(9000), user = bytes(500),
                       agent = bytes(500), referer = bytes(9000);
            auto record = request_to_log();
            record.method = method;
            record.url = url;
            record.user = user;
            record.user_agent = agent;
            record.referer = referer;
            const auto native = squid(record, true);
            CHECK(words(native).size() == 10);
            CHECK(std::count(native.begin(), native.end(), '\n') == 1);
            CHECK(native.size() < (16u << 10));
            const auto other = combined(record, true);
            CHECK(std::count(other.begin(), other.end(), '\n') == 1);
            int quotes = 0;
            for (std::size_t i = 0; i < other.size(); ++i) {
                if (other[i] == '\\') {
                    ++i;
                } else {
                    quotes += other[i] == '"' ? 1 : 0;
                }
            }
            CHECK(quotes == 6);
            CHECK(other.size() < (40u << 10));
        }
    }

    TEST_CASE("the log writes lines in the format that is set, from the next line on") {
        const reprise::tests::temp_dir folder;
        const auto path = folder.file("log");
        access_log log;
        config::log_options wanted;
        wanted.access = path;
        for (const auto format :
             {config::log_format::squid, config::log_format::combined, config::log_format::json}) {
            wanted.format = format;
            REQUIRE_FALSE(log.retarget(wanted));
            CHECK(log.wants_content_type() == (format == config::log_format::squid));
            log.write(request_to_log());
        }
        log.stop();
        std::ifstream in{path};
        std::string line;
        REQUIRE(std::getline(in, line));
        CHECK(line + '\n' == squid(request_to_log()));
        REQUIRE(std::getline(in, line));
        CHECK(line + '\n' == combined(request_to_log()));
        REQUIRE(std::getline(in, line));
        CHECK(line.starts_with("{\"time\":"));
    }

    TEST_CASE("of a sample every request in so many leaves a line, and every failure") {
        access_log log;
        config::log_options wanted;
        wanted.access = "off";
        wanted.sample = 10;
        REQUIRE_FALSE(log.retarget(wanted));
        unsigned lines = 0, stands_for = 0;
        for (int i = 0; i < 1000; ++i) {
            const auto weight = log.weight_of(outcome::hit, 200);
            lines += weight > 0 ? 1 : 0;
            stands_for += weight;
        }
        CHECK(lines == 100);
        CHECK(stands_for == 1000);
        for (const auto how :
             {outcome::error, outcome::refused, outcome::client_error, outcome::cut_short}) {
            CHECK(log.weight_of(how, 0) == 1);
        }
        CHECK(log.weight_of(outcome::pass, 503) == 1);
    }
}
