// Origins that frame badly: 502 when it is seen in the head, a body that is visibly not whole when
// it is seen later, and never a byte of one answer in another.

#include "tests/scenario/world.hpp"

#include <set>
#include <vector>

TEST_SUITE("scenario/response_framing") {

    using namespace reprise::tests;

    namespace {

    struct trap {
        std::string what;
        std::string answer;
    };

    /// After whatever went before, other requests get their own answers, from a new connection.
    void check_next_is_clean(world& w) {
        w.origin.on("/next", ok("", "my own"));
        for (int i = 0; i < 4; ++i) {
            const auto next = w.get("/next");
            CHECK(next.status == 200);
            CHECK(next.body == "my own");
            CHECK_FALSE(next.has("X-Evil"));
        }
    }

    const std::string evil = ok("X-Evil: yes\r\n", "evil");

    }  // namespace

    TEST_CASE("a head that cannot be trusted is 502") {
        const std::string rest = "\r\n\r\nhello";
        const trap traps[] = {
            {"two lengths that differ",
             raw_head("200 OK", "Content-Length: 5\r\nContent-Length: 4\r\n") + "hello"},
            {"a list of lengths that differ",
             raw_head("200 OK", "Content-Length: 5, 4\r\n") + "hello"},
            {"a length with a sign", raw_head("200 OK", "Content-Length: +5\r\n") + "hello"},
            {"a negative length", raw_head("200 OK", "Content-Length: -5\r\n") + "hello"},
            {"a length in hexadecimal", raw_head("200 OK", "Content-Length: 0x5\r\n") + "hello"},
            {"a length with nonsense", raw_head("200 OK", "Content-Length: 5x\r\n") + "hello"},
            {"an empty length", raw_head("200 OK", "Content-Length:\r\n") + "hello"},
            {"a length over 64 bits",
             raw_head("200 OK", "Content-Length: 18446744073709551621\r\n") + "hello"},
            {"an unknown coding", raw_head("200 OK", "Transfer-Encoding: gzip\r\n") + "hello"},
            {"an unknown coding under chunked",
             raw_head("200 OK", "Transfer-Encoding: gzip, chunked\r\n") + chunk("hello") +
                 chunk("")},
            {"chunked not last",
             raw_head("200 OK", "Transfer-Encoding: chunked, gzip\r\n") + chunk("hello") +
                 chunk("")},
            {"chunked twice",
             raw_head("200 OK", "Transfer-Encoding: chunked, chunked\r\n") + chunk("hello") +
                 chunk("")},
            {"chunked in HTTP/1.0",
             "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("hello") + chunk("")},
            {"bare LFs", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"},
            {"bare LF in a field", raw_head("200 OK", "X-A: b\nContent-Length: 5\r\n") + "hello"},
            {"bare CR in a field",
             raw_head("200 OK", "X-A: b\rc\r\nContent-Length: 5\r\n") + "hello"},
            {"NUL in a field",
             raw_head("200 OK", std::string{"X-A: b\0c\r\n", 10} + "Content-Length: 5\r\n") +
                 "hello"},
            {"a space before a colon", raw_head("200 OK", "Content-Length : 5\r\n") + "hello"},
            {"a space before Transfer-Encoding's colon",
             raw_head("200 OK", "Transfer-Encoding : chunked\r\n") + chunk("hello") + chunk("")},
            {"no colon", raw_head("200 OK", "Content-Length 5\r\n") + "hello"},
            {"an empty name", raw_head("200 OK", ": x\r\nContent-Length: 5\r\n") + "hello"},
            {"no status line", "hello world\r\n\r\n"},
            {"another protocol", "ICY 200 OK" + rest},
            {"another version", "HTTP/2 200 OK" + rest},
            {"no status", "HTTP/1.1 OK" + rest},
            {"a status of four digits", "HTTP/1.1 2000 OK" + rest},
            {"a status of two digits", "HTTP/1.1 20 OK" + rest},
            {"a status below 100", "HTTP/1.1 099 OK" + rest},
            {"a signed status", "HTTP/1.1 +20 OK" + rest},
            {"a status in letters", "HTTP/1.1 2O0 OK" + rest},
            {"a leading space", " HTTP/1.1 200 OK" + rest},
            {"101 that nobody asked for",
             "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" +
                 evil},
            {"nothing at all", ""},
            {"a body and no head", std::string(3000, 'x')},
        };
        world w;
        for (const auto& one : traps) {
            CAPTURE(one.what);
            w.origin.on("/a", [raw = one.answer](origin_request&, origin_connection& connection) {
                connection.send(raw);
                connection.close();
            });
            const auto answer = w.get("/a");
            CHECK(answer.status == 502);
            CHECK(answer.complete());
            CHECK(answer.get("Cache-Control").find("no-store") != std::string::npos);
            CHECK(answer.has("Proxy-Status"));
        }
        check_next_is_clean(w);
    }

    TEST_CASE("a head that FIN cuts in the middle of a field is 502, at every byte") {
        world w;
        const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Field: value\r\n\r\n";
        for (std::size_t cut = 1; cut < head.size(); ++cut) {
            CAPTURE(cut);
            w.origin.on(
                "/a", [part = head.substr(0, cut)](origin_request&, origin_connection& connection) {
                    connection.send(part);
                    connection.close();
                });
            CHECK(w.get("/a").status == 502);
        }
    }

    TEST_CASE("obs-fold from an origin is refused, or unfolded as RFC 9112 5.2 says") {
        world w;
        w.origin.on("/a", raw_head("200 OK", "X-A: b\r\n\tc\r\nContent-Length: 5\r\n") + "hello");
        const auto answer = w.get("/a");
        if (answer.status == 200) {
            CHECK(answer.get("X-A") == "b c");
            CHECK(answer.body == "hello");
        } else {
            CHECK(answer.status == 502);
        }
        CHECK(answer.head.raw.find("\r\n\t") == std::string::npos);
    }

    TEST_CASE("a head that is too large, or has too many fields, is 502") {
        auto settings = storing_settings();
        settings["limits"] = {{"head_size", "8KiB"}, {"fields", 50}};
        world w{settings};
        w.origin.on("/long", ok("X-A: " + std::string(9000, 'x') + "\r\n", "hello"));
        std::string many;
        for (int i = 0; i < 60; ++i) {
            many += "X-A: b\r\n";
        }
        w.origin.on("/many", ok(many, "hello"));
        w.origin.on("/endless", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\n");
            while (connection.goes_on() && connection.send("X-A: and so on\r\n")) {
            }
        });
        for (const std::string path : {"/long", "/many", "/endless"}) {
            CAPTURE(path);
            CHECK(w.get(path).status == 502);
        }
        check_next_is_clean(w);
    }

    TEST_CASE("1xx without end is 502") {
        world w;
        w.origin.on("/a", [](origin_request&, origin_connection& connection) {
            while (connection.goes_on() && connection.send("HTTP/1.1 103 Early Hints\r\n\r\n")) {
            }
        });
        auto one = w.proxy.connect(w.request("/a"));
        const auto answer = one.read();
        CHECK((answer.status == 502 || answer.end == ending::cut_short));
    }

    TEST_CASE(
        "Content-Length and Transfer-Encoding together: refused, or chunked and then closed") {
        world w;
        w.origin.on("/a",
                    raw_head("200 OK",
                             "Cache-Control: max-age=60\r\nContent-Length: 3\r\n"
                             "Transfer-Encoding: chunked\r\n") +
                        chunk("hello") + chunk("") + evil);
        const auto answer = w.get("/a");
        if (answer.status == 200) {
            CHECK(answer.fields.count("Content-Length") +
                      answer.fields.count("Transfer-Encoding") ==
                  1);
            CHECK(answer.body == "hello");
        } else {
            CHECK(answer.status == 502);
        }
        check_next_is_clean(w);
        for (const auto& request : w.origin.requests("/next")) {
            CHECK(request.connection != 0);
        }
    }

    TEST_CASE("a body that ends badly is visibly not whole, and not stored") {
        const std::string chunked_head = raw_head(
            "200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n");
        const std::string length_head = raw_head(
            "200 OK", "Cache-Control: max-age=60\r\nContent-Length: 100\r\n");
        const trap traps[] = {
            {"shorter than its length", length_head + "hello"},
            {"no body at all", length_head},
            {"no last chunk", chunked_head + chunk("hello")},
            {"cut in a chunk", chunked_head + "64\r\nhello"},
            {"cut in a chunk line", chunked_head + chunk("hello") + "6"},
            {"cut before the final empty line", chunked_head + chunk("hello") + "0\r\n"},
            {"cut in a trailer", chunked_head + chunk("hello") + "0\r\nX-Sum: 1"},
            {"a bad chunk size", chunked_head + chunk("hello") + "zz\r\nworld\r\n0\r\n\r\n"},
            {"an empty chunk line", chunked_head + chunk("hello") + "\r\n0\r\n\r\n"},
            {"a signed chunk size", chunked_head + chunk("hello") + "+5\r\nworld\r\n0\r\n\r\n"},
            {"a chunk size over 64 bits",
             chunked_head + chunk("hello") + "10000000000000005\r\nworld\r\n0\r\n\r\n"},
            {"a chunk longer than its size", chunked_head + "5\r\nhelloXX\r\n0\r\n\r\n"},
            {"bare LF after a size", chunked_head + "5\nhello\r\n0\r\n\r\n"},
            {"bare LF after a chunk", chunked_head + "5\r\nhello\n0\r\n\r\n"},
            {"a chunk line without end", chunked_head + "5;" + std::string(300'000, 'x')},
            {"a trailer section without end",
             chunked_head + chunk("hello") + "0\r\nX-A: " + std::string(300'000, 'x')},
            {"a trailer that is no field", chunked_head + chunk("hello") + "0\r\nnonsense\r\n\r\n"},
        };
        for (const auto& one : traps) {
            CAPTURE(one.what);
            world w;
            for (const bool by_reset : {false, true}) {
                w.origin.on(
                    "/a",
                    [raw = one.answer, by_reset](origin_request&, origin_connection& connection) {
                        connection.send(raw);
                        if (by_reset) {
                            (void)connection.is_closed_by_proxy(
                                a_moment);  // let the bytes be read first
                            connection.reset();
                        } else {
                            connection.close();
                        }
                    });
                for (int i = 0; i < 2; ++i) {
                    const auto answer = w.get("/a");
                    CHECK_FALSE(is_hit(answer));
                    CHECK((answer.end == ending::cut_short || answer.status == 502));
                    CHECK(answer.end != ending::timed_out);
                }
            }
            check_next_is_clean(w);
        }
    }

    TEST_CASE("a close-delimited body that RST ends is visibly not whole, and not stored") {
        world w;
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "Cache-Control: max-age=60\r\n") + "part of it");
            (void)connection.is_closed_by_proxy(a_moment);
            connection.reset();
        });
        const auto answer = w.get("/a");
        CHECK(answer.status == 200);
        CHECK(answer.end == ending::cut_short);
        CHECK_FALSE(is_hit(w.get("/a")));
        CHECK(w.origin.count("/a") == 2);

        // An HTTP/1.0 client knows ends by the connection alone: it must see it reset.
        auto old = w.proxy.connect();
        const auto to_old = old.ask("GET " + w.origin.url("/a") + " HTTP/1.0\r\n\r\n");
        CHECK((to_old.was_reset || to_old.end == ending::cut_short));
    }

    TEST_CASE("an HTTP/1.0 client sees a chunked body that was cut as reset") {
        world w;
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "Transfer-Encoding: chunked\r\n") + chunk("hello"));
            connection.close();
        });
        auto old = w.proxy.connect();
        const auto answer = old.ask("GET " + w.origin.url("/a") + " HTTP/1.0\r\n\r\n");
        CHECK(answer.end == ending::cut_short);
    }

    TEST_CASE("bytes after a body never become another request's answer") {
        const std::string chunked_head = raw_head(
            "200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n");
        const trap traps[] = {
            {"after the length", ok("Cache-Control: max-age=60\r\n", "hello") + evil},
            {"after the last chunk", chunked_head + chunk("hello") + chunk("") + evil},
            {"one byte", ok("Cache-Control: max-age=60\r\n", "hello") + "x"},
            {"an empty line", ok("Cache-Control: max-age=60\r\n", "hello") + "\r\n"},
        };
        for (const auto& one : traps) {
            CAPTURE(one.what);
            world w;
            w.origin.on("/a", one.answer);
            auto connection = w.proxy.connect();
            const auto answer = connection.ask(w.request("/a"));
            CHECK(answer.body == "hello");
            CHECK(answer.complete());
            w.origin.on("/next", ok("", "my own"));
            for (int i = 0; i < 3; ++i) {
                CHECK(connection.ask(w.request("/next")).body == "my own");
            }
            check_next_is_clean(w);
            for (const auto& request : w.origin.requests("/next")) {
                CHECK(request.connection != 0);
            }
        }
    }

    TEST_CASE("bytes on an idle pooled connection never become another request's answer") {
        world w;
        w.origin.on("/next", ok("", "my own"));
        for (const auto& unasked :
             {evil, answer("408 Request Timeout", "Connection: close\r\n", "")}) {
            CAPTURE(unasked);
            auto& go = w.origin.make_gate();
            auto& sent = w.origin.make_gate();
            w.origin.on("/a",
                        [&go, &sent, unasked](origin_request&, origin_connection& connection) {
                            connection.send(ok("", "hello"));
                            go.wait();
                            connection.send(unasked);
                            sent.open();
                        });
            auto one = w.proxy.connect();
            CHECK(one.ask(w.request("/a")).body == "hello");
            go.open();
            REQUIRE(sent.wait());
            for (int i = 0; i < 3; ++i) {
                const auto next = one.ask(w.request("/next"));
                CHECK(next.status == 200);
                CHECK(next.body == "my own");
            }
        }
    }

    TEST_CASE("a pooled connection that the origin closed is not mistaken for a failure") {
        world w{basic_settings()};
        w.origin.on("/a", [](origin_request&, origin_connection& connection) {
            connection.send(ok("", "hello"));
            connection.close();  // without having said so
        });
        auto one = w.proxy.connect();
        for (int i = 0; i < 5; ++i) {
            const auto answer = one.ask(w.request("/a"));
            CHECK(answer.status == 200);
            CHECK(answer.body == "hello");
        }
    }

    TEST_CASE("HTTP/1.0 origins and Connection: close are not kept") {
        world w{basic_settings()};
        w.origin.on("/old", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        w.origin.on("/close", ok("Connection: close\r\n", "hello"));
        auto one = w.proxy.connect();
        for (const std::string path : {"/old", "/close"}) {
            for (int i = 0; i < 3; ++i) {
                CAPTURE(path);
                const auto answer = one.ask(w.request(path));
                CHECK(answer.body == "hello");
                CHECK(answer.version == "HTTP/1.1");
            }
        }
        for (const auto& request : w.origin.requests()) {
            CHECK(request.number == 0);
        }
    }

    TEST_CASE("origin connections are kept and used again") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        auto one = w.proxy.connect();
        for (int i = 0; i < 10; ++i) {
            CHECK(one.ask(w.request("/a")).body == "hello");
        }
        CHECK(w.origin.connections() == 1);
    }

    TEST_CASE("an origin that was caught with surplus bytes has no connection used twice") {
        world w;
        auto& go_on = w.origin.make_gate();
        std::atomic<bool> said{false};
        w.origin.on("/at-once", ok("", "hello") + "more");
        w.origin.on("/closing", ok("Connection: close\r\n", "hello") + "more");
        w.origin.on("/later", [&](origin_request&, origin_connection& connection) {
            connection.send(ok("", "hello"));
            go_on.wait();
            connection.send("more");
            said = true;
        });
        w.origin.on("/a", ok("Cache-Control: no-store\r\n", "mine"));
        auto one = w.proxy.connect();
        std::string how;
        SUBCASE("at once") {
            how = "/at-once";
        }
        SUBCASE("on a connection that is not to be used again") {
            how = "/closing";
        }
        SUBCASE("while the connection is idle") {
            how = "/later";
        }
        CHECK(one.ask(w.request(how)).body == "hello");
        go_on.open();
        REQUIRE((how != "/later" || eventually([&] { return said.load(); })));
        std::set<unsigned> connections;
        for (int i = 0; i < 8; ++i) {
            CHECK((i % 2 == 0 ? w.get("/a") : one.ask(w.request("/a"))).body == "mine");
        }
        for (const auto& request : w.origin.requests("/a")) {
            connections.insert(request.connection);
        }
        CHECK(connections.size() == 8);
        CHECK(w.proxy.stats()["origins"]["surplus"] == 1);
        CHECK(eventually([&] {
            return w.proxy.errors().find("sent more than its answer said") != std::string::npos;
        }));
    }

    TEST_CASE("what was answered where surplus bytes were seen later does not stay stored") {
        world w;
        auto& go_on = w.origin.make_gate();
        std::atomic<bool> said{false};
        const auto evil = ok("Cache-Control: max-age=1000\r\n", "evil");
        const auto good = ok("Cache-Control: max-age=1000\r\n", "good");
        w.origin.on("/first", ok("Cache-Control: no-store\r\n", "first"));
        w.origin.on("/kept", [&](origin_request& request, origin_connection& connection) {
            if (request.number == 0) {
                connection.send(good);
                return;
            }
            // The rest of "/first", a whole answer, which comes too late to be seen as that.
            if (go_on.wait(std::chrono::milliseconds{0})) {
                connection.send(evil + good);
                return;
            }
            connection.send(evil);
            go_on.wait();
            connection.send(good);
            said = true;
        });
        bool at_once = false;
        SUBCASE("in one piece with it") {
            at_once = true;
            go_on.open();
        }
        SUBCASE("behind it") {}
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/first")).body == "first");
        CHECK(one.ask(w.request("/kept")).body == "evil");
        go_on.open();
        REQUIRE((at_once || eventually([&] { return said.load(); })));
        CHECK(one.ask(w.request("/first")).body == "first");  // looks at the connection
        CHECK(one.ask(w.request("/kept")).body == "good");
        CHECK(is_hit(one.ask(w.request("/kept"))));
    }

    TEST_CASE("a GET that meets the rest of another answer is asked again") {
        world w;
        w.origin.on("/first", ok("Cache-Control: no-store\r\n", "first"));
        w.origin.on("/next", [&](origin_request& request, origin_connection& connection) {
            connection.send(request.number == 0 ? ok("", "next")
                                                : "rest of the first" + ok("", "?"));
        });
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/first")).body == "first");
        CHECK(one.ask(w.request("/next")).body == "next");
        CHECK(w.origin.count("/next") == 2);
    }

    TEST_CASE("an answer that is not taken is no rest of another: its origin is trusted on") {
        world w;
        w.origin.on("/a", ok("Cache-Control: no-store\r\n", "mine"));
        std::string many;
        for (unsigned i = 0; i < 300; ++i) {
            many += "X-" + std::to_string(i) + ": 1\r\n";
        }
        const std::string odd[] = {"HTTP/1.1 999 Odd\r\nContent-Length: 5\r\n\r\nhello",
                                   ok(many, "hello")};
        auto one = w.proxy.connect();
        for (const auto& raw : odd) {
            CAPTURE(raw.substr(0, 20));
            w.origin.on("/odd", raw);
            const auto before = w.origin.count("/odd");
            CHECK(one.ask(w.request("/a")).body == "mine");
            CHECK(one.ask(w.request("/odd")).status == 502);
            CHECK(w.origin.count("/odd") == before + 2);  // once more on a new connection
        }
        const auto connections = w.origin.connections();
        for (int i = 0; i < 4; ++i) {
            CHECK(one.ask(w.request("/a")).body == "mine");
        }
        CHECK(w.origin.connections() <= connections + 1);
        CHECK(w.proxy.stats()["origins"]["surplus"] == 0);
    }

    TEST_CASE("a status that is none, and a length with a hole in it, are 502") {
        world w;
        w.origin.on("/b", ok("", "next"));
        for (const char* raw : {"HTTP/1.1 099 Low\r\nContent-Length: 5\r\n\r\nhello",
                                "HTTP/1.1 600 High\r\nContent-Length: 5\r\n\r\nhello",
                                "HTTP/1.1 999 Higher\r\nContent-Length: 5\r\n\r\nhello",
                                "HTTP/1.1 200 OK\r\nContent-Length: 5,\r\n\r\nhello",
                                "HTTP/1.1 200 OK\r\nContent-Length: ,5\r\n\r\nhello",
                                "HTTP/1.1 304 Not Modified\r\nContent-Length: 5,\r\n\r\n"}) {
            CAPTURE(raw);
            w.origin.on("/a", raw);
            CHECK(w.get("/a").status == 502);
            CHECK(w.get("/b").body == "next");
        }
        w.origin.on("/a", std::string{"HTTP/1.1 599 Last\r\nContent-Length: 5, 5\r\n\r\nhello"});
        CHECK(w.get("/a").status == 599);
    }

}  // TEST_SUITE
