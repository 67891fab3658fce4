// Bodies of requests: any size and framing, Expect, and origins that answer before they have all.

#include "tests/scenario/world.hpp"

#include <thread>

TEST_SUITE("scenario/request_bodies") {

    using namespace reprise::tests;

    namespace {

    /// Answers with how long a body it got.
    void echo_length(origin_request& request, origin_connection& connection) {
        connection.send(ok("", std::to_string(request.body.size())));
    }

    }  // namespace

    TEST_CASE("a body with a length arrives with that length") {
        world w;
        w.origin.on("/a", echo_length);
        const auto body = patterned(300 * kib);
        auto one = w.proxy.connect();
        const auto answer = one.ask(absolute_request("POST", w.origin.url("/a"), "", body));
        CHECK(answer.body == std::to_string(body.size()));
        const auto got = w.origin.requests("/a").at(0);
        CHECK(got.body == body);
        CHECK(got.get("Content-Length") == std::to_string(body.size()));
        CHECK_FALSE(got.has("Transfer-Encoding"));
    }

    TEST_CASE("a chunked body arrives whole, its chunk lines canonical, its trailers clean") {
        world w;
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect();
        one.send("POST " + w.origin.url("/a") + " HTTP/1.1\r\nHost: " + w.origin.authority() +
                 "\r\nTransfer-Encoding: Chunked\r\nTrailer: X-Sum\r\n\r\n"
                 "5;ext=1\r\nhello\r\n00006\r\n world\r\n0\r\nX-Sum: 17\r\nContent-Length: 2\r\n"
                 "Host: evil\r\nTransfer-Encoding: x\r\n\r\n");
        CHECK(one.read("POST").body == "11");
        const auto got = w.origin.requests("/a").at(0);
        CHECK(got.body == "hello world");
        CHECK(got.body_complete);
        CHECK(got.chunk_lines_are_canonical);
        CHECK(got.fields.count("Transfer-Encoding") <= 1);
        CHECK_FALSE(got.trailers.has("Content-Length"));
        CHECK_FALSE(got.trailers.has("Host"));
        CHECK_FALSE(got.trailers.has("Transfer-Encoding"));
        CHECK(got.trailers.get("X-Sum") == "17");
    }

    TEST_CASE("every byte of a chunked request may come alone") {
        world w;
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect();
        const auto raw = "POST " + w.origin.url("/a") +
                         " HTTP/1.1\r\nHost: " + w.origin.authority() +
                         "\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("hello") +
                         chunk(" world") + chunk("");
        for (const char c : raw) {
            one.send({&c, 1});
        }
        CHECK(one.read("POST").body == "11");
        CHECK(w.origin.requests("/a").at(0).body == "hello world");
    }

    TEST_CASE("no body, an empty body and a GET with a body keep the next request apart") {
        world w{basic_settings()};
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect();
        CHECK(one.ask(absolute_request("POST", w.origin.url("/a"))).body == "0");
        CHECK(one.ask(absolute_request("POST", w.origin.url("/a"), "Content-Length: 0\r\n")).body ==
              "0");
        CHECK(one.ask(absolute_request("DELETE", w.origin.url("/a"))).body == "0");
        CHECK(one.ask(absolute_request("GET", w.origin.url("/a"), "", "abc")).body == "3");
        CHECK(
            one.ask(absolute_request("PUT", w.origin.url("/a"), "Transfer-Encoding: chunked\r\n") +
                    chunk(""))
                .body == "0");
        CHECK(w.origin.count("/a") == 5);
    }

    TEST_CASE("Expect: 100-continue waits for the origin's word") {
        world w{basic_settings()};
        auto& go = w.origin.make_gate();
        w.origin.on_head("/a", [&](origin_request& request, origin_connection& connection) {
            go.wait();
            connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            connection.read_body(request);
            echo_length(request, connection);
        });
        auto one = w.proxy.connect();
        one.send(absolute_request(
            "POST", w.origin.url("/a"), "Expect: 100-continue\r\nContent-Length: 5\r\n"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
        CHECK(w.origin.requests("/a").at(0).get("Expect") == "100-continue");
        go.open();
        CHECK(one.read_one_head().status == 100);
        one.send("hello");
        const auto answer = one.read("POST");
        CHECK(answer.status == 200);
        CHECK(answer.body == "5");
    }

    TEST_CASE("a refusal in answer to Expect reaches the client, which need not send its body") {
        world w{basic_settings()};
        w.origin.on_head("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(answer("413 Content Too Large", "", "no"));
        });
        w.origin.on("/b", ok("", "next"));
        auto one = w.proxy.connect();
        one.send(absolute_request(
            "POST", w.origin.url("/a"), "Expect: 100-continue\r\nContent-Length: 5000000\r\n"));
        const auto answer = one.read("POST");
        CHECK(answer.status == 413);
        CHECK(answer.body == "no");
        // The client may give up the body only with the connection: nothing that it sends now may
        // be read as a request unless the whole body has come.
        one.send(w.request("/b"));
        CHECK(one.read_to_end(a_moment).bytes.empty());
        CHECK(w.origin.count("/b") == 0);
    }

    TEST_CASE("a client that does not wait for 100 Continue is served too") {
        world w{basic_settings()};
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect();
        const auto answer = one.ask(
            absolute_request("POST", w.origin.url("/a"), "Expect: 100-continue\r\n", "hello"));
        CHECK(answer.status == 200);
        CHECK(answer.body == "5");
    }

    TEST_CASE("an unknown expectation is 417") {
        world w{basic_settings()};
        auto one = w.proxy.connect();
        CHECK(one.ask(absolute_request("POST", w.origin.url("/a"), "Expect: a-miracle\r\n", "x"))
                  .status == 417);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("an origin that answers before the body is out: its connection is not used again") {
        world w{basic_settings()};
        w.origin.on_head("/early", [&](origin_request&, origin_connection& connection) {
            connection.send(answer("401 Unauthorized", "", "who?"));
        });
        w.origin.on("/b", ok("", "my own"));
        const auto body = w.request("/b",
                                    "X-Smuggled: yes\r\n");  // would be a request if read as one
        auto one = w.proxy.connect();
        one.send(absolute_request("POST",
                                  w.origin.url("/early"),
                                  "Content-Length: " + std::to_string(body.size() + 10) + "\r\n"));
        one.send(body.substr(0, body.size() / 2));
        const auto early = one.read("POST");
        CHECK(early.status == 401);
        CHECK(early.body == "who?");
        one.send(body.substr(body.size() / 2));
        for (int i = 0; i < 6; ++i) {
            CHECK(w.get("/b").body == "my own");
        }
        for (const auto& request : w.origin.requests()) {
            CHECK_FALSE(request.has("X-Smuggled"));
            if (request.target == "/b" || request.get("Host") == w.origin.authority()) {
                CHECK((request.target == "/early" || request.connection != 0));
            }
        }
    }

    TEST_CASE(
        "after an early reply a client that goes on sending is drained or closed, not stuck") {
        world w{basic_settings()};
        w.origin.on_head("/early", [&](origin_request&, origin_connection& connection) {
            connection.send(answer("403 Forbidden", "", "no"));
            connection.close();
        });
        auto one = w.proxy.connect();
        const std::size_t length = 64 * mib;
        one.send(absolute_request(
            "POST", w.origin.url("/early"), "Content-Length: " + std::to_string(length) + "\r\n"));
        const std::string piece(mib, 'x');
        std::thread sender{[&] {
            for (std::size_t sent = 0; sent < length && one.send(piece); sent += piece.size()) {
            }
        }};
        const auto answer = one.read("POST");
        sender.join();
        CHECK((answer.status == 403 || answer.was_reset));
        w.origin.on("/b", ok("", "next"));
        CHECK(w.get("/b").body == "next");
    }

    TEST_CASE("a request cut short never looks complete to the origin") {
        std::atomic<int> whole{0};
        std::atomic<int> cut{0};
        world w{basic_settings()};
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            ++(request.body_complete ? whole : cut);
            connection.close();
        });
        const std::string heads[] = {"Content-Length: 100\r\n\r\nhello",
                                     "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};
        int expected = 0;
        for (const auto& head : heads) {
            for (const bool by_reset : {false, true}) {
                CAPTURE(head);
                CAPTURE(by_reset);
                auto one = w.proxy.connect();
                one.send("POST " + w.origin.url("/a") +
                         " HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n" + head);
                const auto connections_before = static_cast<unsigned>(expected);
                CHECK(eventually([&] { return w.origin.connections() > connections_before; }));
                if (by_reset) {
                    one.connection().reset();
                } else {
                    one.connection().close();
                }
                ++expected;
                CHECK(eventually([&] { return w.origin.open_connections() == 0; }));
            }
        }
        CHECK(whole == 0);
    }

    TEST_CASE("a POST on a pooled connection that turns out dead is not sent twice") {
        std::atomic<int> posts{0};
        world w{basic_settings()};
        w.origin.on("/warm", ok("", "warm"));
        w.origin.on("/post", [&](origin_request&, origin_connection& connection) {
            ++posts;
            connection.close();
        });
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/warm")).body == "warm");
        const auto answer = one.ask(absolute_request("POST", w.origin.url("/post"), "", "x"));
        CHECK(answer.status == 502);
        CHECK(posts == 1);
    }

    TEST_CASE("a GET on a pooled connection that turns out dead is sent again") {
        world w{basic_settings()};
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            if (request.number == 0) {
                connection.send(ok("", "hello"));
            } else {
                connection.close();  // as a server does whose idle time has just run out
            }
        });
        auto one = w.proxy.connect();
        for (int i = 0; i < 4; ++i) {
            const auto answer = one.ask(w.request("/a"));
            CHECK(answer.status == 200);
            CHECK(answer.body == "hello");
        }
    }

}  // TEST_SUITE
