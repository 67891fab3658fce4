// Bodies of responses in every framing, re-emitted in one canonical one (RFC 9112 6 and 7).

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/response_bodies") {

    using namespace reprise::tests;

    TEST_CASE("a body arrives whole whatever its framing, at first and from the store") {
        const auto body = patterned(200 * kib);
        world w;
        w.origin.on("/length", ok("Cache-Control: max-age=60\r\n", body));
        w.origin.on(
            "/chunked",
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
                chunk(body.substr(0, 1)) + chunk(body.substr(1, 70'000)) +
                chunk(body.substr(70'001)) + chunk(""));
        w.origin.on("/close", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "Cache-Control: max-age=60\r\n") + body);
            connection.close();
        });
        for (const std::string path : {"/length", "/chunked", "/close"}) {
            for (int i = 0; i < 3; ++i) {
                CAPTURE(path);
                CAPTURE(i);
                const auto answer = w.get(path);
                CHECK(answer.complete());
                CHECK(answer.body == body);
                CHECK(answer.framed_by != framing::until_close);
                CHECK(is_hit(answer) == (i > 0));
            }
        }
    }

    TEST_CASE("an empty body is empty in every framing") {
        world w;
        w.origin.on("/length", ok("Cache-Control: max-age=60\r\n", ""));
        w.origin.on(
            "/chunked",
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
                chunk(""));
        w.origin.on("/close", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "Cache-Control: max-age=60\r\n"));
            connection.close();
        });
        auto one = w.proxy.connect();
        for (const std::string path : {"/length", "/chunked", "/close"}) {
            for (int i = 0; i < 3; ++i) {
                CAPTURE(path);
                const auto answer = one.ask(w.request(path));
                CHECK(answer.status == 200);
                CHECK(answer.complete());
                CHECK(answer.body.empty());
            }
        }
    }

    TEST_CASE("every byte of a chunked response may come alone") {
        const std::string raw =
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
            chunk("hello ") + chunk("world") + "0\r\nX-Sum: 1\r\n\r\n";
        world w;
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            for (const char c : raw) {
                connection.send({&c, 1});
            }
        });
        CHECK(w.get("/a").body == "hello world");
        CHECK(w.get("/a").body == "hello world");
    }

    TEST_CASE("chunk extensions and odd chunk lines go no further") {
        world w{basic_settings()};
        w.origin.on("/a",
                    raw_head("200 OK", "Transfer-Encoding: chunked\r\n") +
                        "5;name=value;other=\"a;b\"\r\nhello\r\n"
                        "0006 ; x\r\n world\r\n"
                        "000;last\r\n\r\n");
        auto one = w.proxy.connect();
        const auto answer = one.ask(w.request("/a"));
        // Whether white space before the semicolon is forgiven is ours to say; it is never passed
        // on.
        CHECK(answer.chunk_lines_are_canonical);
        if (answer.complete()) {
            CHECK(answer.body == "hello world");
        } else {
            CHECK(answer.body.size() <= 5);
        }
    }

    TEST_CASE("trailers pass, but none that frames, routes or authenticates") {
        world w{basic_settings()};
        w.origin.on("/a",
                    raw_head("200 OK", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n") +
                        chunk("hello") +
                        "0\r\nX-Sum: 17\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
                        "Host: evil\r\nSet-Cookie: a=b\r\nConnection: close\r\n"
                        "Authorization: x\r\nContent-Encoding: gzip\r\nX-Other: 18\r\n\r\n");
        auto one = w.proxy.connect();
        const auto answer = one.ask(w.request("/a", "TE: trailers\r\nConnection: TE\r\n"));
        CHECK(answer.complete());
        CHECK(answer.body == "hello");
        CHECK(answer.trailers.get("X-Sum") == "17");
        for (const std::string name : {"Content-Length",
                                       "Transfer-Encoding",
                                       "Host",
                                       "Connection",
                                       "Authorization",
                                       "Content-Encoding"}) {
            CAPTURE(name);
            CHECK_FALSE(answer.trailers.has(name));
            if (std::string_view{name} != "Transfer-Encoding" &&
                std::string_view{name} != "Connection") {
                CHECK_FALSE(answer.fields.has(name));
            }
        }
        // The connection is as good as before.
        CHECK(one.ask(w.request("/a")).body == "hello");
    }

    TEST_CASE("an HTTP/1.0 client gets no chunks") {
        world w;
        w.origin.on(
            "/a",
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
                chunk("hello ") + chunk("world") + chunk(""));
        for (int i = 0; i < 2; ++i) {
            auto one = w.proxy.connect();
            const auto answer = one.ask("GET " + w.origin.url("/a") + " HTTP/1.0\r\n\r\n");
            CHECK(answer.status == 200);
            CHECK_FALSE(answer.has("Transfer-Encoding"));
            CHECK(answer.body == "hello world");
            CHECK(answer.complete());
        }
    }

    TEST_CASE("HEAD has the length and no body") {
        world w{basic_settings()};
        w.origin.on("/a", raw_head("200 OK", "Content-Length: 1000000\r\n"));
        auto one = w.proxy.connect();
        const auto head = one.ask(absolute_request("HEAD", w.origin.url("/a")));
        CHECK(head.status == 200);
        CHECK(head.get("Content-Length") == "1000000");
        w.origin.on("/b", ok("", "next"));
        CHECK(one.ask(w.request("/b")).body == "next");
    }

    TEST_CASE("a body with HEAD, 204 or 304 is nobody's: its connection is not used again") {
        world w{basic_settings()};
        w.origin.on("/b", ok("", "my own"));
        const std::string smuggled = ok("X-Evil: yes\r\n", "evil");
        struct row {
            std::string what;
            const char* method;
            std::string answer;
            int status;
        };
        const row rows[] = {
            {"204 with Content-Length",
             "GET",
             raw_head("204 No Content",
                      "Content-Length: " + std::to_string(smuggled.size()) + "\r\n") +
                 smuggled,
             204},
            {"204 with chunks",
             "GET",
             raw_head("204 No Content", "Transfer-Encoding: chunked\r\n") + chunk(smuggled) +
                 chunk(""),
             204},
            {"304 with Content-Length",
             "GET",
             raw_head("304 Not Modified",
                      "Content-Length: " + std::to_string(smuggled.size()) + "\r\n") +
                 smuggled,
             304},
            {"304 with chunks",
             "GET",
             raw_head("304 Not Modified", "Transfer-Encoding: chunked\r\n") + chunk(smuggled) +
                 chunk(""),
             304},
            {"HEAD",
             "HEAD",
             raw_head("200 OK", "Content-Length: " + std::to_string(smuggled.size()) + "\r\n") +
                 smuggled,
             200},
        };
        for (const auto& row : rows) {
            CAPTURE(row.what);
            w.origin.on("/a", row.answer);
            auto one = w.proxy.connect();
            const auto first = one.ask(
                absolute_request(row.method, w.origin.url("/a"), "If-None-Match: \"x\"\r\n"));
            CHECK((first.status == row.status || first.status == 502));
            CHECK(first.body.find("evil") == std::string::npos);
            if (first.status == 204) {
                CHECK_FALSE(first.has("Content-Length"));
                CHECK_FALSE(first.has("Transfer-Encoding"));
            }
            for (int i = 0; i < 4; ++i) {  // on this connection and on others, of either thread
                const auto next = w.get("/b");
                CHECK(next.body == "my own");
                CHECK_FALSE(next.has("X-Evil"));
            }
        }
    }

    TEST_CASE("1xx before the answer pass to clients that know them") {
        world w{basic_settings()};
        w.origin.on("/a",
                    raw_head("103 Early Hints",
                             "Link: </x.css>; rel=preload\r\nConnection: X-Hop\r\n"
                             "X-Hop: 1\r\n") +
                        raw_head("103 Early Hints", "Link: </y.css>\r\n") + ok("", "hello"));
        const auto answer = w.get("/a");
        CHECK(answer.status == 200);
        CHECK(answer.body == "hello");
        REQUIRE(answer.interim.size() == 2);
        CHECK(answer.interim[0].status == 103);
        CHECK(answer.interim[0].get("Link") == "</x.css>; rel=preload");
        CHECK_FALSE(answer.interim[0].has("X-Hop"));
        CHECK(answer.interim[1].get("Link") == "</y.css>");

        auto old = w.proxy.connect();
        const auto to_old = old.ask("GET " + w.origin.url("/a") + " HTTP/1.0\r\n\r\n");
        CHECK(to_old.status == 200);
        CHECK(to_old.interim.empty());
        CHECK(to_old.body == "hello");
    }

    TEST_CASE("the first bytes of a body are there before its last") {
        world w{basic_settings()};
        for (const bool chunked : {false, true}) {
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&go, chunked](origin_request&, origin_connection& connection) {
                connection.send(raw_head("200 OK",
                                         chunked ? "Transfer-Encoding: chunked\r\n"
                                                 : "Content-Length: 10\r\n") +
                                (chunked ? chunk("first") : "first"));
                go.wait();
                connection.send(chunked ? chunk("later") + chunk("") : "later");
            });
            auto one = w.proxy.connect(w.request("/a"));
            auto answer = one.read_head();
            one.read_body(answer, 5);
            CHECK(answer.body == "first");
            go.open();
            one.read_body(answer, 10);
            one.read_body(answer, 11);
            CHECK(answer.body == "firstlater");
            CHECK(answer.complete());
        }
    }

    TEST_CASE("Trailer is said where trailers follow, and nowhere else") {
        world w;
        w.origin.on("/a",
                    raw_head("200 OK",
                             "Cache-Control: max-age=60\r\nTrailer: X-Sum\r\n"
                             "Transfer-Encoding: chunked\r\n") +
                        chunk("hello") + "0\r\nX-Sum: 1\r\n\r\n");
        w.origin.on("/b",
                    raw_head("200 OK",
                             "Cache-Control: no-store\r\nTrailer: X-Sum\r\n"
                             "Transfer-Encoding: chunked\r\n") +
                        chunk("hello") + "0\r\nX-Sum: 1\r\n\r\n");
        const auto first = w.get("/a");
        CHECK(first.get("Trailer") == "X-Sum");
        CHECK(first.trailers.get("X-Sum") == "1");
        const auto stored = w.get("/a");
        REQUIRE(is_hit(stored));
        CHECK_FALSE(stored.has("Trailer"));
        auto old = w.proxy.connect();
        const auto to_old = old.ask("GET " + w.origin.url("/b") + " HTTP/1.0\r\n\r\n");
        CHECK(to_old.body == "hello");
        CHECK_FALSE(to_old.has("Trailer"));
    }

}  // TEST_SUITE
