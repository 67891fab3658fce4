#include "proxy/http/conditional.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::http {

namespace {

using namespace std::chrono_literals;
using texts = std::initializer_list<std::string_view>;

std::string judged(texts request, texts stored, unsigned status = 200) {
    return std::string{to_string(
        judge_preconditions(lines(request), status, lines(stored), sunday + 500ms, sunday + 1h))};
}

std::string validated(texts stored, texts not_modified) {
    return std::string{to_string(judge_validation(lines(stored), 36, lines(not_modified), sunday))};
}

std::string freshened(texts stored, texts not_modified, std::size_t most_bytes = 4096) {
    const auto old_lines = lines(stored);
    const auto new_lines = lines(not_modified);
    const auto result = freshen(old_lines, new_lines, most_bytes, 50);
    return result ? joined(*result) : "too large";
}

head_effect head_says(std::initializer_list<std::string_view> stored,
                      std::initializer_list<std::string_view> response,
                      unsigned status = 200,
                      unsigned stored_status = 200) {
    const auto old_lines = lines(stored);
    const auto new_lines = lines(response);
    return judge_head(stored_status, old_lines, 10, status, new_lines);
}

TEST_SUITE("http/conditional") {
    TEST_CASE("entity-tags compare as RFC 9110 8.8.3.2's table says") {
        struct row {
            const char *a, *b;
            bool strong, weak;
        };
        const row rows[] = {
            {"W/\"1\"", "W/\"1\"", false, true},
            {"W/\"1\"", "W/\"2\"", false, false},
            {"W/\"1\"", "\"1\"", false, true},
            {"\"1\"", "\"1\"", true, true},
            {"\"1\"", "\"2\"", false, false},
            {"abc", "abc", false, true},
            {"abc", "\"abc\"", false, false},
            {"", "", false, false},
            {"\"a\"", "\"A\"", false, false},
        };
        for (const auto& each : rows) {
            CAPTURE(each.a);
            CAPTURE(each.b);
            CHECK(equal_strong(each.a, each.b) == each.strong);
            CHECK(equal_strong(each.b, each.a) == each.strong);
            CHECK(equal_weak(each.a, each.b) == each.weak);
            CHECK(equal_weak(each.b, each.a) == each.weak);
        }
    }

    TEST_CASE("If-None-Match compares weakly with every tag of every line") {
        for (const auto* matching : {"If-None-Match: \"a\"",
                                     "If-None-Match: W/\"a\"",
                                     "If-None-Match: *",
                                     "If-None-Match: \"x\", \"a\"",
                                     "If-None-Match: \"x\",,W/\"a\" ,\"y\"",
                                     "If-None-Match: \"x,\\\", \"a\""}) {
            CAPTURE(matching);
            CHECK(judged({matching}, {"ETag: \"a\""}) == "not-modified");
            CHECK(judged({matching}, {"ETag: W/\"a\""}) == "not-modified");
            CHECK(judged({"If-None-Match: \"z\"", matching}, {"ETag: \"a\""}) == "not-modified");
        }
        for (const auto* other : {"If-None-Match: \"b\"",
                                  "If-None-Match:",
                                  "If-None-Match: a",
                                  "If-None-Match: \"A\"",
                                  "If-None-Match: \"a",
                                  "If-None-Match: w/\"a\"",
                                  "If-None-Match: \"x, \"a\"",
                                  "If-None-Match: \"a\"\"b\""}) {
            CAPTURE(other);
            CHECK(judged({other}, {"ETag: \"a\""}) == "serve");
        }
    }

    TEST_CASE("an entity-tag may hold commas and obs-text") {
        CHECK(judged({"If-None-Match: \"a,b\""}, {"ETag: \"a,b\""}) == "not-modified");
        CHECK(judged({"If-None-Match: \"\xc3\xbc\""}, {"ETag: \"\xc3\xbc\""}) == "not-modified");
    }

    TEST_CASE("without a stored ETag only the star matches") {
        CHECK(judged({"If-None-Match: \"a\""}, {}) == "serve");
        CHECK(judged({"If-None-Match: \"\""}, {"ETag:"}) == "serve");
        CHECK(judged({"If-None-Match: *"}, {}) == "not-modified");
    }

    TEST_CASE("If-None-Match wins over If-Modified-Since") {
        const auto* late = "If-Modified-Since: Sun, 06 Nov 1994 09:00:00 GMT";
        const auto* early = "If-Modified-Since: Sun, 06 Nov 1994 01:00:00 GMT";
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT";
        CHECK(judged({late, "If-None-Match: \"b\""}, {"ETag: \"a\"", modified}) == "serve");
        CHECK(judged({early, "If-None-Match: \"a\""}, {"ETag: \"a\"", modified}) == "not-modified");
        CHECK(judged({late, "If-None-Match: \"b\""}, {modified}) == "serve");
    }

    TEST_CASE("If-Modified-Since is measured against Last-Modified, Date, then the arrival") {
        const auto* early = "If-Modified-Since: Sun, 06 Nov 1994 07:00:00 GMT";
        const auto* exact = "If-Modified-Since: Sunday, 06-Nov-94 08:00:00 GMT";
        const auto* arrival = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT";
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT";
        const auto* date = "Date: Sun, 06 Nov 1994 08:00:00 GMT";
        const auto* late_date = "Date: Sun, 06 Nov 1994 08:30:00 GMT";
        CHECK(judged({early}, {modified, late_date}) == "serve");
        CHECK(judged({exact}, {modified, late_date}) == "not-modified");
        CHECK(judged({arrival}, {modified, late_date}) == "not-modified");
        CHECK(judged({early}, {date}) == "serve");
        CHECK(judged({exact}, {date}) == "not-modified");
        CHECK(judged({exact}, {"Last-Modified: x", date}) == "not-modified");
        CHECK(judged({exact}, {}) == "serve");
        CHECK(judged({arrival}, {}) == "not-modified");
    }

    TEST_CASE("an If-Modified-Since that is no single date is ignored") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT";
        const auto* valid = "If-Modified-Since: Sun, 06 Nov 1994 09:00:00 GMT";
        CHECK(judged({"If-Modified-Since: yesterday"}, {modified}) == "none");
        CHECK(judged({"If-Modified-Since:"}, {modified}) == "none");
        CHECK(judged({valid, valid}, {modified}) == "none");
    }

