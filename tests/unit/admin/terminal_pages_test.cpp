#include "proxy/admin/terminal_pages.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

using namespace reprise::proxy::admin;
using nlohmann::json;

namespace {

const char* const unwell = R"({
    "summary": {
        "well": false, "headline": "One thing is not well.",
        "not_well": ["3 requests in the last minute failed at their origin."],
        "text": "In 2 hours it answered 1,000 requests, 50 % of them from what is stored here.",
        "figures": [
            {"label": "Answered from the store", "value": "50 %", "more": "of 1,000 requests"},
            {"label": "What it costs", "value": "–", "more": "22 MiB of memory"}],
        "since": "2026-01-01T00:00:00Z", "requests": 1000, "hit_ratio": 0.5,
        "spared": {"bytes": 1048576}, "writes_spared": {"objects": 7},
        "costs": {"resident_bytes": 23068672},
        "siblings": {"b": {"state": "used", "asked": 12, "hits": 9, "bytes": 2048, "seconds_saved": 1.6}}},
    "version": "9.9"})";

bool has(const std::string& page, std::string_view text) {
    return page.find(text) != std::string::npos;
}

}  // namespace

TEST_SUITE("admin/terminal_pages") {
    TEST_CASE("the status says what the last day saved, where the proxy tells it") {
        auto told = json::parse(unwell);
        CHECK(!has(status_page(told), "last day"));
        told["summary"]["last_day"] = json::parse(
            R"({"period": "in the last day", "requests": 12345, "hits": 7900,
                "requests_spared": 8000, "bytes_spared": 3145728})");
        const auto page = status_page(told);
        CAPTURE(page);
        CHECK(has(
            page,
            "In the last day          3.0 MiB  spared the origins in 8,000 of 12,345 requests\n"));
    }

    TEST_CASE("a day that is not over is called what it is, and siblings' part of it is told") {
        auto told = json::parse(unwell);
        told["summary"]["last_day"] = json::parse(
            R"({"period": "in the last 3 hours, since the start", "requests": 12345,
                "requests_spared": 8000, "bytes_spared": 3145728,
                "requests_by_siblings": 17, "bytes_by_siblings": 1048576})");
        const auto page = status_page(told, 200);
        CAPTURE(page);
        CHECK(has(page, "\nIn the last 3 hours "));
        CHECK(has(
            page,
            "in 8,000 of 12,345 requests; of that by siblings 17 (1.0 MiB), since the start\n"));
        CHECK(!has(page, "last day"));
    }

    TEST_CASE("the disk has a line: how much of it is used, where, and what is left there") {
        auto told = json::parse(unwell);
        told["summary"]["disk"] = nullptr;
        CHECK(!has(status_page(told), "Disk"));
        told["summary"]["disk"] = json::parse(
            R"({"bytes": 12884901888, "capacity_bytes": 53687091200, "path": "/var/cache/reprise",
                "free_bytes": 32212254720})");
        const auto page = status_page(told, 200);
        CAPTURE(page);
        CHECK(has(page, "12 of 50 GiB"));
        CHECK(has(page, "used now, in /var/cache/reprise; 30 GiB are free there"));
    }

    TEST_CASE("clients that are limited have a line") {
        auto told = json::parse(unwell);
        CHECK(!has(status_page(told), "limits.client_rate"));
        told["clients"] = json::parse(R"({"rate_known": 1, "rate_waits": 1204})");
        const auto page = status_page(told, 200);
        CAPTURE(page);
        CHECK(has(page, "Limited"));
        CHECK(has(page, "1 client"));
        CHECK(has(page, "now, by limits.client_rate; 1,204 waits since the start"));
    }

    TEST_CASE("what is worth knowing and no trouble stands apart from what is") {
        auto told = json::parse(unwell);
        told["summary"]["notes"] = {"1 request failed."};
        CHECK(has(status_page(told), "\n  - 1 request failed.\n"));
    }

    TEST_CASE("time that a sibling saved is shown in milliseconds where it is little") {
        auto told = json::parse(unwell);
        auto& saved = told["summary"]["siblings"]["b"]["seconds_saved"];
        saved = 0.042;
        CHECK(has(status_page(told), "2.0 KiB  42 ms\n"));
        saved = -0.7;
        CHECK(has(status_page(told), "2.0 KiB  -700 ms\n"));
        saved = 42.4;
        CHECK(has(status_page(told), "2.0 KiB  42 s\n"));
    }

    TEST_CASE("an explanation says that nothing is stored, and asks no admission of that") {
        auto told = json::parse(R"({
            "method": "GET", "url": "http://a.test/",
            "storing": {"may": false, "from": "last-answer", "reason": "set-cookie",
                        "section": "RFC 9111 7.3", "says": "it has Set-Cookie"},
            "admission": {"policy": "second-hit", "seen_before": 0, "counts_to": 1,
                          "admits": false}})");
        const auto page = explanation_page(told);
        CAPTURE(page);
        CHECK(has(page,
                  "its last answer was not stored: it has Set-Cookie (set-cookie, RFC 9111 7.3)"));
        CHECK_FALSE(has(page, "admission"));
        told["storing"]["may"] = nullptr;
        CHECK(has(explanation_page(told),
                  "second-hit: not asked for before, would not be stored yet"));
    }

    TEST_CASE("how large a body may be is said where it would be stored, and where one was not") {
        json told{
            {"largest", {{"bytes", 4U << 20}, {"setting", "memory.max_object"}}},
            {"admission",
             {{"policy", "always"}, {"seen_before", 0U}, {"counts_to", 1}, {"admits", true}}}};
        CHECK(has(explanation_page(told),
                  "always: not asked for before, would be stored now if no larger than 4.0 MiB "
                  "(memory.max_object)\n"));
        told["storing"] = {{"may", false},
                           {"from", "last-answer"},
                           {"reason", "too-large"},
                           {"section", nullptr},
                           {"says", "it was larger than what is stored"}};
        CHECK(has(explanation_page(told),
                  "its last answer was not stored: it was larger than what is stored (too-large): "
                  "at most 4.0 MiB (memory.max_object)\n"));
        CHECK_FALSE(has(explanation_page(told), "would be stored"));
    }

    TEST_CASE("what is refused is said with its sentence, and not said to be stored") {
        const auto page = explanation_page(json::parse(
            R"({"method": "GET", "url": "http://127.0.0.1/",
                "verdict": {"ruling": "refused", "rule": "destination_refused", "section": null,
                            "why": "It does not connect there.", "detail": "It is here."},
                "admission": {"policy": "always", "seen_before": 0, "counts_to": 1,
                              "admits": true}})"));
        CHECK(page == "GET http://127.0.0.1/\n"
                      "ruling  refused, by destination_refused: It does not connect there. It is "
                      "here.\n");
    }

    TEST_CASE("where no sibling is asked the reason stands alone") {
        const auto page = explanation_page(json::parse(
            R"({"siblings": {"claims": [], "why_none_is_asked": "there are no siblings"}})"));
        CHECK(has(page, "siblings  there are no siblings\n"));
    }

    TEST_CASE("how often a URL was asked for is said as far as it is counted") {
        const auto said = [](unsigned seen, unsigned most) {
            return explanation_page(json{{"admission",
                                          {{"policy", "nth-hit"},
                                           {"seen_before", seen},
                                           {"counts_to", most},
                                           {"admits", true}}}});
        };
        CHECK(has(said(0, 1), "nth-hit: not asked for before,"));
        CHECK(has(said(1, 1), "nth-hit: asked for before,"));
        CHECK(has(said(1, 3), "nth-hit: asked for once before,"));
        CHECK(has(said(2, 3), "nth-hit: asked for 2 times before,"));
        CHECK(has(said(3, 3), "nth-hit: asked for at least 3 times before,"));
        CHECK(has(explanation_page(json{{"admission",
                                         {{"policy", "second-hit"},
                                          {"seen_before", 0U},
                                          {"seen_by_siblings", true},
                                          {"counts_to", 1U},
                                          {"admits", true}}}}),
                  "second-hit: asked for before, of a sibling, would be stored now"));
    }

    TEST_CASE("the status says first whether it is well, then what it saves") {
        CHECK(status_page(json::parse(unwell)) ==
              "One thing is not well.\n"
              "  ! 3 requests in the last minute failed at their origin.\n"
              "\n"
              "In 2 hours it answered 1,000 requests, 50 % of them from what is stored here.\n"
              "\n"
              "Answered from the store  50 %  of 1,000 requests\n"
              "What it costs            –     22 MiB of memory\n"
              "\n"
              "Siblings, since the start:\n"
              "Sibling  digest now  asked  hits  bytes    time saved\n"
              "b        used        12     9     2.0 KiB  1.6 s\n"
              "\n"
              "Since 2026-01-01T00:00:00Z; version 9.9\n");
        CHECK(status_line(json::parse(unwell)) ==
              "not well  requests 1,000  hit ratio 50 %  spared 1.0 MiB  writes spared 7  "
              "memory 22 MiB now; the rest since 2026-01-01T00:00:00Z\n");
        CHECK_FALSE(says_well(json::parse(unwell)));
    }

    TEST_CASE("sentences are broken between words at the terminal's width") {
        const auto page = status_page(json::parse(unwell), 39);
        CHECK(has(page, "In 2 hours it answered 1,000 requests,\n50 % of them"));
        CHECK(has(page, "  ! 3 requests in the last minute\n    failed"));
        auto told = json::parse(unwell);
        told["summary"]["figures"][0]["more"] =
            "of 1,000 requests since the start; 40 % of the bytes";
        CHECK(has(status_page(told, 60),
                  "Answered from the store  50 %  of 1,000 requests since the\n"
                  "                               start; 40 % of the bytes\n"));
        CHECK(has(status_page(told, 40), "50 %  of 1,000 requests since the start; 40 %"));
    }

    TEST_CASE("an explanation says the verdict, what is stored, and why it is or is not") {
        const auto told = json::parse(R"({
            "method": "GET", "url": "http://a/b", "on_disk": true,
            "stored": [{"status": 200, "selected": true, "body_bytes": 5, "vary": "accept-language",
                        "selecting": "accept-language: da",
                        "freshness": {"age": 7, "lifetime": 60, "lifetime_from": "max-age", "ttl": 53}}],
            "admission": {"policy": "second-hit", "seen_before": 1, "counts_to": 1, "admits": true, "rule": null},
            "siblings": {"claims": ["b"], "note": "those asked"},
            "verdict": {"ruling": "hit", "rule": "fresh", "section": "RFC 9111 4.2", "fwd": null,
                        "cache_status": "reprise; hit; ttl=53"}})");
        CHECK(
            explanation_page(told) ==
            "GET http://a/b\n"
            "ruling            hit, by fresh (RFC 9111 4.2)\n"
            "cache-status      reprise; hit; ttl=53\n"
            "stored, this one  200, 5 bytes, age 7 s, fresh for 60 s in all (max-age), 53 s of it "
            "left; by accept-language: accept-language: da\n"
            "on disk           something of this URL\n"
            "admission         second-hit: asked for before, would be stored now\n"
            "siblings          by their digests these may have it: b (those asked)\n");
    }

    TEST_CASE("a purge says what went") {
        CHECK(purge_page(json::parse(
                  R"({"purged": "url", "mode": "hard", "url": "http://a/", "variants": 2})")) ==
              "dropped: http://a/ (2 responses)\n");
        CHECK(purge_page(json::parse(
                  R"({"purged": "url", "mode": "hard", "url": "http://a/", "variants": 0})")) ==
              "nothing was stored of http://a/\n");
        CHECK(purge_page(json::parse(R"({"mode": "soft", "prefix": "http://a/"})")) ==
              "made stale: all that begins with http://a/\n");
        CHECK(purge_page(
                  json::parse(R"({"mode": "hard", "origin": "http://a", "tags": ["x", "y"]})")) ==
              "dropped: what http://a tagged x, y\n");
    }

    TEST_CASE("whatever is said, no control character reaches the terminal") {
        CHECK(for_terminal("a\x1b[2Jb\r\n\x7f\xc2\x9b"
                           "c\xc3\xa9") == "a?[2Jb????c\xc3\xa9");
        auto evil = json::parse(unwell);
        evil["summary"]["headline"] = "\x1b]0;x\x07";
        evil["summary"]["siblings"]["\x1b[31m"] = json::object();
        CHECK_FALSE(has(status_page(evil), "\x1b"));
    }

    TEST_CASE("what is missing, or of another kind, is left out") {
        for (const auto* const text : {"{}",
                                       "[]",
                                       "1",
                                       R"({"summary": 3})",
                                       R"({"summary": {"figures": {"a": 1}, "hit_ratio": "x",
               "not_well": 7, "siblings": [1]}, "stored": [1], "verdict": [], "admission": {},
               "siblings": {"claims": 3}, "tags": {"a": 1}})"}) {
            CAPTURE(text);
            const auto said = json::parse(text);
            CHECK(status_page(said).ends_with("\n"));
            CHECK(status_line(said).ends_with("\n"));
            CHECK(explanation_page(said).ends_with("\n"));
            CHECK(purge_page(said).ends_with("\n"));
        }
    }
}
