#include "proxy/http/storability.hpp"
#include "proxy/http/target.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

namespace reprise::proxy::http {

namespace {

using texts = std::initializer_list<std::string_view>;

storability judge(unsigned status,
                  texts response_lines,
                  texts request_lines = {},
                  std::string_view method = "GET") {
    const auto response = lines(response_lines);
    const auto request = lines(request_lines);
    const auto allowed = read_response_directives(response);
    const auto facts = freshness_of(status, response, allowed, sunday, sunday, freshness_rules{});
    return judge_storable(
        method, status, request, read_request_directives(request), response, allowed, facts);
}

storability judge_posted(unsigned status,
                         texts response_lines,
                         std::string_view url = "http://Example.org:80/a?b",
                         texts request_lines = {}) {
    const auto response = lines(response_lines);
    const auto request = lines(request_lines);
    const auto allowed = read_response_directives(response);
    const auto facts = freshness_of(status, response, allowed, sunday, sunday, freshness_rules{});
    const auto wanted = parse_target(boost::beast::http::verb::post, url);
    REQUIRE(wanted.has_value());
    return judge_post(
        status, *wanted, request, read_request_directives(request), response, allowed, facts);
}

TEST_SUITE("http/storability") {
    TEST_CASE("a GET's fresh 200 is stored") {
        CHECK(judge(200, {"Cache-Control: max-age=60"}) == storability::storable);
    }

    TEST_CASE("answers to other methods are not stored") {
        for (const auto* method : {"HEAD", "POST", "PUT", "OPTIONS", "get", "FOO", ""}) {
            CAPTURE(method);
            CHECK(judge(200, {"Cache-Control: max-age=60"}, {}, method) == storability::method);
        }
    }

    TEST_CASE("no-store of either side is obeyed") {
        CHECK(judge(200, {"Cache-Control: max-age=60"}, {"Cache-Control: no-store"}) ==
              storability::no_store_request);
        CHECK(judge(200, {"Cache-Control: max-age=60, No-Store"}) == storability::no_store);
    }

    TEST_CASE("private is not stored, but for all that its field names do not name") {
        CHECK(judge(200, {"Cache-Control: private, max-age=60"}) == storability::private_response);
        CHECK(judge(200, {"Cache-Control: private=\"X\", max-age=60"}) == storability::storable);
        CHECK(judge(200, {"Cache-Control: private=\"ETag\", max-age=60"}) ==
              storability::private_response);
        CHECK(judge(200, {"Cache-Control: public, private, max-age=60"}) ==
              storability::private_response);
    }

    TEST_CASE("every final status with an explicit lifetime is stored, known or not") {
        for (unsigned status : {200u, 201u, 203u, 204u, 299u, 301u, 302u, 303u, 307u, 308u,
                                400u, 404u, 410u, 416u, 499u, 500u, 502u, 503u, 504u, 599u}) {
            CAPTURE(status);
            CHECK(judge(status, {"Cache-Control: max-age=60"}) == storability::storable);
        }
    }

    TEST_CASE("a status without heuristic freshness needs an explicit lifetime or public") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
        for (unsigned status : {201u, 302u, 403u, 502u, 599u}) {
            CAPTURE(status);
            CHECK(judge(status, {modified}) == storability::no_lifetime);
            CHECK(judge(status, {modified, "Cache-Control: public"}) == storability::storable);
        }
        CHECK(judge(404, {modified}) == storability::storable);
    }

    TEST_CASE("what answers the exchange and not for the URL is not stored") {
        for (unsigned status :
             {0u, 100u, 103u, 199u, 226u, 304u, 407u, 412u, 428u, 429u, 431u, 511u, 600u, 999u}) {
            CAPTURE(status);
            CHECK(judge(status, {"Cache-Control: max-age=60"}) == storability::status);
        }
    }

    TEST_CASE("what speaks of a part is not stored") {
        CHECK(judge(206, {"Cache-Control: max-age=60"}) == storability::partial);
        CHECK(judge(416, {"Cache-Control: max-age=60"}, {"Range: bytes=9-"}) ==
              storability::partial);
        CHECK(judge(200, {"Cache-Control: max-age=60"}, {"Range: bytes=9-"}) ==
              storability::storable);
    }

    TEST_CASE("must-understand overrides no-store where the status is understood") {
        CHECK(judge(200, {"Cache-Control: max-age=60, no-store, must-understand"}) ==
              storability::storable);
        CHECK(judge(599, {"Cache-Control: max-age=60, no-store, must-understand"}) ==
              storability::must_understand);
        CHECK(judge(599, {"Cache-Control: max-age=60, must-understand"}) ==
              storability::must_understand);
    }