    TEST_CASE("If-Match and If-Unmodified-Since are for the origin") {
        CHECK(judged({"If-Match: \"a\""}, {"ETag: \"a\""}) == "forward");
        CHECK(judged({"If-Unmodified-Since: x", "If-None-Match: \"a\""}, {"ETag: \"a\""}) ==
              "forward");
    }

    TEST_CASE("a request without preconditions has none") {
        CHECK(judged({"If-Range: \"a\"", "Accept: x"}, {"ETag: \"a\""}) == "none");
    }

    TEST_CASE("preconditions mean nothing to a stored answer that is not 2xx") {
        for (unsigned status : {301u, 404u, 500u}) {
            CHECK(judged({"If-None-Match: *"}, {"ETag: \"a\""}, status) == "none");
            CHECK(judged({"If-Match: \"b\""}, {"ETag: \"a\""}, status) == "none");
        }
        CHECK(judged({"If-None-Match: *"}, {}, 204) == "not-modified");
    }

    TEST_CASE("a 304 leaves out what describes the content") {
        for (const auto* in : {"ETag: \"a\"",
                               "Date: x",
                               "Cache-Control: x",
                               "Expires: x",
                               "Vary: x",
                               "Content-Location: /x",
                               "Set-Cookie: a=b",
                               "Content-Security-Policy: x",
                               "Content-Security-Policy-Report-Only: x",
                               "X-Content-Foo: x"}) {
            CAPTURE(in);
            CHECK(belongs_in_not_modified(lines({in})[0]));
        }
        for (const auto* out : {"Content-Length: 5",
                                "content-type: x",
                                "Content-Encoding: x",
                                "Content-Language: x",
                                "Content-MD5: x",
                                "Content-Foo: x"}) {
            CAPTURE(out);
            CHECK_FALSE(belongs_in_not_modified(lines({out})[0]));
        }
    }

