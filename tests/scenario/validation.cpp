// Asking the origin whether a stored response still holds (RFC 9111 4.3, RFC 9110 13).

#include "tests/scenario/world.hpp"

#include <atomic>
#include <memory>

TEST_SUITE("scenario/validation") {

    using namespace reprise::tests;

    namespace {

    /// Answers 304 to its own validator and 200 to everything else; counts both.
    struct validating_page {
        std::string fields = "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n";
        std::string fields_of_304 = fields;
        std::string body = "hello";

        void put_on(fake_origin& origin, const std::string& path) const {
            origin.on(path, [*this](origin_request& request, origin_connection& connection) {
                const bool same = request.get("If-None-Match") == "\"v1\"" ||
                                  (!request.has("If-None-Match") &&
                                   request.has("If-Modified-Since"));
                connection.send(same ? raw_head("304 Not Modified", fields_of_304)
                                     : ok(fields, body));
            });
        }
    };

    }  // namespace

    TEST_CASE("a stale response with an ETag is validated, and a 304 lets it answer") {
        world w;
        validating_page{}.put_on(w.origin, "/a");
        CHECK(cache_status_of(w.get("/a")).stored);
        const auto again = w.get("/a");
        CHECK(again.status == 200);
        CHECK(again.body == "hello");
        CHECK(cache_status_of(again).fwd == "stale");
        CHECK(cache_status_of(again).fwd_status == "304");
        const auto asked = w.origin.requests("/a");
        REQUIRE(asked.size() == 2);
        CHECK(asked[0].get("If-None-Match").empty());
        CHECK(asked[1].get("If-None-Match") == "\"v1\"");
    }

    TEST_CASE("without an ETag it is validated by Last-Modified") {
        world w;
        const auto date = http_date(std::chrono::hours{-24});
        validating_page page;
        page.fields = page.fields_of_304 = "Cache-Control: max-age=0\r\nLast-Modified: " + date +
                                           "\r\n";
        page.put_on(w.origin, "/a");
        CHECK(w.get("/a").status == 200);
        const auto again = w.get("/a");
        CHECK(again.status == 200);
        CHECK(again.body == "hello");
        CHECK(w.origin.requests("/a").at(1).get("If-Modified-Since") == date);
    }

    TEST_CASE("a 304 updates the stored fields and makes it fresh") {
        world w;
        validating_page page;
        page.fields += "X-Kept: old\r\nX-Changed: old\r\n";
        page.fields_of_304 = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nX-Changed: new\r\n";
        page.put_on(w.origin, "/a");
        CHECK(w.get("/a").get("X-Changed") == "old");
        CHECK(w.get("/a").get("X-Changed") == "new");
        const auto hit = w.get("/a");
        CHECK(is_hit(hit));
        CHECK(hit.get("X-Changed") == "new");
        CHECK(hit.get("X-Kept") == "old");
        CHECK(hit.body == "hello");
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE(
        "a 304 with the tag that compression weakens confirms, and the stored one stays weak") {
        // As nginx does with gzip: its 304s are none of what it compresses.
        world w;
        const auto date = http_date(std::chrono::hours{-24});
        w.origin.on("/a", [date](origin_request& request, origin_connection& connection) {
            const auto fields = "Cache-Control: max-age=0\r\nLast-Modified: " + date +
                                "\r\nDate: " + http_date(std::chrono::hours{0}) + "\r\n";
            connection.send(request.get("If-None-Match") == "W/\"v1\""
                                ? raw_head("304 Not Modified", fields + "ETag: \"v1\"\r\n")
                                : ok(fields + "ETag: W/\"v1\"\r\n", "packed"));
        });
        CHECK(w.get("/a").body == "packed");
        for (std::size_t asked = 2; asked < 5; ++asked) {
            const auto again = w.get("/a");
            CHECK(again.body == "packed");
            CHECK(again.get("ETag") == "W/\"v1\"");
            CHECK(cache_status_of(again).fwd_status == "304");
            CHECK(w.origin.count("/a") == asked);
        }
    }

    TEST_CASE("a 304 to an error's validator would say that the error is over: it is asked anew") {
        world w;
        auto mended = std::make_shared<std::atomic<bool>>(false);
        w.origin.on("/a", [mended](origin_request& request, origin_connection& connection) {
            const std::string fields = "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n";
            connection.send(!*mended ? answer("404 Not Found", fields, "page")
                            : request.get("If-None-Match") == "\"v1\""
                                ? raw_head("304 Not Modified", fields)
                                : ok(fields, "page"));
        });
        CHECK(w.get("/a").status == 404);
        CHECK(w.get("/a").status == 404);
        *mended = true;
        CHECK(w.get("/a").status == 200);
        CHECK(w.get("/a").status == 200);
        CHECK(w.origin.count("/a") == 4);
    }

    TEST_CASE("a 304's Content-Length says nothing of the stored body") {
        world w;
        validating_page page;
        page.fields_of_304 = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Length: 3\r\n";
        page.put_on(w.origin, "/a");
        CHECK(w.get("/a").body == "hello");
        auto one = w.proxy.connect();
        for (int i = 0; i < 3; ++i) {
            const auto answer = one.ask(w.request("/a"));
            CHECK(answer.status == 200);
            CHECK(answer.get("Content-Length") == "5");
            CHECK(answer.body == "hello");
        }
    }

    TEST_CASE("a 200 in answer to the validation replaces what was stored") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=0\r\nETag: \"v1\"\r\n", "old"));
        CHECK(w.get("/a").body == "old");
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\nETag: \"v2\"\r\n", "new"));
        CHECK(w.get("/a").body == "new");
        const auto hit = w.get("/a");
        CHECK(is_hit(hit));
        CHECK(hit.body == "new");
        CHECK(hit.get("ETag") == "\"v2\"");
    }

    // RFC 6585 3 to 6. A front that writes Cache-Control into all that passes writes it into these.
    TEST_CASE("a refusal of one client's request takes the place of nothing that is stored") {
        for (const std::string status : {"428 Precondition Required",
                                         "429 Too Many Requests",
                                         "431 Request Header Fields Too Large",
                                         "511 Network Authentication Required"}) {
            CAPTURE(status);
            world w{storing_settings()};
            w.origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
            CHECK(w.get("/a").status == 200);
            const auto code = static_cast<unsigned>(std::stoul(status));
            w.origin.on("/a", answer(status, "Cache-Control: max-age=60\r\n", "no"));
            CHECK(w.get("/a", "Cache-Control: no-cache\r\n").status == code);
            const auto next = w.get("/a");
            CHECK(is_hit(next));
            CHECK(next.body == "hello");
        }
    }

    TEST_CASE("no-cache is stored and validated at every request") {
        world w;
        validating_page page;
        page.fields = page.fields_of_304 =
            "Cache-Control: no-cache, max-age=60\r\nETag: \"v1\"\r\n";
        page.put_on(w.origin, "/a");
        for (int i = 0; i < 3; ++i) {
            CHECK(w.get("/a").body == "hello");
        }
        const auto asked = w.origin.requests("/a");
        REQUIRE(asked.size() == 3);
        CHECK(asked[2].get("If-None-Match") == "\"v1\"");
    }

    TEST_CASE("must-revalidate is an error, not an old answer, when the origin is gone") {
        world w;
        w.origin.on("/a",
                    ok("Cache-Control: max-age=0, must-revalidate\r\nETag: \"v1\"\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        w.origin.stop();
        const auto after = w.get("/a");
        CHECK(after.status >= 502);
        CHECK(after.status <= 504);
        CHECK(after.body.find("hello") == std::string::npos);
    }

    TEST_CASE("the client's own If-None-Match is answered from a fresh stored response") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        auto one = w.proxy.connect();
        const auto same = one.ask(w.request("/a", "If-None-Match: \"v0\", W/\"v1\"\r\n"));
        CHECK(same.status == 304);
        CHECK(same.get("ETag") == "\"v1\"");
        CHECK(same.body.empty());
        const auto any = one.ask(w.request("/a", "If-None-Match: *\r\n"));
        CHECK(any.status == 304);
        const auto other = one.ask(w.request("/a", "If-None-Match: \"v2\"\r\n"));
        CHECK(other.status == 200);
        CHECK(other.body == "hello");
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("the client's own If-Modified-Since is answered from a fresh stored response") {
        world w;
        const auto changed = http_date(std::chrono::hours{-24});
        w.origin.on("/a",
                    ok("Cache-Control: max-age=60\r\nLast-Modified: " + changed + "\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        CHECK(w.get("/a", "If-Modified-Since: " + changed + "\r\n").status == 304);
        CHECK(w.get("/a", "If-Modified-Since: " + http_date() + "\r\n").status == 304);
        CHECK(w.get("/a", "If-Modified-Since: " + http_date(std::chrono::hours{-48}) + "\r\n")
                  .status == 200);
        CHECK(w.get("/a", "If-Modified-Since: yesterday\r\n").status == 200);
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE(
        "a client that validates its own copy of what we hold stale gets an answer to its own") {
        world w;
        validating_page{}.put_on(w.origin, "/a");
        CHECK(w.get("/a").status == 200);
        const auto same = w.get("/a", "If-None-Match: \"v1\"\r\n");
        CHECK(same.status == 304);
        const auto other = w.get("/a", "If-None-Match: \"v0\"\r\n");
        CHECK(other.status == 200);
        CHECK(other.body == "hello");
    }

    TEST_CASE("a 304 to a client's own validator passes when nothing is stored") {
        world w{basic_settings()};
        validating_page{}.put_on(w.origin, "/a");
        auto one = w.proxy.connect();
        const auto same = one.ask(w.request("/a", "If-None-Match: \"v1\"\r\n"));
        CHECK(same.status == 304);
        CHECK(w.origin.requests("/a").at(0).get("If-None-Match") == "\"v1\"");
        CHECK(one.ask(w.request("/a")).body == "hello");
    }

    TEST_CASE("a range of a fresh stored response is right whoever makes it") {
        world w;
        const std::string whole = "0123456789";
        const auto serve = [whole](origin_request& request, origin_connection& connection) {
            if (request.get("Range") == "bytes=2-4") {
                connection.send(answer("206 Partial Content",
                                       "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"
                                       "Content-Range: bytes 2-4/10\r\n",
                                       whole.substr(2, 3)));
            } else {
                connection.send(ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", whole));
            }
        };
        w.origin.on("/a", serve);
        w.origin.on(
            "/chunked",
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
                chunk(whole.substr(0, 3)) + chunk(whole.substr(3)) + chunk(""));
        for (const std::string path : {"/a", "/chunked"}) {  // of the second no length was known
            CAPTURE(path);
            CHECK(w.get(path).body == whole);
            const auto part = w.get(path, "Range: bytes=2-4\r\n");
            if (part.status == 206) {
                CHECK(part.body == "234");
                CHECK(part.get("Content-Range") == "bytes 2-4/10");
            } else {
                CHECK(part.status == 200);
                CHECK(part.body == whole);
            }
            CHECK(w.get(path).body == whole);
        }
    }

    TEST_CASE("a stored response whose origin is down and that is fresh answers all the same") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        w.origin.stop();
        CHECK(is_hit(w.get("/a")));
        CHECK(w.get("/b").status == 502);
    }

    TEST_CASE("a HEAD that the origin answers freshens what is stored of a GET") {
        world w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            if (request.method == "GET") {
                connection.send(ok("Cache-Control: max-age=60\r\nAge: 100\r\nETag: \"1\"\r\n"
                                   "X-Old: kept\r\nX-Both: old\r\n",
                                   "hello"));
            } else {
                connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n"
                                "X-Both: new\r\nContent-Length: 5\r\n\r\n");
            }
        });
        CHECK(w.get("/a").body == "hello");
        CHECK(w.ask("HEAD", "/a").status == 200);
        const auto fresh = w.get("/a");
        CHECK(is_hit(fresh));
        CHECK(fresh.body == "hello");
        CHECK(fresh.get("X-Old") == "kept");
        CHECK(fresh.get("X-Both") == "new");
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE("a HEAD that says nothing of which representation it means keeps none alive") {
        for (const bool purged : {false, true}) {
            CAPTURE(purged);
            std::atomic<bool> changed{false};
            auto settings = storing_settings();
            settings["access"]["purge_clients"] = {"127.0.0.1"};
            world w{settings};
            w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                const std::string age = purged || changed ? "" : "Age: 100\r\n";
                connection.send(
                    request.method == "GET"
                        ? ok("Cache-Control: max-age=60\r\n" + age, changed ? "two" : "one")
                        : "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\n");
            });
            CHECK(w.get("/a").body == "one");
            if (purged) {
                CHECK(w.ask("PURGE", "/a", "Purge: soft\r\n").status == 200);
            }
            changed = true;
            CHECK(w.ask("HEAD", "/a").status == 200);
            const auto behind = w.get("/a");
            CHECK_FALSE(is_hit(behind));
            CHECK(behind.body == "two");
        }
    }

    TEST_CASE("a HEAD that tells of another representation ends what is stored") {
        for (const std::string other :
             {"ETag: \"2\"\r\nContent-Length: 5\r\n", "ETag: \"1\"\r\nContent-Length: 6\r\n"}) {
            CAPTURE(other);
            world w;
            w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                connection.send(request.method == "GET"
                                    ? ok("Cache-Control: max-age=60\r\nETag: \"1\"\r\n", "hello")
                                    : "HTTP/1.1 200 OK\r\n" + other + "\r\n");
            });
            CHECK(w.get("/a").body == "hello");
            CHECK(w.ask("HEAD", "/a", "Cache-Control: no-cache\r\n").status == 200);
            CHECK_FALSE(is_hit(w.get("/a")));
        }
    }

    TEST_CASE("several ranges of a stored response are one multipart answer, byte for byte") {
        const auto body = patterned(100'000);
        world w;
        w.origin.on(
            "/a", ok("Cache-Control: max-age=60\r\nETag: \"1\"\r\nContent-Type: text/x\r\n", body));
        CHECK(w.get("/a").body == body);
        const auto some = w.get("/a", "Range: bytes=0-9, 5000-5009, -10\r\n");
        REQUIRE(some.status == 206);
        CHECK(is_hit(some));
        CHECK_FALSE(some.has("Content-Range"));
        CHECK(some.get("ETag") == "\"1\"");
        const auto type = some.get("Content-Type");
        const std::string prefix = "multipart/byteranges; boundary=";
        REQUIRE(type.rfind(prefix, 0) == 0);
        const auto boundary = type.substr(prefix.size());
        std::string expected = "\r\n";  // the delimiter begins with it (RFC 2046 5.1.1)
        for (const auto& [first, last] : {std::pair{0, 9}, {5000, 5009}, {99'990, 99'999}}) {
            expected += "--" + boundary + "\r\nContent-Type: text/x\r\nContent-Range: bytes " +
                        std::to_string(first) + "-" + std::to_string(last) + "/100000\r\n\r\n" +
                        body.substr(static_cast<std::size_t>(first), 10) + "\r\n";
        }
        expected += "--" + boundary + "--\r\n";
        CHECK(some.body == expected);
        CHECK(some.complete());
        // Ranges that lie together are one part; too many at once are the whole.
        CHECK(w.get("/a", "Range: bytes=0-9, 10-19\r\n").get("Content-Range") ==
              "bytes 0-19/100000");
        CHECK(w.get("/a", "Range: bytes=0-, 0-, 0-, 0-\r\n").body == body);
        CHECK(w.get("/a", "Range: bytes=200000-, 300000-\r\n").status == 416);
    }

}  // TEST_SUITE
