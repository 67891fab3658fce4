// One URL, several stored responses: which fields of the request chose among them (RFC 9111 4.1).

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/vary") {

    using namespace reprise::tests;

    namespace {

    /// Answers with the values of two request fields, and says that it looked at them.
    void put_page(world& w, const std::string& vary_lines) {
        w.origin.on("/a", [vary_lines](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n" + vary_lines,
                               request.fields.all("Accept-Language") + "|" +
                                   request.fields.all("Accept") + "|" +
                                   request.fields.all("X-Foo")));
        });
    }

    }  // namespace

    TEST_CASE("each variant is stored and hit for itself") {
        world w;
        put_page(w, "Vary: Accept-Language\r\n");
        CHECK(w.get("/a", "Accept-Language: de\r\n").body == "de||");
        const auto other = w.get("/a", "Accept-Language: fr\r\n");
        CHECK(other.body == "fr||");
        CHECK(cache_status_of(other).fwd == "vary-miss");
        CHECK(w.get("/a").body == "||");
        for (const std::string language : {"de", "fr"}) {
            CHECK(hit_body(w.get("/a", "Accept-Language: " + language + "\r\n")) ==
                  language + "||");
        }
        CHECK(is_hit(w.get("/a")));
        CHECK(w.origin.count("/a") == 3);
    }

    TEST_CASE("a second Vary field line counts as much as the first") {
        world w;
        put_page(w, "Vary: Accept-Language\r\nVary: Accept\r\n");
        CHECK(w.get("/a", "Accept: text/html\r\n").body == "|text/html|");
        CHECK(w.get("/a", "Accept: image/png\r\n").body == "|image/png|");
        CHECK(is_hit(w.get("/a", "Accept: text/html\r\n")));
    }

    TEST_CASE("names in Vary are compared without case") {
        world w;
        put_page(w, "vary: aCCEPT-language\r\n");
        CHECK(w.get("/a", "Accept-Language: de\r\n").body == "de||");
        CHECK(w.get("/a", "accept-language: fr\r\n").body == "fr||");
        CHECK(is_hit(w.get("/a", "ACCEPT-LANGUAGE: de\r\n")));
    }

    TEST_CASE("a field that is there twice differs from either") {
        world w;
        put_page(w, "Vary: Accept-Language\r\n");
        CHECK(w.get("/a", "Accept-Language: de\r\nAccept-Language: fr\r\n").body == "de, fr||");
        CHECK_FALSE(is_hit(w.get("/a", "Accept-Language: de\r\n")));
    }

    TEST_CASE("Vary: * never answers again, in a second line as well") {
        world w;
        put_page(w, "Vary: Accept\r\nVary: *\r\n");
        CHECK(w.get("/a").status == 200);
        CHECK_FALSE(is_hit(w.get("/a")));
    }

    TEST_CASE("a field that Connection names was not forwarded and so keys no variant") {
        world w;
        put_page(w, "Vary: X-Foo\r\n");
        const auto first = w.get("/a", "Connection: X-Foo\r\nX-Foo: bar\r\n");
        CHECK(first.body == "||");
        const auto with_field = w.get("/a", "X-Foo: bar\r\n");
        CHECK_FALSE(is_hit(with_field));
        CHECK(with_field.body == "||bar");
        CHECK(hit_body(w.get("/a")) == "||");
    }

    TEST_CASE("variants of a URL are bounded in number, and all answers stay right") {
        world w;
        put_page(w, "Vary: X-Foo\r\n");
        auto one = w.proxy.connect();
        for (int i = 0; i < 300; ++i) {
            const auto value = std::to_string(i);
            CHECK(one.ask(w.request("/a", "X-Foo: " + value + "\r\n")).body == "||" + value);
        }
        CHECK(hit_body(one.ask(w.request("/a", "X-Foo: 299\r\n"))) == "||299");
    }

    TEST_CASE("what another Vary hid does not come back when that has gone") {
        const std::string fresh = "Cache-Control: max-age=600\r\n";
        const std::string reload = "Cache-Control: no-cache\r\n";
        for (const std::string first_tag : {"", "ETag: \"2\"\r\n"}) {
            CAPTURE(first_tag);
            world w;
            w.origin.on("/a", ok(fresh + first_tag + "Vary: X-Foo\r\n", "first"));
            CHECK(w.get("/a").body == "first");
            CHECK(hit_body(w.get("/a")) == "first");
            w.origin.on("/a", ok(fresh + "ETag: \"2\"\r\n", "second"));
            CHECK(w.get("/a", reload).body == "second");
            CHECK(hit_body(w.get("/a")) == "second");
            w.origin.on("/a", answer("404 Not Found", "Cache-Control: no-store\r\n", "none"));
            CHECK(w.get("/a", reload).body == "none");
            CHECK(w.get("/a").body == "none");
        }
    }

    TEST_CASE("one representation that varies now and then stays for those that it was for") {
        world w;
        const std::string fields = "Cache-Control: max-age=600\r\nETag: \"1\"\r\n";
        w.origin.on("/a", ok(fields, "plain"));
        CHECK(w.get("/a").body == "plain");
        w.origin.on("/a", ok(fields + "Vary: X-Foo\r\n", "for foo"));
        CHECK(w.get("/a", "X-Foo: a\r\nCache-Control: no-cache\r\n").body == "for foo");
        CHECK(hit_body(w.get("/a", "X-Foo: a\r\n")) == "for foo");
        CHECK(hit_body(w.get("/a")) == "plain");
    }

    TEST_CASE("a stale variant is validated with its own ETag") {
        world w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            const auto language = request.get("Accept-Language");
            const auto fields = "Cache-Control: max-age=0\r\nVary: Accept-Language\r\nETag: \"" +
                                language + "\"\r\n";
            if (request.get("If-None-Match").find("\"" + language + "\"") != std::string::npos) {
                connection.send(raw_head("304 Not Modified", fields));
            } else {
                connection.send(ok(fields, language));
            }
        });
        for (int round = 0; round < 3; ++round) {
            for (const std::string language : {"de", "fr"}) {
                CHECK(w.get("/a", "Accept-Language: " + language + "\r\n").body == language);
            }
        }
    }

}  // TEST_SUITE