    TEST_CASE("validation sends every validator there is, as it was received") {
        const auto both = lines({"ETag:",
                                 "ETag: W/\"a\"",
                                 "Last-Modified: long ago",
                                 "Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"});
        std::string head;
        append_validation(head, validators_of(both, sunday));
        CHECK(head == "If-None-Match: W/\"a\"\r\n"
                      "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n");
        head.clear();
        append_validation(head, validators_of({}, sunday));
        CHECK(head.empty());
        CHECK(validators_of({}, sunday).empty());
        const auto invalid = lines({"Last-Modified: x"});
        CHECK(validators_of(invalid, sunday).empty());
    }

    TEST_CASE("a 304 confirms what its validators select") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT";
        const auto* changed = "Last-Modified: Sun, 06 Nov 1994 08:00:01 GMT";
        const auto* same_second = "Date: Sun, 06 Nov 1994 08:00:00 GMT";
        const auto* later = "Date: Sun, 06 Nov 1994 08:00:01 GMT";
        struct row {
            texts stored, not_modified;
            const char* expected;
        };
        const row rows[] = {
            {{"ETag: \"a\""}, {"ETag: \"a\""}, "confirmed"},
            {{"ETag: \"a\""}, {"ETag: \"b\""}, "other-validator"},
            {{"ETag: \"a\""}, {"ETag: W/\"a\""}, "confirmed"},
            {{"ETag: W/\"a\""}, {"ETag: W/\"a\""}, "confirmed"},
            {{"ETag: W/\"a\""}, {"ETag: \"a\""}, "other-validator"},
            {{"ETag: W/\"a\""}, {"ETag: W/\"b\""}, "other-validator"},
            // As a server says it that weakens the tags of what it compresses.
            {{"ETag: W/\"a\"", modified, later}, {"ETag: \"a\"", modified}, "confirmed"},
            {{"ETag: W/\"a\"", modified, later}, {"ETag: \"b\"", modified}, "other-validator"},
            {{"ETag: W/\"a\"", modified, later}, {"ETag: \"a\"", changed}, "other-validator"},
            {{"ETag: W/\"a\"", modified, later}, {"ETag: \"a\""}, "other-validator"},
            {{"ETag: W/\"a\"", modified, same_second},
             {"ETag: \"a\"", modified},
             "other-validator"},
            {{"ETag: \"b\"", modified, later}, {"ETag: \"a\"", modified}, "other-validator"},
            {{"ETag: \"a\"", modified}, {"ETag: \"a\"", changed}, "confirmed"},
            {{"ETag: \"a\"", modified}, {"ETag: \"b\"", modified}, "other-validator"},
            {{modified}, {modified}, "confirmed"},
            {{modified}, {changed}, "other-validator"},
            {{modified, later}, {modified, "ETag: \"new\""}, "confirmed"},
            {{modified, same_second}, {modified, "ETag: \"new\""}, "other-validator"},
            {{modified}, {modified, "ETag: \"new\""}, "other-validator"},
            {{modified, same_second}, {modified, "ETag: W/\"new\""}, "confirmed"},
            {{modified, later}, {"ETag: \"new\""}, "other-validator"},
            {{modified, later}, {"ETag: W/\"new\""}, "other-validator"},
            {{}, {"ETag: W/\"new\""}, "other-validator"},
            {{"ETag: \"a\""}, {modified}, "confirmed"},
            {{"ETag: \"a\""}, {}, "confirmed"},
            {{modified}, {}, "confirmed"},
        };
        for (const auto& each : rows) {
            CAPTURE(joined(lines(each.stored)));
            CAPTURE(joined(lines(each.not_modified)));
            CHECK(validated(each.stored, each.not_modified) == each.expected);
        }
    }

    TEST_CASE("a 304 of another length confirms only under the same strong tag") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT";
        CHECK(validated({modified}, {modified, "Content-Length: 36"}) == "confirmed");
        CHECK(validated({modified}, {modified, "Content-Length: 10"}) == "other-length");
        CHECK(validated({modified}, {modified, "Content-Length: 0"}) == "other-length");
        CHECK(validated({modified}, {modified, "Content-Length: 36x"}) == "other-length");
        CHECK(validated({modified}, {modified, "Content-Length:"}) == "other-length");
        CHECK(validated({"ETag: W/\"a\""}, {"ETag: W/\"a\"", "Content-Length: 10"}) ==
              "other-length");
        CHECK(validated({"ETag: \"a\""}, {"Content-Length: 10"}) == "other-length");
        CHECK(validated({"ETag: \"a\""}, {"ETag: \"a\"", "Content-Length: 10"}) == "confirmed");
    }

    TEST_CASE("freshening replaces by name and keeps the rest") {
        CHECK(freshened({"Server: a", "X: 1", "x: 2", "Y: 3"}, {"X: 9"}) == "Server: a|Y: 3|X: 9");
        CHECK(freshened({"Cache-Control: max-age=1"}, {"cache-control: max-age=2", "New: z"}) ==
              "cache-control: max-age=2|New: z");
        CHECK(freshened({"X: 1"}, {"X: 2", "X: 3"}) == "X: 2|X: 3");
        CHECK(freshened({"Content-Type: a", "Content-Foo: 1"}, {"Content-Type: b"}) ==
              "Content-Foo: 1|Content-Type: b");
    }

    TEST_CASE("freshening never touches what describes the stored bytes") {
        CHECK(freshened({"Content-Length: 36", "Content-Encoding: gzip"},
                        {"Content-Length: 10",
                         "Content-Encoding: br",
                         "Content-Range: bytes 0-1/2",
                         "Transfer-Encoding: chunked"}) ==
              "Content-Length: 36|Content-Encoding: gzip");
        CHECK(freshened({"Content-Digest: a", "Content-MD5: b", "Repr-Digest: c"},
                        {"Content-Digest: x", "content-md5: y", "Repr-Digest: z"}) ==
              "Content-Digest: a|content-md5: y|Repr-Digest: z");
        CHECK(freshened({}, {"Content-Length: 10", "Content-Encoding: br"}) == "");
    }

    TEST_CASE("freshening takes no cookie, and leaves the one that is stored") {
        CHECK(freshened({"X: 1"}, {"Set-Cookie: a=b", "Set-Cookie2: a=b", "X: 2"}) == "X: 2");
        CHECK(freshened({"Set-Cookie: a=b"}, {"set-cookie: c=d"}) == "Set-Cookie: a=b");
    }

    TEST_CASE("freshening takes no line that belongs to the 304's connection") {
        CHECK(freshened({"X: 1", "A: 2"},
                        {"Connection: x, keep-alive",
                         "X: 9",
                         "Keep-Alive: 5",
                         "Upgrade: h2c",
                         "Trailer: y",
                         "TE: z",
                         "A: 3",
                         "Proxy-Authenticate: Basic",
                         "Proxy-Connection: q"}) == "X: 1|A: 3");
    }

    TEST_CASE("a 304's Connection cannot keep its Cache-Control from the stored head") {
        CHECK(freshened({"Cache-Control: max-age=9"},
                        {"Connection: cache-control", "Cache-Control: no-store"}) ==
              "Cache-Control: no-store");
    }

    TEST_CASE("Date and Age are the 304's or none") {
        CHECK(freshened({"Date: old", "Age: 100", "X: 1"}, {}) == "X: 1");
        CHECK(freshened({"Date: old", "Age: 100", "X: 1"}, {"Date: new", "Age: 3"}) ==
              "X: 1|Date: new|Age: 3");
    }

    TEST_CASE("a 304 cannot grow a head past its limits") {
        CHECK(freshened({"X: 1"}, {"Y: 2"}, 12) == "X: 1|Y: 2");
        CHECK(freshened({"X: 1"}, {"Y: 2"}, 11) == "too large");
        std::vector<field> many(51, field{field_id::unknown, "Y", "2"});
        CHECK_FALSE(freshen({}, many, 4096, 50));
    }

    TEST_CASE("a 200 to HEAD of what is compressed as it is sent says nothing of it") {
        const auto* modified = "Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT";
        CHECK(head_says({"ETag: W/\"a\"", modified},
                        {"ETag: \"a\"", modified, "Content-Length: 1000"}) == head_effect::nothing);
        CHECK(head_says({"ETag: W/\"a\"", modified},
                        {"ETag: \"a\"", "Last-Modified: Sun, 06 Nov 1994 08:32:58 GMT"}) ==
              head_effect::outdate);
        CHECK(head_says({"ETag: W/\"a\"", modified}, {"ETag: \"b\"", modified}) ==
              head_effect::outdate);
    }

    TEST_CASE("a 200 to HEAD that names no representation confirms none") {
        CHECK(head_says({}, {}) == head_effect::nothing);
        CHECK(head_says({}, {"Content-Length: 10"}) == head_effect::nothing);
        CHECK(head_says({"ETag: \"a\""}, {}) == head_effect::nothing);
        CHECK(head_says({"Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT"}, {"Content-Length: 10"}) ==
              head_effect::nothing);
    }

    TEST_CASE("a 200 to HEAD with the stored validators freshens") {
        CHECK(head_says({"ETag: \"a\""}, {"ETag: \"a\"", "Content-Length: 10"}) ==
              head_effect::freshen);
        CHECK(head_says({"ETag: \"a\""}, {"ETag: W/\"a\""}) == head_effect::freshen);
        CHECK(head_says({"Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT"},
                        {"Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT"}) == head_effect::freshen);
    }

    TEST_CASE("a 200 to HEAD with another validator or length outdates what is stored") {
        CHECK(head_says({"ETag: \"a\""}, {"ETag: \"b\""}) == head_effect::outdate);
        CHECK(head_says({"ETag: W/\"a\""}, {"ETag: \"a\""}) == head_effect::outdate);
        CHECK(head_says({}, {"ETag: \"a\""}) == head_effect::outdate);
        CHECK(head_says({}, {"ETag: W/\"a\""}) == head_effect::outdate);
        CHECK(head_says({"Last-Modified: Sun, 06 Nov 1994 08:32:57 GMT"},
                        {"Last-Modified: Sun, 06 Nov 1994 08:32:58 GMT"}) == head_effect::outdate);
        CHECK(head_says({}, {"Last-Modified: Sun, 06 Nov 1994 08:32:58 GMT"}) ==
              head_effect::outdate);
        CHECK(head_says({}, {"Content-Length: 11"}) == head_effect::outdate);
        CHECK(head_says({"ETag: \"a\""}, {"ETag: \"a\"", "Content-Length: 11"}) ==
              head_effect::outdate);
        CHECK(head_says({}, {"Content-Length: x"}) == head_effect::outdate);
    }

    TEST_CASE("HEAD's other statuses, and a stored one other than 200, say nothing") {
        for (unsigned status : {0u, 204u, 206u, 301u, 304u, 404u, 410u, 500u}) {
            CAPTURE(status);
            CHECK(head_says({"ETag: \"a\""}, {"ETag: \"b\""}, status) == head_effect::nothing);
            CHECK(head_says({}, {}, 200, status) == head_effect::nothing);
        }
    }

    TEST_CASE("without a Last-Modified the stored Date is what If-Modified-Since is held to") {
        const auto stored = lines({"Date: Sun, 06 Nov 1994 08:49:37 GMT"});
        const auto before = lines({"If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT"});
        const auto same = lines({"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"});
        CHECK(judge_preconditions(before, 200, stored, sunday, sunday) == precondition::serve);
        CHECK(judge_preconditions(same, 200, stored, sunday, sunday) == precondition::not_modified);
    }

    TEST_CASE("obs-text in a tag is compared byte by byte, and a missing quote is a difference") {
        CHECK(equal_weak("\"\xfc\"", "W/\"\xfc\""));
        CHECK(equal_strong("\"\xfc\"", "\"\xfc\""));
        CHECK_FALSE(equal_weak("\"\xfc\"", "\"\xc3\xbc\""));
        CHECK_FALSE(equal_weak("a", "\"a\""));
        CHECK_FALSE(equal_strong("a", "a"));
    }
}

}  // namespace

}  // namespace reprise::proxy::http