    TEST_CASE("must-understand overrides no rule but no-store") {
        CHECK(judge(200, {"Cache-Control: max-age=60, no-store, must-understand, private"}) ==
              storability::private_response);
        CHECK(judge(200,
                    {"Cache-Control: max-age=60, no-store, must-understand"},
                    {"Cache-Control: no-store"}) == storability::no_store_request);
    }

    TEST_CASE("an answer to an authorised request needs leave") {
        CHECK(judge(200, {"Cache-Control: max-age=60"}, {"Authorization: Basic Zm9v"}) ==
              storability::authorization);
        CHECK(judge(200, {"Cache-Control: max-age=60, proxy-revalidate"}, {"Authorization: x"}) ==
              storability::authorization);
        for (const auto* leave : {"Cache-Control: max-age=60, public",
                                  "Cache-Control: max-age=60, must-revalidate",
                                  "Cache-Control: s-maxage=60"}) {
            CAPTURE(leave);
            CHECK(judge(200, {leave}, {"Authorization: x"}) == storability::storable);
        }
    }

    TEST_CASE("Vary: * is not stored, wherever the star stands") {
        for (const auto* vary : {"Vary: *", "Vary: *, *", "Vary: , *", "Vary: Foo, *"}) {
            CAPTURE(vary);
            CHECK(judge(200, {"Cache-Control: max-age=60", vary}) == storability::vary_any);
            CHECK(judge(200, {"Cache-Control: max-age=60", "Vary: Foo", vary}) ==
                  storability::vary_any);
        }
        CHECK(judge(200, {"Cache-Control: max-age=60", "Vary: Foo"}) == storability::storable);
    }

    TEST_CASE("Set-Cookie is stored only with a lifetime that the origin stated") {
        const auto* cookie = "Set-Cookie: id=1";
        CHECK(judge(200, {"Cache-Control: max-age=60", cookie}) == storability::storable);
        CHECK(judge(200, {"Expires: Sun, 06 Nov 1994 09:49:37 GMT", cookie}) ==
              storability::storable);
        CHECK(judge(200, {"Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT", cookie}) ==
              storability::set_cookie);
        CHECK(judge(200, {"ETag: \"a\"", cookie}) == storability::set_cookie);
        CHECK(judge(200, {"Cache-Control: max-age=0", "ETag: \"a\"", cookie}) ==
              storability::set_cookie);
        CHECK(judge(200, {"Cache-Control: public", "ETag: \"a\"", cookie}) ==
              storability::set_cookie);
    }

    TEST_CASE("without lifetime and validator nothing is stored") {
        CHECK(judge(200, {}) == storability::useless);
        CHECK(judge(200, {"Cache-Control: max-age=0"}) == storability::useless);
        CHECK(judge(200, {"Expires: 0"}) == storability::useless);
        CHECK(judge(200, {"ETag:", "Last-Modified: long ago"}) == storability::useless);
        CHECK(judge(200, {"Cache-Control: no-cache, max-age=60"}) == storability::useless);
    }

