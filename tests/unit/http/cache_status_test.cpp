#include "proxy/http/cache_status.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::http {

namespace {

using namespace std::chrono_literals;

std::string written(const cache_status& status, std::string_view name = "reprise-k3f9") {
    std::string text;
    append_cache_status(text, name, status);
    return text;
}

TEST_SUITE("http/cache_status") {
    TEST_CASE("whether the last cache on the way shares a fetch is read of its own member") {
        const auto says = [](std::vector<std::string> values) {
            std::vector<field> lines;
            for (const auto& value : values) {
                lines.push_back({.name = "cache-status", .value = value});
            }
            return was_collapsed(lines);
        };
        CHECK(says({"reprise; fwd=uri-miss; fwd-status=200; collapsed"}));
        CHECK(says({"reprise; collapsed; detail=\"a;b, c\""}));
        CHECK(says({"other; hit", "\"a;b, \\\"c\"; collapsed=?1"}));
        CHECK(says({"other; hit, reprise; collapsed"}));
        CHECK_FALSE(says({}));
        CHECK_FALSE(says({""}));
        CHECK_FALSE(says({"reprise; hit; ttl=3"}));
        CHECK_FALSE(says({"reprise; collapsed", "other; hit"}));
        CHECK_FALSE(says({"reprise; collapsed, other; hit"}));
        CHECK_FALSE(says({"reprise; collapsed=?0"}));
        CHECK_FALSE(says({"reprise; collapsed=1"}));
        CHECK_FALSE(says({"reprise; collapsed; ="}));
        CHECK_FALSE(says({"\"reprise; collapsed"}));
        CHECK_FALSE(says({"\"reprise\\"}));
    }

    TEST_CASE("whether the last cache on the way has asked for this request alone") {
        const auto says = [](std::string_view value) {
            const std::vector<field> lines{{.name = "Cache-Status", .value = value}};
            return was_forwarded(lines, 200);
        };
        CHECK(says("reprise; fwd=uri-miss; fwd-status=200; stored"));
        CHECK(says("other; hit, reprise; fwd=stale; fwd-status=304"));
        CHECK(says("reprise; fwd=uri-miss"));
        CHECK_FALSE(says("reprise; fwd=stale; fwd-status=503; ttl=-9; detail=origin-error"));
        CHECK_FALSE(says("reprise; fwd=uri-miss; collapsed"));
        CHECK_FALSE(says("reprise; hit; ttl=5"));
        CHECK_FALSE(says("other; fwd=miss, reprise; hit"));
        CHECK_FALSE(says("reprise; fwd=miss; ="));
        CHECK_FALSE(says(""));
        CHECK_FALSE(was_forwarded({}, 200));
        const std::vector<field> gone{
            {.name = "Cache-Status", .value = "reprise; fwd=miss; fwd-status=404"}};
        CHECK(was_forwarded(gone, 404));
        const std::vector<field> confirmed{
            {.name = "Cache-Status", .value = "reprise; fwd=uri-miss; fwd-status=200; stored"}};
        CHECK(was_forwarded(confirmed, 304));
        CHECK_FALSE(was_forwarded(confirmed, 206));
    }

    TEST_CASE("a hit says how long it stays fresh") {
        cache_status status;
        status.hit = true;
        status.ttl = 376s;
        CHECK(written(status) == "reprise-k3f9; hit; ttl=376");
        status.ttl = -412s;
        CHECK(written(status) == "reprise-k3f9; hit; ttl=-412");
    }

    TEST_CASE("a forwarded request says why, what came of it and what became of that") {
        cache_status status;
        status.forward = forward_reason::uri_miss;
        CHECK(written(status) == "reprise-k3f9; fwd=uri-miss");
        status.forward_status = 200;
        status.stored = true;
        status.collapsed = true;
        status.detail = "first-request";
        CHECK(
            written(status) ==
            "reprise-k3f9; fwd=uri-miss; fwd-status=200; stored; collapsed; detail=first-request");
    }

    TEST_CASE("a hit has no forward reason") {
        cache_status status;
        status.hit = true;
        status.forward = forward_reason::stale;
        status.forward_status = 304;
        CHECK(written(status) == "reprise-k3f9; hit");
    }

    TEST_CASE("names and details that are no tokens are quoted") {
        cache_status status;
        status.detail = "a \"b\" \\ c";
        CHECK(written(status, "proxy one") == "\"proxy one\"; detail=\"a \\\"b\\\" \\\\ c\"");
        CHECK(written({}, "9lives") == "\"9lives\"");
        CHECK(written({}, "") == "\"\"");
        CHECK(written({}, "*a:/b") == "*a:/b");
        status.detail = "504";
        CHECK(written(status, "p") == "p; detail=\"504\"");
    }

    TEST_CASE("what no structured string can hold is written as a question mark") {
        cache_status status;
        status.detail = "a\r\nb\xc3\xa4";
        CHECK(written(status, "p") == "p; detail=\"a??b??\"");
    }

    TEST_CASE("integers keep to fifteen digits") {
        cache_status status;
        status.ttl = std::chrono::seconds::min();
        CHECK(written(status, "p") == "p; ttl=-999999999999999");
        status.ttl = std::chrono::seconds::max();
        CHECK(written(status, "p") == "p; ttl=999999999999999");
    }

    TEST_CASE("every reason has RFC 9211's name") {
        const std::pair<forward_reason, const char*> names[] = {
            {forward_reason::bypass, "bypass"},
            {forward_reason::method, "method"},
            {forward_reason::uri_miss, "uri-miss"},
            {forward_reason::vary_miss, "vary-miss"},
            {forward_reason::miss, "miss"},
            {forward_reason::request, "request"},
            {forward_reason::stale, "stale"},
            {forward_reason::partial, "partial"},
        };
        for (const auto& [reason, name] : names) {
            CHECK(to_string(reason) == name);
        }
    }

    TEST_CASE("a buffer with room is not moved") {
        std::string text;
        text.reserve(512);
        const auto* before = text.data();
        cache_status status;
        status.forward = forward_reason::vary_miss;
        status.forward_status = 200;
        status.ttl = std::chrono::seconds::min();
        status.stored = status.collapsed = true;
        status.detail = "first-request";
        append_cache_status(text, "reprise", status);
        CHECK(text.data() == before);
        CHECK(text.size() <= 120 + 7 + 13);
    }
}

}  // namespace

}  // namespace reprise::proxy::http
