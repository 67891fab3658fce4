// An answer that ends before its end, for whatever reason, is seen to be cut by a client that was
// told no length: its connection is reset, and over TLS there is no close_notify.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/tls_client.hpp"

#include <csignal>
#include <functional>
#include <memory>
#include <string>

TEST_SUITE("scenario/cut_answers") {

    using namespace reprise::tests;

    namespace {

    /// How many bytes a slow client's side can swallow is far less.
    constexpr std::size_t far_too_much = 48 * mib;

    /// Sends a body that only the end of the connection delimits, and never comes to its end.
    origin_handler endless() {
        return [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\n");
            const auto piece = patterned(mib);
            for (std::size_t at = 0; at < far_too_much; at += mib) {
                if (!connection.send(piece, 3 * patience)) {
                    return;
                }
            }
            (void)connection.is_closed_by_proxy(3 * patience);
        };
    }

    std::string as_http10(const fake_origin& origin, std::string_view path) {
        return "GET " + origin.url(path) + " HTTP/1.0\r\nHost: " + origin.authority() + "\r\n\r\n";
    }

    json with_patience(const char* client_body) {
        auto settings = storing_settings();
        settings["timeouts"]["client_body"] = client_body;
        return settings;
    }

    struct with_tls {
        temp_dir files;
        test_authority authority;
        fake_origin origin;
        std::unique_ptr<proxy_process> proxy;

        explicit with_tls(json settings) {
            const auto made = authority.issue("IP:127.0.0.1");
            settings["listeners"] = json::array({tls_listener(files, made)});
            proxy = std::make_unique<proxy_process>(settings);
        }
        [[nodiscard]] std::unique_ptr<tls_client> connect() const {
            tls_peer::wishes wanted;
            wanted.trusted = authority.certificate();
            return std::make_unique<tls_client>(proxy->port(), wanted);
        }
    };

    /// A far side, and a client's tunnel to it.
    struct tunnelled {
        acceptor server;
        std::unique_ptr<proxy_process> proxy;
        std::unique_ptr<client> near;
        stream far;

        explicit tunnelled(json settings) {
            settings["access"]["connect_ports"] = json::array({server.port()});
            proxy = std::make_unique<proxy_process>(settings);
            near = std::make_unique<client>(proxy->port());
            const auto to = "127.0.0.1:" + std::to_string(server.port());
            near->send("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n");
            far = server.accept(patience);
            REQUIRE(near->read_head("CONNECT").status == 200);
        }
        void pass_half() {
            far.send("half");
            CHECK(near->read_raw(4) == "half");
        }
    };

    }  // namespace

    TEST_CASE("a client that reads too slowly is reset, not told the end") {
        world w{with_patience("500ms")};
        w.origin.on("/a", endless());
        client slow{w.proxy.port()};
        slow.connection().shrink_receive_buffer(64 << 10);
        slow.send(as_http10(w.origin, "/a"));
        REQUIRE(slow.read_head().status == 200);
        CHECK(eventually([&] { return w.origin.open_connections() == 0; }));
        const auto rest = slow.read_to_end();
        CHECK(rest.end == read_end::reset);
        CHECK(rest.bytes.size() < far_too_much);
    }

    TEST_CASE("over TLS there is no close_notify for one that reads too slowly") {
        with_tls w{with_patience("500ms")};
        w.origin.on("/a", endless());
        tls_peer::wishes wanted;
        wanted.trusted = w.authority.certificate();
        auto tcp = stream::connect(w.proxy->port());
        tcp.shrink_receive_buffer(64 << 10);
        auto slow = tls_peer::client(tcp.release(), wanted);
        REQUIRE(slow.shake_hands());
        slow.send(as_http10(w.origin, "/a"));
        CHECK(eventually(
            [&] { return w.origin.count("/a") == 1 && w.origin.open_connections() == 0; }));
        CHECK(slow.read_to_end().end == tls_end::truncated);
    }

    TEST_CASE("the end of timeouts.drain is a reset for who has half of an answer") {
        auto settings = storing_settings();
        settings["timeouts"]["drain"] = "0s";
        auto signal = SIGTERM;
        SUBCASE("after SIGTERM") {}
        SUBCASE("and so is the end of the process by force") {
            signal = SIGKILL;
        }
        world w{settings};
        w.origin.on("/a", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\nhalf");
            (void)connection.is_closed_by_proxy();
        });
        client one{w.proxy.port()};
        one.send(as_http10(w.origin, "/a"));
        auto answer = one.read_head();
        one.read_body(answer, 4);
        CHECK(answer.body == "half");
        if (signal == SIGKILL) {
            w.proxy.kill();
        } else {
            w.proxy.signal(signal);
        }
        CHECK(one.read_to_end().end == read_end::reset);
    }

    TEST_CASE("over TLS the end of timeouts.drain is no close_notify") {
        auto settings = storing_settings();
        settings["timeouts"]["drain"] = "0s";
        with_tls w{settings};
        w.origin.on("/a", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\nhalf");
            (void)connection.is_closed_by_proxy();
        });
        const auto one = w.connect();
        one->http().send(as_http10(w.origin, "/a"));
        auto answer = one->http().read_head();
        one->http().read_body(answer, 4);
        CHECK(answer.body == "half");
        w.proxy->signal(SIGTERM);
        CHECK(one->end() == tls_end::truncated);
    }

    TEST_CASE("an answer that is whole ends without a reset") {
        world w;
        w.origin.on("/a", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nall of it");
            connection.close();
        });
        for (int i = 0; i < 2; ++i) {
            client one{w.proxy.port()};
            one.send(as_http10(w.origin, "/a"));
            const auto rest = one.read_to_end();
            CHECK(rest.end == read_end::closed);
            CHECK(rest.bytes.ends_with("all of it"));
        }
    }

    TEST_CASE("what a client that left was not sent reaches nobody else") {
        for (const std::string lifetime : {"max-age=60", "no-store"}) {
            CAPTURE(lifetime);
            auto settings = storing_settings();
            settings["threads"] = 1;
            settings["memory"] = {{"size", "256MiB"}, {"max_object", "64MiB"}};
            world w{settings};
            w.origin.on("/large",
                        ok("Cache-Control: " + lifetime + "\r\n", patterned(far_too_much)));
            w.origin.on("/small", ok("Cache-Control: max-age=60\r\n", "hello"));
            (void)w.get("/large");
            CHECK(w.get("/small").body == "hello");
            for (const std::string next : {"/small", "/new", "/small"}) {
                w.origin.on("/new", ok("Cache-Control: no-store\r\n", "hello"));
                auto gone = w.proxy.connect();
                gone.connection().shrink_receive_buffer(4096);
                gone.send(w.request("/large"));
                auto answer = gone.read_head();
                gone.read_body(answer, 50'000);
                const auto left = figure(w.proxy.stats(), "/requests/client_gone");
                gone.connection().reset();
                REQUIRE(eventually(
                    [&] { return figure(w.proxy.stats(), "/requests/client_gone") > left; }));
                const auto other = w.get(next);
                CHECK(other.status == 200);
                CHECK(other.body == "hello");
            }
        }
    }

    TEST_CASE("a tunnel that one side broke, or that went quiet, is reset on both") {
        auto settings = basic_settings();
        SUBCASE("the far side broke it") {
            tunnelled w{settings};
            w.pass_half();
            w.far.reset();
            CHECK(w.near->read_to_end().end == read_end::reset);
        }
        SUBCASE("the client broke it") {
            tunnelled w{settings};
            w.pass_half();
            w.near->connection().reset();
            std::string none;
            CHECK(w.far.read_some(none) == read_end::reset);
        }
        SUBCASE("nothing moved for timeouts.tunnel_idle") {
            settings["timeouts"]["tunnel_idle"] = "200ms";
            tunnelled w{settings};  // which this program may be too slow to use
            std::string none;
            CHECK(w.near->read_to_end().end == read_end::reset);
            CHECK(w.far.read_some(none) == read_end::reset);
        }
        SUBCASE("the proxy ended") {
            settings["timeouts"]["drain"] = "0s";
            tunnelled w{settings};
            w.pass_half();
            w.proxy->signal(SIGTERM);
            std::string none;
            CHECK(w.near->read_to_end().end == read_end::reset);
            CHECK(w.far.read_some(none) == read_end::reset);
        }
    }

}  // TEST_SUITE