    TEST_CASE("a validator alone is enough") {
        CHECK(judge(200, {"ETag: W/\"a\""}) == storability::storable);
        CHECK(judge(200, {"Cache-Control: no-cache", "ETag: \"a\""}) == storability::storable);
        CHECK(judge(200, {"Expires: 0", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"}) ==
              storability::storable);
    }

    TEST_CASE("what may be used stale is stored without a validator") {
        CHECK(judge(200, {"Cache-Control: max-age=1500", "Age: 2000"}) == storability::storable);
        CHECK(judge(200, {"Cache-Control: max-age=0, stale-while-revalidate=9"}) ==
              storability::storable);
        CHECK(judge(200, {"Cache-Control: max-age=0, stale-if-error=9"}) == storability::storable);
        CHECK(judge(200, {"Cache-Control: max-age=0, stale-if-error=0"}) == storability::useless);
        CHECK(judge(200, {"Cache-Control: max-age=1500, must-revalidate", "Age: 2000"}) ==
              storability::useless);
        CHECK(judge(200, {"Cache-Control: s-maxage=1500", "Age: 2000"}) == storability::useless);
    }

    TEST_CASE("every verdict has a name of its own that is a token") {
        std::set<std::string_view> names;
        for (auto verdict = storability::storable; verdict <= storability::useless;
             verdict = static_cast<storability>(static_cast<int>(verdict) + 1)) {
            const auto name = to_string(verdict);
            CHECK(names.insert(name).second);
            CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos);
        }
    }

    TEST_CASE("where cookies are never stored, no lifetime helps") {
        const auto response = lines({"Set-Cookie: a=b", "Cache-Control: max-age=60"});
        const auto allowed = read_response_directives(response);
        const auto facts = freshness_of(200, response, allowed, sunday, sunday, freshness_rules{});
        CHECK(judge_storable("GET", 200, {}, {}, response, allowed, facts) ==
              storability::storable);
        CHECK(
            judge_storable("GET", 200, {}, {}, response, allowed, facts, {.never_cookies = true}) ==
            storability::set_cookie);
    }

    TEST_CASE("an error with a negative lifetime is stored, unless it says no or sets a cookie") {
        const auto verdict = [](texts response_lines, unsigned status) {
            const auto response = lines(response_lines);
            const auto allowed = read_response_directives(response);
            const auto facts = freshness_of(
                status, response, allowed, sunday, sunday, freshness_rules{.negative = seconds{9}});
            return judge_storable("GET", status, {}, {}, response, allowed, facts);
        };
        for (unsigned status : {404u, 410u, 500u, 503u}) {
            CAPTURE(status);
            CHECK(verdict({}, status) == storability::storable);
            CHECK(verdict({"Cache-Control: no-store"}, status) == storability::no_store);
            CHECK(verdict({"Cache-Control: no-cache"}, status) == storability::useless);
            CHECK(verdict({"Cache-Control: private"}, status) == storability::private_response);
            CHECK(verdict({"Set-Cookie: a=b"}, status) == storability::set_cookie);
        }
        CHECK(verdict({}, 403) == storability::no_lifetime);
    }

    TEST_CASE("a POST's answer that names its own URL and a lifetime stands for a GET's") {
        const auto* lifetime = "Cache-Control: max-age=60";
        for (const auto* same : {"Content-Location: http://example.org/a?b",
                                 "Content-Location: HTTP://EXAMPLE.ORG:80/a?b",
                                 "Content-Location: /a?b"}) {
            CAPTURE(same);
            CHECK(judge_posted(200, {lifetime, same}) == storability::storable);
            CHECK(judge_posted(201, {lifetime, same}) == storability::storable);
            CHECK(judge_posted(200, {same}) == storability::method);
            CHECK(judge_posted(200, {"Cache-Control: max-age=0", "ETag: \"a\"", same}) ==
                  storability::method);
            CHECK(judge_posted(200,
                               {"Cache-Control: public",
                                "Last-Modified: Sun, 06 Nov 1984 08:32:57 GMT",
                                same}) == storability::method);
            CHECK(judge_posted(404, {lifetime, same}) == storability::method);
            CHECK(judge_posted(200, {lifetime, same, "Content-Location: /other"}) ==
                  storability::method);
        }
        for (const auto* other : {"Content-Location: /a",
                                  "Content-Location: /A?b",
                                  "Content-Location: a?b",
                                  "Content-Location: //example.org/a?b",
                                  "Content-Location: http://example.org:8080/a?b",
                                  "Content-Location: http://example.com/a?b",
                                  "Content-Location: https://example.org/a?b",
                                  "Content-Location: http://user@example.org/a?b",
                                  "Content-Location: /a?b#c",
                                  "Content-Location:"}) {
            CAPTURE(other);
            CHECK(judge_posted(200, {lifetime, other}) == storability::method);
        }
        CHECK(judge_posted(200, {lifetime}) == storability::method);
    }

    TEST_CASE("a POST's answer is held to every rule of a GET's") {
        const auto* here = "Content-Location: /a?b";
        CHECK(judge_posted(200, {"Cache-Control: max-age=60, private", here}) ==
              storability::private_response);
        CHECK(judge_posted(200, {"Cache-Control: max-age=60, no-store", here}) ==
              storability::no_store);
        CHECK(judge_posted(200, {"Cache-Control: max-age=60", "Vary: *", here}) ==
              storability::vary_any);
        CHECK(judge_posted(206, {"Cache-Control: max-age=60", here}) == storability::partial);
        CHECK(judge_posted(200,
                           {"Cache-Control: max-age=60", here},
                           "http://example.org/a?b",
                           {"Authorization: x"}) == storability::authorization);
        CHECK(judge_posted(200,
                           {"Cache-Control: max-age=60", here},
                           "http://example.org/a?b",
                           {"Cache-Control: no-store"}) == storability::no_store_request);
    }
}

}  // namespace

}  // namespace reprise::proxy::http
