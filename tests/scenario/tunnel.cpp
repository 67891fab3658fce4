// CONNECT: bytes both ways, to the ports that access.connect_ports allows.

#include "tests/scenario/world.hpp"

#include <thread>

TEST_SUITE("scenario/tunnel") {

    using namespace reprise::tests;

    namespace {

    /// An origin that is a plain TCP server, and a proxy that may CONNECT to it.
    struct tunnel_world {
        acceptor server;
        proxy_process proxy;

        explicit tunnel_world(json settings = basic_settings()) : proxy{allow(settings)} {}

        json& allow(json& settings) const {
            settings["access"]["connect_ports"] = json::array({server.port()});
            return settings;
        }
        [[nodiscard]] std::string authority() const {
            return "127.0.0.1:" + std::to_string(server.port());
        }
        [[nodiscard]] std::string connect_request(const std::string& fields = "") const {
            return "CONNECT " + authority() + " HTTP/1.1\r\nHost: " + authority() + "\r\n" +
                   fields + "\r\n";
        }
    };

    }  // namespace

    TEST_CASE("bytes pass both ways until both sides have closed") {
        tunnel_world w;
        auto one = w.proxy.connect(w.connect_request());
        auto far = w.server.accept(patience);
        REQUIRE(far.is_open());
        const auto head = one.read_head("CONNECT");
        CHECK(head.status == 200);
        CHECK_FALSE(head.has("Content-Length"));
        CHECK_FALSE(head.has("Transfer-Encoding"));

        one.send("ping");
        CHECK(far.read_at_least(4) == "ping");
        far.send("pong");
        CHECK(one.read_raw(4) == "pong");

        // Half closed: the other way goes on.
        one.connection().finish_sending();
        std::string rest;
        CHECK(far.read_some(rest) == read_end::closed);
        far.send("still here");
        CHECK(one.read_raw(10) == "still here");
        far.close();
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("the far side may be the first to close its half") {
        tunnel_world w;
        auto one = w.proxy.connect(w.connect_request());
        auto far = w.server.accept(patience);
        REQUIRE(one.read_head("CONNECT").status == 200);
        far.send("bye");
        far.finish_sending();
        const auto end = one.read_to_end();
        CHECK(end.bytes == "bye");
        CHECK(end.end == read_end::closed);
        one.send("thanks");
        CHECK(far.read_at_least(6) == "thanks");
    }

    TEST_CASE("bytes sent right behind CONNECT reach the far side") {
        tunnel_world w;
        auto one = w.proxy.connect();
        const auto early = patterned(100 * kib);
        one.send(w.connect_request() + early);
        auto far = w.server.accept(patience);
        REQUIRE(far.is_open());
        CHECK(far.read_at_least(early.size()) == early);
        CHECK(one.read_head("CONNECT").status == 200);
    }

    TEST_CASE("what the far side says first is not lost, nor mixed with the head") {
        tunnel_world w;
        auto one = w.proxy.connect(w.connect_request());
        auto far = w.server.accept(patience);
        far.send("SSH-2.0-hello\r\n");
        CHECK(one.read_head("CONNECT").status == 200);
        CHECK(one.read_raw(15) == "SSH-2.0-hello\r\n");
    }

    TEST_CASE("much passes both ways at once") {
        tunnel_world w;
        auto one = w.proxy.connect(w.connect_request());
        auto far = w.server.accept(patience);
        REQUIRE(one.read_head("CONNECT").status == 200);
        const auto up = patterned(8 * mib, 1);
        const auto down = patterned(8 * mib, 2);
        std::string got_up;
        std::thread server{[&] {
            std::thread sender{[&] { far.send(down); }};
            got_up = far.read_at_least(up.size());
            sender.join();
        }};
        std::thread sender{[&] { one.send(up); }};
        CHECK(one.read_raw(down.size()) == down);
        sender.join();
        server.join();
        CHECK(got_up == up);
    }

    TEST_CASE("a reset on one side ends the other") {
        tunnel_world w;
        auto one = w.proxy.connect(w.connect_request());
        auto far = w.server.accept(patience);
        REQUIRE(one.read_head("CONNECT").status == 200);
        SUBCASE("the client's") {
            one.connection().reset();
            std::string rest;
            CHECK(far.read_some(rest) != read_end::timed_out);
        }
        SUBCASE("the far side's") {
            far.reset();
            CHECK(one.is_closed_by_proxy());
        }
    }

    TEST_CASE("a tunnel in which nothing moves ends after timeouts.tunnel_idle") {
        auto settings = basic_settings();
        settings["timeouts"]["tunnel_idle"] = "300ms";
        tunnel_world w{settings};
        auto one = w.proxy.connect(w.connect_request());
        auto far = w.server.accept(patience);
        REQUIRE(one.read_head("CONNECT").status == 200);
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("a port that access.connect_ports does not have is 403 and names the setting") {
        world w{basic_settings()};
        auto one = w.proxy.connect();
        const auto answer = one.ask("CONNECT " + w.origin.authority() +
                                    " HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n\r\n");
        CHECK(answer.status == 403);
        CHECK(answer.body.find("connect_ports") != std::string::npos);
        CHECK(w.origin.connections() == 0);
    }

    TEST_CASE("behind a refused CONNECT nothing is read as a request, and the page arrives") {
        // What follows may be a third party's: it went to the far side of a tunnel, as its author
        // was told, and must not be asked of anybody as this client's (RFC 9931).
        fake_origin origin;
        origin.on("/a", ok("", "hello"));
        const closed_port closed;
        const auto nobody = "127.0.0.1:" + std::to_string(closed.port());
        auto settings = basic_settings();
        settings["access"]["connect_ports"] = {80, 443, origin.port(), closed.port()};
        settings["access"]["deny_destinations"] = {"denied.test"};
        settings["forwarding"]["pseudonym"] = "this-one";
        settings["peers"] = json::array({{{"name", "n"}, {"url", "http://127.0.0.1:1"}}});
        const proxy_process proxy{settings};
        struct refused {
            std::string what, target, fields;
            int status;
        };
        for (const auto& each : std::vector<refused>{
                 {"by name", "denied.test:443", "", 403},
                 {"by the guard", "169.254.169.254:80", "", 403},
                 {"a loop", origin.authority(), "Via: 1.1 this-one\r\n", 508},
                 {"nobody there", nobody, "", 502},
                 {"no authority", "/", "", 400},
                 {"a page for peers", "/.well-known/reprise/digest", "", 400},
                 {"a body", nobody, "Content-Length: 3\r\n", 400},
                 {"an expectation", nobody, "Expect: more\r\n", 417},
             }) {
            CAPTURE(each.what);
            auto one = proxy.connect(
                "CONNECT " + each.target + " HTTP/1.1\r\nHost: x\r\n" + each.fields + "\r\n" +
                absolute_request("GET", origin.url("/a")) + std::string(200 * kib, 'x'));
            const auto answer = one.read("CONNECT");
            CHECK(answer.status == each.status);
            CHECK(lower(answer.get("Connection")) == "close");
            CHECK(answer.complete());
            const auto end = one.read_to_end();
            CHECK(end.bytes == "");
            CHECK(end.end == read_end::closed);
        }
        CHECK(origin.requests().empty());
    }

    TEST_CASE("a port that is refused closes as well, whatever came behind the CONNECT") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        auto one = w.proxy.connect("CONNECT " + w.origin.authority() +
                                   " HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n\r\n");
        CHECK(one.read("CONNECT").status == 403);
        one.send(w.request("/a"));
        const auto end = one.read_to_end();
        CHECK(end.bytes == "");
        CHECK(end.end == read_end::closed);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("CONNECT wants host and port, nothing else") {
        world w{basic_settings()};
        for (const std::string target : {"127.0.0.1",
                                         "127.0.0.1:",
                                         "127.0.0.1:0",
                                         "127.0.0.1:443x",
                                         "127.0.0.1:99999",
                                         "http://127.0.0.1:443/",
                                         "127.0.0.1:443/",
                                         "user@127.0.0.1:443",
                                         "/",
                                         "*"}) {
            CAPTURE(target);
            auto one = w.proxy.connect();
            CHECK(
                one.ask("CONNECT " + std::string{target} + " HTTP/1.1\r\nHost: x\r\n\r\n").status ==
                400);
        }
    }

    TEST_CASE("a far side that refuses is 502 with a Proxy-Status") {
        auto settings = basic_settings();
        const closed_port closed;
        settings["access"]["connect_ports"] = json::array({closed.port()});
        const proxy_process proxy{settings};
        auto one = proxy.connect();
        const auto authority = "127.0.0.1:" + std::to_string(closed.port());
        const auto answer = one.ask("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority +
                                    "\r\n\r\n");
        CHECK(answer.status == 502);
        CHECK(answer.get("Proxy-Status").find("connection_refused") != std::string::npos);
    }

    TEST_CASE("a URL of another scheme is a clear 501") {
        world w{basic_settings()};
        CHECK(w.proxy.get("ftp://" + w.origin.authority() + "/a").status == 501);
        CHECK(w.origin.connections() == 0);
    }

}  // TEST_SUITE
