// One client's share of an origin: what stalls, crawls or fills up for one address leaves the
// others theirs.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <atomic>
#include <string>
#include <vector>

TEST_SUITE("scenario/client_shares") {

    using namespace reprise::tests;

    namespace {

    const std::string greedy = "127.0.0.1";
    const std::string modest = "127.0.0.2";

    /// One thread, so that a share is what the settings say.
    json with_shares(unsigned connections, unsigned of_one_client) {
        auto settings = storing_settings();
        settings["threads"] = 1;
        settings["origins"] = {{"connections", connections},
                               {"connections_per_client", of_one_client}};
        return settings;
    }

    response ask_from(world& w, const std::string& address, const std::string& request) {
        client one{w.proxy.port(), address};
        return one.ask(request);
    }

    /// Requests that wait at the origin until it goes.
    std::vector<client> stall(world& w, const std::string& address, unsigned count) {
        auto& go = w.origin.make_gate();
        w.origin.on("/stall", [&go](origin_request&, origin_connection& connection) {
            go.wait(std::chrono::minutes{1});
            connection.send(ok("", "at last"));
        });
        std::vector<client> waiting;
        for (unsigned i = 0; i < count; ++i) {
            waiting.emplace_back(w.proxy.port(), address);
            waiting.back().send(w.request("/stall?" + std::to_string(i)));
        }
        return waiting;
    }

    }  // namespace

    TEST_CASE("who has its share of an origin stalled leaves others theirs, and is told") {
        auto settings = with_shares(4, 2);
        settings["timeouts"]["origin_connect"] = "300ms";
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        const auto stalled = stall(w, greedy, 4);
        REQUIRE(eventually([&] { return w.origin.count("/stall") == 2; }));
        for (int i = 0; i < 5; ++i) {
            CHECK(ask_from(w, modest, w.request("/a")).body == "hello");
        }
        const auto refused = ask_from(w, greedy, w.request("/a"));
        CHECK(refused.status == 503);
        CHECK(refused.get("Proxy-Status").find("connection_limit_reached") != std::string::npos);
        CHECK(refused.body.find("origins.connections_per_client") != std::string::npos);
        CHECK(w.origin.count("/stall") == 2);
        CHECK(eventually([&] { return w.proxy.stats()["failures"]["client_share_used"] == 3; }));
    }

    TEST_CASE("what waits for its own share goes on when that comes free, or larger") {
        auto settings = with_shares(8, 1);
        world w{settings};
        auto& first = w.origin.hold("/first", ok("", "first"));
        w.origin.on("/second", ok("", "second"));
        client one{w.proxy.port(), greedy};
        client two{w.proxy.port(), greedy};
        one.send(w.request("/first"));
        REQUIRE(eventually([&] { return w.origin.count("/first") == 1; }));
        two.send(w.request("/second"));
        CHECK(never_within_a_moment([&] { return w.origin.count("/second") > 0; }));
        SUBCASE("by its other request's end") {
            first.open();
            CHECK(one.read().body == "first");
            CHECK(two.read().body == "second");
        }
        SUBCASE("by a reload") {
            settings["origins"]["connections_per_client"] = 2;
            w.proxy.reload(settings);
            CHECK(two.read().body == "second");
            first.open();
            CHECK(one.read().body == "first");
        }
    }

    TEST_CASE("access.fronts are no one client, at the origin or at the door") {
        auto settings = with_shares(8, 2);
        settings["access"]["fronts"] = {greedy};
        settings["limits"]["connections_per_client"] = 3;
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        const auto stalled = stall(w, greedy, 6);
        CHECK(eventually([&] { return w.origin.count("/stall") == 6; }));
        CHECK(ask_from(w, greedy, w.request("/a")).body == "hello");
    }

    TEST_CASE("nobody waits with a client that has used its share for what both ask for") {
        world w{with_shares(8, 2)};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto stalled = stall(w, greedy, 2);
        REQUIRE(eventually([&] { return w.origin.count("/stall") == 2; }));
        client waits{w.proxy.port(), greedy};
        waits.send(w.request("/a"));
        CHECK(never_within_a_moment([&] { return w.origin.count("/a") > 0; }));
        CHECK(ask_from(w, modest, w.request("/a")).body == "hello");
    }

    TEST_CASE("a tunnel that an upgrade made counts in its client's share") {
        auto settings = with_shares(8, 1);
        settings["timeouts"]["origin_connect"] = "300ms";
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        w.origin.on("/ws", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                            "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n");
            (void)connection.is_closed_by_proxy();
        });
        client one{w.proxy.port(), greedy};
        one.send(w.request("/ws",
                           "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
                           "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
        REQUIRE(one.read_head().status == 101);
        CHECK(ask_from(w, greedy, w.request("/a")).status == 503);
        CHECK(ask_from(w, modest, w.request("/a")).body == "hello");
        one.connection().reset();
        CHECK(eventually([&] { return ask_from(w, greedy, w.request("/a")).body == "hello"; }));
    }

    TEST_CASE(
        "what is validated behind one client's back is no more than its share, of all origins") {
        std::atomic<unsigned> validated{0};
        fake_origin another;
        world w{with_shares(8, 2)};
        for (auto* one : {&w.origin, &another}) {
            auto& go = one->make_gate();
            one->on("/a", [&](origin_request& request, origin_connection& connection) {
                if (request.has("If-None-Match")) {
                    ++validated;
                    go.wait(std::chrono::minutes{1});
                    connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n");
                    return;
                }
                connection.send(ok("Age: 100\r\nETag: \"1\"\r\nCache-Control: max-age=60, "
                                   "stale-while-revalidate=600\r\n",
                                   "old"));
            });
        }
        std::vector<std::string> urls;
        for (int i = 0; i < 4; ++i) {
            for (const auto* one : {&w.origin, &another}) {
                urls.push_back(one->url("/a?" + std::to_string(i)));
            }
        }
        for (const auto& url : urls) {
            REQUIRE(ask_from(w, modest, absolute_request("GET", url)).body == "old");
        }
        // On one connection, one behind the other: each is answered at once.
        client one{w.proxy.port(), greedy};
        for (const auto& url : urls) {
            CHECK(one.ask(absolute_request("GET", url)).body == "old");
        }
        CHECK(eventually([&] { return validated == 2; }));
        CHECK(never_within_a_moment([&] { return validated > 2; }));
        CHECK(ask_from(w, modest, absolute_request("GET", urls.back())).body == "old");
        CHECK(eventually([&] { return validated == 3; }));
        w.origin.open_gates();
        another.open_gates();
        CHECK(eventually([&] {
            CHECK(one.ask(absolute_request("GET", urls[5])).body == "old");
            return validated > 3;
        }));
    }

    TEST_CASE("an upload that has not begun takes no connection from an origin") {
        world w{with_shares(8, 8)};
        const unsigned tries = 10;
        for (unsigned i = 0; i < tries; ++i) {
            client one{w.proxy.port(), greedy};
            one.send(absolute_request("POST", w.origin.url("/up"), "Content-Length: 100000\r\n") +
                     "a few bytes");
            one.connection().reset();
            // It is logged only where its head was read before the reset.
            REQUIRE(eventually([&] { return figure(w.proxy.stats(), "/clients/open") == 0; }));
        }
        // A busy machine may make the beginning of one or the other seem late.
        CHECK(w.origin.connections() < tries / 2);
    }

    TEST_CASE("slow, small, expected and chunked bodies all arrive whole") {
        world w{with_shares(8, 8)};
        w.origin.on("/up", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("", request.body));
        });
        const auto long_one = std::string(200'000, 'l');
        CHECK(
            ask_from(w, greedy, absolute_request("POST", w.origin.url("/up"), "", long_one)).body ==
            long_one);
        for (const std::string fields :
             {"Content-Length: 11\r\n", "Transfer-Encoding: chunked\r\n"}) {
            CAPTURE(fields);
            const bool chunked = fields.starts_with("T");
            client one{w.proxy.port(), greedy};
            one.send(absolute_request("POST", w.origin.url("/up"), fields));
            one.send(chunked ? chunk("hello ") : "hello ");
            // Longer than a beginning is waited for: the connection is there, with the rest to
            // come.
            const auto had = w.origin.connections();
            (void)eventually([&] { return w.origin.connections() > had; }, a_moment);
            one.send(chunked ? chunk("world") + chunk("") : "world");
            CHECK(one.read("POST").body == "hello world");
        }
    }

    TEST_CASE("crawling uploads, stalled requests and slow readers of one client, and the others") {
        auto settings = with_shares(64, 8);
        settings["limits"]["connections_per_client"] = 400;
        world w{settings};
        w.origin.on("/a", ok("", "hello"));
        w.origin.on("/big", ok("", patterned(4 * mib)));
        w.origin.on("/up", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("", std::to_string(request.body.size())));
        });
        auto attackers = stall(w, greedy, 100);
        for (unsigned i = 0; i < 100; ++i) {
            attackers.emplace_back(w.proxy.port(), greedy);
            attackers.back().send(absolute_request(
                "POST", w.origin.url("/up?" + std::to_string(i)), "Content-Length: 9999\r\n"));
            attackers.back().send("x");
        }
        for (unsigned i = 0; i < 100; ++i) {
            attackers.emplace_back(w.proxy.port(), greedy);
            attackers.back().connection().shrink_receive_buffer(4096);
            attackers.back().send(w.request("/big?" + std::to_string(i)));
        }
        REQUIRE(eventually([&] { return w.proxy.stats()["clients"]["open"] >= 300; }));
        unsigned good = 0;
        for (unsigned i = 0; i < 200; ++i) {
            good += ask_from(w, modest, w.request("/a?" + std::to_string(i))).body == "hello";
            if (i % 20 == 0) {
                const auto body = std::string(1000 * i, 'u');
                CHECK(ask_from(w, modest, absolute_request("POST", w.origin.url("/up"), "", body))
                          .body == std::to_string(body.size()));
            }
        }
        CHECK(good == 200);
        CHECK(w.origin.open_connections() <= 64);
    }

}  // TEST_SUITE
