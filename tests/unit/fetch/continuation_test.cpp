#include "proxy/fetch/continuation.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::fetch::test::of_continuation {

namespace {

const std::string described = "Content-Type: text/plain\r\nETag: \"e\"\r\n"
                              "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

cache::fetched_head begun(const std::string& fields = described, unsigned status = 200) {
    cache::fetched_head out;
    out.status = status;
    out.head = "HTTP/1.1 " + std::to_string(status) + " Fine\r\nVia: 1.1 me\r\n" + fields;
    out.has_body = true;
    return out;
}

cache::fetched_head begun_part(std::uint64_t first, std::uint64_t last, std::uint64_t total) {
    auto out = begun(described, 206);
    out.range_first = first;
    out.range_last = last;
    out.range_total = total;
    return out;
}

/// Whether a response with these field lines goes on behind `before`.
bool goes_on(const cache::fetched_head& before,
             const std::string& fields = described,
             unsigned status = 200,
             http::body_framing framing = {http::body_kind::until_close}) {
    const auto bytes = "HTTP/1.1 " + std::to_string(status) + " Good\r\nServer: other\r\n" +
                       fields + "\r\n";
    http::response_head head;
    REQUIRE(http::parse_response_head(bytes, head, {}).state == http::head_state::done);
    return continues(before, head, framing);
}

bool goes_on_as_part(const cache::fetched_head& before, const std::string& content_range) {
    return goes_on(before, described + content_range, 206);
}

}  // namespace

TEST_SUITE_BEGIN("fetch/continuation");

TEST_CASE("a response that is described alike goes on, whatever else its head says") {
    CHECK(goes_on(begun()));
    CHECK(goes_on(begun(), described + "Date: now\r\nAge: 3\r\nCache-Control: no-store\r\n"));
    CHECK(goes_on(begun(""), ""));
}

TEST_CASE("another status goes on behind nothing") {
    CHECK(!goes_on(begun(), described, 203));
    CHECK(!goes_on(begun(described, 404)));
    CHECK(goes_on(begun(described, 404), described, 404));
}

TEST_CASE("each field that tells representations apart must be the same, line for line") {
    const std::vector<std::pair<std::string, std::string>> told_apart_by{
        {"Content-Type: text/plain\r\n", "Content-Type: text/html\r\n"},
        {"Content-Encoding: gzip\r\n", "Content-Encoding: br\r\n"},
        {"Content-Language: de\r\n", "Content-Language: en\r\n"},
        {"Content-Location: /a\r\n", "Content-Location: /b\r\n"},
        {"ETag: \"e\"\r\n", "ETag: W/\"e\"\r\n"},
        {"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
         "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n"}};
    for (const auto& [mine, other] : told_apart_by) {
        CAPTURE(mine);
        CHECK(goes_on(begun(mine), mine));
        CHECK(!goes_on(begun(mine), other));
        CHECK(!goes_on(begun(mine), ""));
        CHECK(!goes_on(begun(""), mine));
        CHECK(!goes_on(begun(mine), mine + mine));
        CHECK(!goes_on(begun(mine + other), other + mine));
    }
}

TEST_CASE("lengths must agree where both are stated") {
    auto before = begun();
    before.length = 10;
    CHECK(goes_on(before, described, 200, {http::body_kind::length, 10}));
    CHECK(!goes_on(before, described, 200, {http::body_kind::length, 11}));
    CHECK(goes_on(before, described, 200, {http::body_kind::chunked}));
    CHECK(goes_on(begun(), described, 200, {http::body_kind::length, 11}));
}

TEST_CASE("a part goes on behind the same part of the same whole alone") {
    const auto before = begun_part(5, 9, 20);
    CHECK(goes_on_as_part(before, "Content-Range: bytes 5-9/20\r\n"));
    for (const auto* other : {"Content-Range: bytes 4-9/20\r\n",
                              "Content-Range: bytes 5-8/20\r\n",
                              "Content-Range: bytes 5-9/21\r\n",
                              "Content-Range: bytes 5-9/*\r\n",
                              "Content-Range: nonsense\r\n",
                              ""}) {
        CAPTURE(other);
        CHECK(!goes_on_as_part(before, other));
    }
}

TEST_CASE("a part of which nothing could be relied on is continued by nothing") {
    CHECK(!goes_on_as_part(begun(described, 206), "Content-Range: bytes 5-9/20\r\n"));
    CHECK(!goes_on_as_part(begun(described, 206), ""));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_continuation
