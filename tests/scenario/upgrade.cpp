// Upgrade: websocket alone, and nothing passes before the origin's 101.

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/upgrade") {

    using namespace reprise::tests;

    namespace {

    const std::string handshake =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

    const std::string switching = raw_head(
        "101 Switching Protocols",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");

    }  // namespace

    TEST_CASE("after the 101 bytes pass both ways") {
        world w{basic_settings()};
        w.origin.on("/ws", [](origin_request&, origin_connection& connection) {
            connection.send(switching + "greeting");
            std::string got;
            while (got.size() < 4 && connection.read_some(got) == read_end::data) {
            }
            connection.send("got " + got);
            connection.close();
        });
        auto one = w.proxy.connect(w.request("/ws", handshake));
        const auto head = one.read_head();
        CHECK(head.status == 101);
        CHECK(lower(head.get("Upgrade")) == "websocket");
        CHECK(lower(head.get("Connection")).find("upgrade") != std::string::npos);
        CHECK(head.get("Sec-WebSocket-Accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        CHECK(one.read_raw(8) == "greeting");
        one.send("ping");
        CHECK(one.read_raw(8) == "got ping");
        CHECK(one.is_closed_by_proxy());
        const auto got = w.origin.requests("/ws").at(0);
        CHECK(lower(got.get("Upgrade")) == "websocket");
        CHECK(lower(got.get("Connection")).find("upgrade") != std::string::npos);
        CHECK(got.get("Sec-WebSocket-Key") == "dGhlIHNhbXBsZSBub25jZQ==");
    }

    TEST_CASE("nothing that a client sends early reaches the origin before its 101") {
        std::atomic<bool> came_early{false};
        world w{basic_settings()};
        auto& go = w.origin.make_gate();
        w.origin.on("/ws", [&](origin_request&, origin_connection& connection) {
            std::string early;
            came_early = connection.read_some(early, a_moment) == read_end::data;
            go.wait();
            connection.send(switching);
            std::string got;
            while (got.size() < 5 && connection.read_some(got) == read_end::data) {
            }
            connection.send(got);
            connection.close();
        });
        auto one = w.proxy.connect(w.request("/ws", handshake) + "early");
        go.open();
        CHECK(one.read_head().status == 101);
        CHECK(one.read_raw(5) == "early");
        CHECK_FALSE(came_early);
    }

    TEST_CASE("a refusal is an answer like any other, and what was sent early is no request") {
        world w{basic_settings()};
        w.origin.on("/ws", answer("403 Forbidden", "", "no"));
        w.origin.on("/smuggled", ok("", "never"));
        auto one = w.proxy.connect(w.request("/ws", handshake));
        const auto answer = one.read();
        CHECK(answer.status == 403);
        CHECK(answer.body == "no");
        for (const auto& request : w.origin.requests()) {
            CHECK(request.target == "/ws");
        }
    }

    TEST_CASE("no other upgrade is passed on") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        for (const std::string protocol : {"h2c", "TLS/1.0", "foo", "websocket2", "connect-udp"}) {
            CAPTURE(protocol);
            CHECK(w.get("/a",
                        "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\nUpgrade: " +
                            protocol + "\r\n")
                      .body == "hello");
            const auto got = w.origin.requests("/a").back();
            CHECK_FALSE(got.has("Upgrade"));
            CHECK_FALSE(got.has("HTTP2-Settings"));
        }
    }

    TEST_CASE("an origin that upgrades to something else is 502") {
        world w{basic_settings()};
        w.origin.on("/ws",
                    raw_head("101 Switching Protocols", "Connection: Upgrade\r\nUpgrade: h2c\r\n") +
                        ok("X-Evil: yes\r\n", "evil"));
        auto one = w.proxy.connect();
        const auto answer = one.ask(w.request("/ws", handshake));
        CHECK(answer.status == 502);
        CHECK_FALSE(answer.has("X-Evil"));
    }

    TEST_CASE("behind an upgrade that was refused nothing is read as a request") {
        world w{basic_settings()};
        w.origin.on("/ws", answer("403 Forbidden", "", "no"));
        w.origin.on("/a", ok("", "hello"));
        std::string body;
        SUBCASE("a handshake") {}
        SUBCASE("with a body: it is not asked for") {
            body = "Content-Length: 4\r\n\r\nbody";
        }
        auto one = w.proxy.connect("GET " + w.origin.url("/ws") +
                                   " HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n" +
                                   handshake + (body.empty() ? "\r\n" : body) + w.request("/a"));
        const auto said = one.read();
        CHECK(said.status == 403);
        CHECK(said.body == "no");
        CHECK(lower(said.get("Connection")) == "close");
        const auto end = one.read_to_end();
        CHECK(end.bytes == "");
        CHECK(end.end == read_end::closed);
        CHECK(w.origin.count("/a") == 0);
        CHECK(w.origin.requests("/ws").at(0).has("Upgrade") == body.empty());
    }

    TEST_CASE("HTTP/1.0 cannot upgrade, nor can a POST with a body") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        auto old = w.proxy.connect();
        CHECK(old.ask("GET " + w.origin.url("/a") + " HTTP/1.0\r\n" + handshake + "\r\n").body ==
              "hello");
        CHECK_FALSE(w.origin.requests("/a").back().has("Upgrade"));
        auto one = w.proxy.connect();
        const auto answer = one.ask(
            absolute_request("POST", w.origin.url("/a"), handshake, "body"));
        CHECK((answer.status == 200 || answer.status == 400));
        if (answer.status == 200) {
            CHECK_FALSE(w.origin.requests("/a").back().has("Upgrade"));
        }
    }

}  // TEST_SUITE
