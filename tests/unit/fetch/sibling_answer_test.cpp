#include "proxy/fetch/sibling_answer.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace reprise::proxy::fetch::test::of_sibling_answer {

namespace {

std::string asking(const std::string& fields = "") {
    return "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n" + fields +
           "Cache-Control: only-if-cached\r\n\r\n";
}

const http::freshness_rules usual;
const std::vector<std::string> targeted{"CDN-Cache-Control"};
constexpr wall_time now{std::chrono::seconds{1'763'668'089}};

sibling_terms terms_of(const std::string& request) {
    return {.request = request,
            .asked = {},
            .rules = usual,
            .targeted = targeted,
            .max_age = std::nullopt,
            .sent = now,
            .came = now};
}

sibling_answer judged_by(const sibling_terms& terms,
                         const std::string& status_line,
                         const std::string& fields,
                         std::size_t body = 0) {
    const auto bytes = status_line + "\r\n" + fields + "\r\n";
    http::response_head head;
    REQUIRE(http::parse_response_head(bytes, head, {}).state == http::head_state::done);
    return judge_sibling_answer(head, bytes.size() + body, terms);
}

/// An answer of which the head has come, and so much of the body.
sibling_answer judged(const std::string& status_line,
                      const std::string& fields,
                      std::size_t body = 0,
                      const std::string& request = asking()) {
    return judged_by(terms_of(request), status_line, fields, body);
}

const std::string ok_line = "HTTP/1.1 200 OK";
const std::string aged_five = "Age: 7\r\nContent-Length: 5\r\n";

}  // namespace

TEST_SUITE_BEGIN("fetch/sibling_answer");

TEST_CASE("what has an Age comes from a store, and answers") {
    const auto got = judged(ok_line, aged_five, 5);
    CHECK(got.is_framed);
    CHECK(got.age == std::chrono::seconds{7});
    CHECK(!judged(ok_line, "Content-Length: 5\r\n", 5).age);
    CHECK(!judged(ok_line, "Age: old\r\nContent-Length: 5\r\n", 5).age);
}

TEST_CASE("successes, redirections and what is gone answer; errors and refusals do not") {
    for (const auto* status : {"200", "203", "301", "308", "404", "410"}) {
        CAPTURE(status);
        CHECK(judged("HTTP/1.1 " + std::string{status} + " x", aged_five).age);
    }
    for (const auto* status : {"400", "403", "405", "414", "500", "502", "503", "504"}) {
        CAPTURE(status);
        CHECK(!judged("HTTP/1.1 " + std::string{status} + " x", aged_five).age);
    }
}

TEST_CASE("an answer that ends with its connection is none: the end may be the sibling's") {
    const auto got = judged(ok_line, "Age: 7\r\n", 5);
    CHECK(got.is_framed);
    CHECK(!got.age);
    CHECK(!got.frees_connection);
    CHECK(judged(ok_line, "Age: 7\r\nTransfer-Encoding: chunked\r\n").age);
}

TEST_CASE("what is framed in two ways is not judged at all") {
    CHECK(!judged(ok_line, aged_five + "Transfer-Encoding: chunked\r\n").is_framed);
    CHECK(!judged(ok_line, aged_five + "Content-Length: 6\r\n").is_framed);
}

TEST_CASE("it has begun with its first byte of body, or where it has none") {
    CHECK(!judged(ok_line, aged_five, 0).has_begun);
    CHECK(judged(ok_line, aged_five, 1).has_begun);
    CHECK(!judged(ok_line, "Age: 7\r\nTransfer-Encoding: chunked\r\n", 0).has_begun);
    CHECK(judged(ok_line, "Age: 7\r\nContent-Length: 0\r\n", 0).has_begun);
    CHECK(judged("HTTP/1.1 204 No Content", "Age: 7\r\n", 0).has_begun);
}

TEST_CASE("a connection is free when all that was framed has come, and not a byte more") {
    const std::string no = "HTTP/1.1 504 Gateway Timeout";
    for (std::size_t body = 0; body < 8; ++body) {
        CAPTURE(body);
        const auto got = judged(no, "Content-Length: 5\r\n", body);
        CHECK(got.frees_connection == (body == 5));
        CHECK(got.has_surplus == (body > 5));
    }
    for (const auto* bodiless : {"HTTP/1.1 304 Not Modified", "HTTP/1.1 204 No Content"}) {
        CAPTURE(bodiless);
        CHECK(judged(bodiless, "", 0).frees_connection);
        CHECK(!judged(bodiless, "", 1).frees_connection);
        CHECK(judged(bodiless, "", 1).has_surplus);
    }
    CHECK(!judged(no, "Content-Length: 5\r\nConnection: close\r\n", 5).frees_connection);
    CHECK(!judged("HTTP/1.0 504 x", "Content-Length: 5\r\n", 5).frees_connection);
    // Where a chunked page ends is not looked for.
    CHECK(!judged(no, "Transfer-Encoding: chunked\r\n", 5).frees_connection);
    // A body that must not be there: what follows the head is of no trust.
    const auto odd = judged("HTTP/1.1 204 No Content", "Content-Length: 5\r\n", 5);
    CHECK(!odd.frees_connection);
    CHECK(!odd.has_surplus);
}

TEST_CASE("a 304 answers a request with conditions alone") {
    const std::string not_modified = "HTTP/1.1 304 Not Modified";
    CHECK(!judged(not_modified, "Age: 7\r\n").age);
    CHECK(judged(not_modified, "Age: 7\r\n", 0, asking("If-None-Match: \"e\"\r\n")).age);
    const auto since = asking("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    CHECK(judged(not_modified, "Age: 7\r\n", 0, since).age);
    CHECK(!judged(not_modified, "Age: 7\r\n", 0, asking("Range: bytes=0-4\r\n")).age);
}

TEST_CASE("a part answers whoever asked for that part") {
    const auto answers = [](const std::string& range, const std::string& content_range) {
        const auto request = asking(range.empty() ? "" : "Range: bytes=" + range + "\r\n");
        return judged("HTTP/1.1 206 Partial Content", aged_five + content_range, 5, request)
            .age.has_value();
    };
    const std::string middle = "Content-Range: bytes 5-9/20\r\n";
    CHECK(!answers("", middle));
    CHECK(answers("5-9", middle));
    CHECK(!answers("5-8", middle));
    CHECK(!answers("4-9", middle));
    CHECK(answers("15-", "Content-Range: bytes 15-19/20\r\n"));
    CHECK(answers("-5", "Content-Range: bytes 15-19/20\r\n"));
    CHECK(answers("15-30", "Content-Range: bytes 15-19/20\r\n"));
    // Several that were asked for may be sent as the one run that they make up.
    CHECK(answers("5-6,7-9", middle));
    CHECK(!answers("0-1,7-9", middle));
    for (const auto* odd : {"Content-Range: bytes 5-9/*\r\n",
                            "Content-Range: nonsense\r\n",
                            "Content-Range: bytes 5-9/20\r\nContent-Range: bytes 5-9/20\r\n",
                            ""}) {
        CAPTURE(odd);
        CHECK(!answers("5-9", odd));
    }
}

TEST_CASE("many parts answer whoever asked for several") {
    const std::string parts = "Content-Type: Multipart/Byteranges; boundary=x\r\n";
    const auto answers = [&](const std::string& range, const std::string& type) {
        return judged("HTTP/1.1 206 Partial Content",
                      aged_five + type,
                      5,
                      asking("Range: bytes=" + range + "\r\n"))
            .age.has_value();
    };
    CHECK(answers("0-1,7-9", parts));
    CHECK(!answers("0-1", parts));
    CHECK(!answers("0-1,7-9", "Content-Type: text/plain\r\n"));
}

TEST_CASE("a request that cannot be read again has no claim to a part or a 304") {
    for (const auto* request :
         {"", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nno field\r\n\r\n"}) {
        CAPTURE(request);
        CHECK(!judged("HTTP/1.1 304 Not Modified", "Age: 7\r\n", 0, request).age);
        CHECK(judged(ok_line, aged_five, 5, request).age);
    }
}

TEST_CASE("what no store shares is no answer of one, whichever field says so") {
    for (const auto* said : {"Cache-Control: private, max-age=60\r\n",
                             "Cache-Control: no-store\r\n",
                             "Cache-Control: max-age=60\r\nCache-Control: No-Store\r\n",
                             "Cache-Control: no-cache, max-age=60\r\n",
                             "Cache-Control: must-understand, no-store, max-age=60, no-cache\r\n",
                             "CDN-Cache-Control: private\r\n",
                             "Cache-Control: max-age=60\r\nCDN-Cache-Control: no-store\r\n"}) {
        CAPTURE(said);
        const auto got = judged(ok_line, aged_five + said, 5);
        CHECK(got.is_framed);
        CHECK(!got.age);
        CHECK(got.frees_connection);
    }
    for (const auto* said : {"Cache-Control: private=\"set-cookie\", max-age=60\r\n",
                             "Cache-Control: no-cache=\"x\", max-age=60\r\n",
                             "Cache-Control: must-understand, no-store, max-age=60\r\n",
                             "Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60\r\n",
                             "Set-Cookie: a=b\r\nCache-Control: max-age=60\r\n"}) {
        CAPTURE(said);
        CHECK(judged(ok_line, aged_five + said, 5).age);
    }
    // What the rules of its URL set aside here, they set aside at the sibling.
    http::freshness_rules aside;
    aside.set_aside.private_ = aside.set_aside.no_store = true;
    const auto request = asking();
    const sibling_terms by_rule{.request = request,
                                .asked = {},
                                .rules = aside,
                                .targeted = targeted,
                                .max_age = std::nullopt,
                                .sent = now,
                                .came = now};
    CHECK(judged_by(by_rule, ok_line, aged_five + "Cache-Control: private, max-age=60\r\n", 5).age);
    CHECK(!judged_by(by_rule,
                     ok_line,
                     aged_five + "Set-Cookie: a=b\r\nCache-Control: private, max-age=60\r\n",
                     5)
               .age);
}

TEST_CASE("what is stale by its own word is no answer, unless it may be") {
    const auto answers = [](const std::string& said, http::request_directives asked = {}) {
        const auto request = asking();
        auto terms = terms_of(request);
        terms.asked = asked;
        return judged_by(terms, ok_line, aged_five + said, 5).age.has_value();
    };
    CHECK(answers("Cache-Control: max-age=8\r\n"));
    CHECK(!answers("Cache-Control: max-age=7\r\n"));
    CHECK(!answers("Cache-Control: max-age=0\r\n"));
    CHECK(!answers("Cache-Control: s-maxage=7, max-age=60\r\n"));
    CHECK(!answers("Expires: 0\r\n"));
    CHECK(answers("Cache-Control: max-age=7, stale-while-revalidate=1\r\n"));
    CHECK(!answers("Cache-Control: max-age=7, stale-while-revalidate=1, must-revalidate\r\n"));
    CHECK(!answers("Cache-Control: max-age=7, stale-if-error=60\r\n"));
    http::request_directives any_stale;
    any_stale.max_stale = http::seconds{100};
    CHECK(answers("Cache-Control: max-age=7\r\n", any_stale));
    CHECK(!answers("Cache-Control: max-age=7, must-revalidate\r\n", any_stale));
    // A guess is every cache's own.
    CHECK(answers(""));
    CHECK(answers("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
    // A date of long ago says as much as an Age.
    CHECK(!answers("Cache-Control: max-age=60\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
}

TEST_CASE("what is older than peers[].max_age is not taken, whatever it says of itself") {
    const auto answers = [](http::seconds max_age, const std::string& said) {
        const auto request = asking();
        auto terms = terms_of(request);
        terms.max_age = max_age;
        return judged_by(terms, ok_line, aged_five + said, 5).age.has_value();
    };
    using std::chrono::seconds;
    CHECK(answers(seconds{8}, "Cache-Control: max-age=31536000\r\n"));
    CHECK(!answers(seconds{7}, "Cache-Control: max-age=31536000\r\n"));
    CHECK(!answers(seconds{1}, ""));
    CHECK(answers(seconds{8}, ""));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_sibling_answer
