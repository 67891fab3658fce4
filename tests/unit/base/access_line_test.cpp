#include "proxy/base/access_line.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <random>

using namespace reprise::proxy;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

access_record ordinary() {
    access_record record;
    record.time = wall_time{1'715'000'000'042ms};
    record.request_id = 0x2a;
    record.client = "127.0.0.1:4711";
    record.method = "GET";
    record.url = "http://example.org/a?key=secret";
    record.status = 200;
    record.how = outcome::miss;
    record.reason = "first-request";
    record.bytes_in = 120;
    record.bytes_out = 4096;
    record.total = 12'345'678ns;
    record.first_byte = 999us;
    record.origin = "192.0.2.1:80";
    record.user_agent = "curl/8";
    return record;
}

std::string line_of(const access_record& record, bool query_values = false) {
    std::string line;
    append_access_line(line, record, query_values);
    return line;
}

}  // namespace

TEST_SUITE("base/access_line") {

    TEST_CASE("a record becomes one line of JSON with these names") {
        CHECK(
            line_of(ordinary()) ==
            R"({"time":"2024-05-06T12:53:20.042Z","id":"000000000000002a","client":"127.0.0.1:4711",)"
            R"("method":"GET","url":"http://example.org/a?key=*","http":"1.1","status":200,)"
            R"("outcome":"miss","reason":"first-request","bytes_in":120,"bytes_out":4096,)"
            R"("ms":12.345,"first_byte_ms":0.999,"origin":"192.0.2.1:80","user_agent":"curl/8"})"
            "\n");
    }

    TEST_CASE("an empty record is a line too") {
        const auto line = json::parse(line_of({}));
        CHECK(line["time"] == "1970-01-01T00:00:00.000Z");
        CHECK(line["url"] == "");
        CHECK_FALSE(line.contains("client"));
        CHECK_FALSE(line.contains("origin_ms"));
    }

    TEST_CASE("a trace's parent is told as it came, and of a sample how many the line stands for") {
        auto record = ordinary();
        record.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        record.sample = 100;
        const auto line = json::parse(line_of(record));
        CHECK(line["traceparent"] == record.traceparent);
        CHECK(line["sample"] == 100);
        record.traceparent = "\"\n";
        CHECK(json::parse(line_of(record))["traceparent"] == "\"\n");
        CHECK_FALSE(json::parse(line_of(ordinary())).contains("traceparent"));
        CHECK_FALSE(json::parse(line_of(ordinary())).contains("sample"));
    }

    TEST_CASE("query values are shown when asked for") {
        CHECK(json::parse(line_of(ordinary(), true))["url"] == "http://example.org/a?key=secret");
    }

    TEST_CASE("times follow the clock from line to line, back and forth") {
        auto record = ordinary();
        const auto time_at = [&](wall_time time) {
            record.time = time;
            return json::parse(line_of(record))["time"].get<std::string>();
        };
        CHECK(time_at(wall_time{1'709'164'799'999ms}) == "2024-02-28T23:59:59.999Z");
        CHECK(time_at(wall_time{1'709'164'800'000ms}) == "2024-02-29T00:00:00.000Z");
        CHECK(time_at(wall_time{1'709'164'799'001ms}) == "2024-02-28T23:59:59.001Z");
        CHECK(time_at(wall_time{-1ms}) == "1969-12-31T23:59:59.999Z");
        CHECK(time_at(wall_time{-1000ms}) == "1969-12-31T23:59:59.000Z");
    }

    TEST_CASE("negative durations, a clock's mistake, are zero") {
        auto record = ordinary();
        record.total = -5ms;
        CHECK(json::parse(line_of(record))["ms"] == 0.0);
    }

    TEST_CASE("long values are cut and say so") {
        auto record = ordinary();
        const std::string path(10'000, 'p');
        const auto url = "http://example.org/" + path;
        const std::string agent(5'000, 'u');
        record.url = url;
        record.user_agent = agent;
        const auto line = json::parse(line_of(record));
        CHECK(line["url"] == url.substr(0, access_line_limits::url) + "...");
        CHECK(line["user_agent"] == agent.substr(0, access_line_limits::text) + "...");
    }

    TEST_CASE("a password longer than the limit stays hidden") {
        auto record = ordinary();
        const auto url = "http://user:" + std::string(8'000, 's') + "@example.org/";
        record.url = url;
        CHECK(json::parse(line_of(record))["url"] == "http://example.org/");
    }

    TEST_CASE("any bytes make one line that a strict parser reads, within its bound") {
        std::mt19937_64 random{3};
        for (int round = 0; round < 500; ++round) {
            CAPTURE(round);
            std::string bytes(random() % 9'000, '\0');
            for (auto& byte : bytes) {
                byte = static_cast<char>(random());
            }
            auto record = ordinary();
            record.client = record.method = record.url = record.reason = record.error = bytes;
            record.origin = record.user_agent = bytes;
            const auto line = line_of(record, round % 2 == 0);
            REQUIRE(json::accept(line));
            REQUIRE(line.find('\n') == line.size() - 1);
            REQUIRE(line.size() <= 40u << 10);
        }
    }

}  // TEST_SUITE
