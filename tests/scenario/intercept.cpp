// Tunnels that are opened for caching, and what is asked in them. How it is found out which are: intercept_hellos.

#include "tests/scenario/opened_world.hpp"

#include <atomic>
#include <csignal>
#include <memory>
#include <openssl/ssl.h>
#include <thread>

TEST_SUITE("scenario/intercept") {

    using namespace reprise::tests;

    TEST_CASE("what a listed host says is stored, and hit with the origin stopped") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto one = w.enter("a.test");
        const auto first = one->ask(w.get("a.test", "/a"));
        CHECK(first.body == "hello");
        CHECK(cache_status_of(first).stored);
        CHECK(is_hit(one->ask(w.get("a.test", "/a"))));
        w.origin.stop();
        const auto hit = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(is_hit(hit));
        CHECK(hit.body == "hello");
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.figure("opened") == 2);
        CHECK(w.proxy->logged("/a")["url"] == "https://" + w.at("a.test") + "/a");
        // The key is that of the URL itself.
        CHECK(is_hit(w.proxy->get("https://" + w.at("a.test") + "/a")));
    }

    TEST_CASE("a host that is not listed passes, and so does one that is excepted") {
        opened_world w{{{"hosts", {"a.test", "*.b.test"}}, {"except", {"x.b.test"}}}};
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        w.check_passed_on("c.test");
        w.check_passed_on("x.b.test");
        w.check_passed_on("c.test");
        CHECK(w.origin.count("/a") == 3);
        CHECK(w.figure("opened") == 0);
    }

    TEST_CASE("tunnels of clients that intercept.clients does not have pass, and it is said why") {
        opened_world w{json{{"clients", json::array({"127.0.0.2"})}}};
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        w.check_passed_on("a.test");
        CHECK(w.figure("opened") == 0);
        CHECK(w.passed_on("a.test") == json{{"client", 1}});
        CHECK(w.enter("a.test", "127.0.0.2")->ask(w.get("a.test", "/a")).body == "hello");
        CHECK(w.figure("opened") == 1);
    }

    TEST_CASE(
        "a listed host passes at a port that intercept.ports does not have, and it is said why") {
        fake_origin other{{.identity = of_origins().issue("DNS:a.test")}};
        opened_world w;
        other.on("/a", ok(std::string{cacheable}, "hello"));
        w.settings["access"]["connect_ports"].push_back(other.port());
        w.proxy->reload(w.settings);
        auto wanted = w.wishes("a.test");
        wanted.trusted = of_origins().certificate();
        tls_client one{w.connect("a.test", other.port()), wanted};
        const auto there = "a.test:" + std::to_string(other.port());
        CHECK(one.ask("GET /a HTTP/1.1\r\nHost: " + there + "\r\n\r\n").body == "hello");
        CHECK(w.figure("opened") == 0);
        CHECK(w.passed_on("a.test") == json{{"port", 1}});
    }

    TEST_CASE("a client that does not take our certificate is tunnelled the next time, it alone") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        w.refuse("a.test");
        CHECK(w.figure("refused") == 1);
        w.check_passed_on("a.test");
        // Another host of the same client is opened.
        CHECK(w.enter("b.test")->ask(w.get("b.test", "/a")).body == "hello");
        CHECK(w.figure("opened") == 1);
    }

    TEST_CASE("what one client refuses is opened for another, and for it where it shall fail") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        w.refuse("a.test");
        CHECK(w.figure("refused") == 1);
        CHECK(w.enter("a.test", "127.0.0.2")->ask(w.get("a.test", "/a")).body == "hello");
        w.check_passed_on("a.test");
        w.reload({{"on_refusal", "fail"}});
        CHECK(is_hit(w.enter("a.test")->ask(w.get("a.test", "/a"))));
    }

    namespace {

    /// An opened_world whose clients reach the proxy by TLS.
    struct world_by_tls : opened_world {
        world_by_tls() {
            const auto own = of_the_proxy().issue("IP:127.0.0.1");
            settings["listeners"] = json::array(
                {json{{"address", "127.0.0.1:0"},
                      {"tls",
                       {{"certificate", files.write("own.pem", own.certificate)},
                        {"key", files.write("own.key", own.key)}}}}});
            proxy = std::make_unique<proxy_process>(settings);
        }
        /// An opened tunnel of such a client's.
        struct tunnel {
            tls_client outer, inner;
            explicit tunnel(const world_by_tls& w)
                : outer{w.proxy->port(), of_listener()},
                  inner{entered(w), w.wishes("a.test")} {}

            stream entered(const world_by_tls& w) {
                outer.http().send(w.connect_request("a.test"));
                REQUIRE(outer.http().read_head("CONNECT").status == 200);
                return stream{outer.http().connection().release()};
            }
            static tls_peer::wishes of_listener() {
                tls_peer::wishes wanted;
                wanted.trusted = of_the_proxy().certificate();
                return wanted;
            }
        };
        [[nodiscard]] std::unique_ptr<tunnel> open() const {
            return in_time([&] { return std::make_unique<tunnel>(*this); });
        }
    };

    }  // namespace

    TEST_CASE("a client that reaches us by TLS has its tunnels opened inside that") {
        world_by_tls w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        for (int i = 0; i < 2; ++i) {
            const auto one = w.open();
            const std::string large(300 * kib, 'x');
            w.origin.on("/large", ok(std::string{cacheable}, large));
            CHECK(one->inner.ask(w.get("a.test", "/a")).body == "hello");
            CHECK(one->inner.ask(w.get("a.test", "/large")).body == large);
        }
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.origin.count("/large") == 1);
        CHECK(w.figure("opened") == 2);
    }

    TEST_CASE("inside a client's TLS too a body goes on behind an early answer that has ended") {
        world_by_tls w;
        std::atomic<bool> whole{false};
        w.origin.on_head("/early", [&](origin_request& request, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                            chunk("soon") + chunk(""));
            connection.read_body(request);
            whole = request.body_complete;
        });
        // A client of HTTP/1.0 sees the end of such an answer by the connection's alone.
        const auto one = w.open();
        auto& client = one->inner.http();
        client.send("POST /early HTTP/1.0\r\nHost: " + w.at("a.test") +
                    "\r\nContent-Length: 1000000\r\n\r\n" + std::string(1000, 'x'));
        const auto early = client.read("POST");
        CHECK(early.complete());
        CHECK(early.body == "soon");
        client.send(std::string(999'000, 'x'));
        CHECK(eventually([&] { return whole.load(); }));
    }

    TEST_CASE("what the guard refuses is refused at CONNECT, and no tunnel opened to it") {
        opened_world w;
        w.settings["access"]["deny_destinations"] = json::array({"127.0.0.1"});
        w.settings["access"].erase("allow_destinations");
        w.proxy = std::make_unique<proxy_process>(w.settings);
        auto one = stream::connect(w.proxy->port());
        one.send(w.connect_request("a.test"));
        client asks{std::move(one)};
        CHECK(asks.read("CONNECT").status == 403);
        CHECK(w.figure("opened") == 0);
    }

    TEST_CASE("a host that is listed from a reload on is refused inside a tunnel that is open") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("a.test", "/a")).status == 200);
        w.settings["access"]["block_lists"] = {w.files.write("listed", "a.test\n")};
        w.proxy->reload(w.settings);
        CHECK(one->ask(w.get("a.test", "/a")).status == 403);
    }

    TEST_CASE("a websocket passes inside an opened tunnel") {
        opened_world w;
        w.origin.on("/ws", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
                            "websocket\r\nSec-WebSocket-Accept: "
                            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello");
            std::string got;
            while (got.size() < 4 && connection.read_some(got) == read_end::data) {
            }
            connection.send("got " + got);
            connection.close();
        });
        const auto one = w.enter("a.test");
        one->http().send(
            w.get("a.test",
                  "/ws",
                  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
        CHECK(one->http().read_head().status == 101);
        CHECK(one->http().read_raw(5) == "hello");
        one->http().send("ping");
        CHECK(one->http().read_raw(8) == "got ping");
    }

    TEST_CASE("what is asked in an opened tunnel is limited by limits.client_rate") {
        auto settings = storing_settings();
        settings["limits"]["client_rate"] = "128KiB";  // of which 64 KiB come at once
        opened_world w{json::object(), settings};
        const auto body = patterned(192 * kib);
        w.origin.on("/a", ok(std::string{cacheable}, body));
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("a.test", "/a")).body == body);
        const auto waited = w.proxy->stats()["clients"]["rate_waits"].get<int>();
        CHECK(waited > 0);
        CHECK(hit_body(one->ask(w.get("a.test", "/a"))) == body);
        CHECK(w.proxy->stats()["clients"]["rate_waits"].get<int>() > waited);
    }

    TEST_CASE("what went stale stands in for an origin that is down, inside too") {
        opened_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=0, stale-if-error=600\r\n", "hello"));
        CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "hello");
        w.origin.stop();
        const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(got.status == 200);
        CHECK(got.body == "hello");
    }

    TEST_CASE("a host that a new intermediate allows is opened from the reload on") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        w.check_passed_on("c.test");
        authority_wishes wider;
        wider.constraints =
            "critical,permitted;DNS:a.test,permitted;DNS:b.test,permitted;DNS:c.test,"
            "excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::";
        const auto ca = of_the_proxy().issue_authority(wider);
        w.files.write("ca.pem", ca.certificate);
        w.files.write("ca.key", ca.key);
        w.reload({{"hosts", {"a.test", "b.test", "c.test"}}});
        CHECK(w.enter("c.test")->ask(w.get("c.test", "/a")).body == "hello");
        CHECK(w.figure("opened") == 1);
    }

    TEST_CASE("a client that leaves at once, and without a word, has refused our certificate") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto asks = w.enter("b.test");
        CHECK(asks->ask(w.get("b.test", "/a")).body == "hello");
        asks->leave(false);
        // Who is kept from leaving for a second was no longer looking at the certificate: then once more.
        const auto is_refused = [&w](const auto& leaves) {
            const auto before = w.figure("refused");
            return eventually([&] {
                leaves();
                return eventually([&] { return w.proxy->stats()["clients"]["open"] == 0; }) &&
                       w.figure("refused") > before;
            });
        };
        REQUIRE(is_refused([&w] {
            const auto says_so = w.enter("a.test");
            says_so->http().connection().finish_sending();
            (void)says_so->end();
        }));
        w.check_passed_on("a.test");
        // Who has asked has not: the host is opened for it again.
        CHECK(is_hit(w.enter("b.test")->ask(w.get("b.test", "/a"))));
        CHECK(w.figure("refused") == 1);
        REQUIRE(is_refused([&w] { w.enter("b.test", "127.0.0.3")->leave(true); }));
        CHECK(w.figure("refused") == 2);
    }

    TEST_CASE("a spare connection that a client leaves has refused nothing") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto spare = w.enter("a.test");
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("a.test", "/a")).body == "hello");
        spare->leave(false);
        one->leave(false);
        REQUIRE(eventually([&] { return w.proxy->stats()["clients"]["open"] == 0; }));
        CHECK(is_hit(w.enter("a.test")->ask(w.get("a.test", "/a"))));
        CHECK(w.figure("refused") == 0);
    }

    TEST_CASE("a client that leaves an opened tunnel later has refused nothing") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto early = w.enter("a.test");
        const auto one = w.enter("b.test");
        REQUIRE(eventually([&] { return w.figure("opened") == 2; }));  // from when its time runs
        std::this_thread::sleep_for(std::chrono::milliseconds{1'500});
        early->leave(true);
        CHECK(one->ask(w.get("b.test", "/a")).body == "hello");
        CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "hello");
        CHECK(w.figure("refused") == 0);
    }

    TEST_CASE("nor has one that is left by us, however little patience we have") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto before = w.settings["timeouts"];
        w.settings["timeouts"]["client_idle"] = "3s";  // it has that long to ask for its tunnel
        w.reload(json::object());
        const auto spare = w.enter("a.test");
        REQUIRE(eventually([&] { return w.proxy->stats()["clients"]["open"] == 0; }));
        CHECK(w.figure("refused") == 0);
        w.settings["timeouts"] = before;  // that this one has the time to ask
        w.reload(json::object());
        CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "hello");
    }

    TEST_CASE("inside, a request is for CONNECT's host and for no other") {
        opened_world w;
        w.origin.on("/a", ok("", "hello"));
        const auto one = w.enter("a.test");
        CHECK(one->ask(w.get("b.test", "/a")).status == 421);
        const auto two = w.enter("a.test");
        CHECK(two->ask("CONNECT " + w.at("b.test") + " HTTP/1.1\r\nHost: " + w.at("a.test") +
                       "\r\n\r\n")
                  .status == 400);
        const auto three = w.enter("a.test");
        CHECK(three
                  ->ask("GET http://" + w.at("a.test") + "/a HTTP/1.1\r\nHost: " + w.at("a.test") +
                        "\r\n\r\n")
                  .status == 400);
        CHECK(w.origin.asked() == 0);
        // Pages for peers are none of an opened host's paths.
        const auto four = w.enter("a.test");
        CHECK(four->ask(w.get("a.test", "/a")).body == "hello");
    }

    TEST_CASE("what answers a Cookie inside is stored with a stated lifetime and leave to share") {
        opened_world w;
        w.origin.on("/max-age", ok("Cache-Control: max-age=60\r\n", "hello"));
        w.origin.on("/public", ok("Cache-Control: public, max-age=60\r\n", "hello"));
        w.origin.on("/heuristic",
                    ok("Cache-Control: public\r\nLast-Modified: Mon, 01 Jan 2001 00:00:00 GMT\r\n",
                       "hello"));
        const auto one = w.enter("a.test");
        const auto stored = [&](const std::string& path, const std::string& fields) {
            (void)one->ask(w.get("a.test", path, fields));
            return is_hit(one->ask(w.get("a.test", path, fields)));
        };
        CHECK_FALSE(stored("/max-age", "Cookie: a=b\r\n"));
        CHECK_FALSE(stored("/heuristic", "Cookie: a=b\r\n"));
        CHECK(stored("/public", "Cookie: a=b\r\n"));
        CHECK(stored("/max-age", ""));
    }

    TEST_CASE("what a 304 says to one client's Cookie inside is nobody's who waits beside it") {
        for (const bool has_cookie : {true, false}) {
            CAPTURE(has_cookie);
            opened_world w;
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&go](origin_request& request, origin_connection& to) {
                if (!request.has("If-None-Match")) {
                    to.send(ok("Cache-Control: max-age=0\r\nETag: \"1\"\r\n", "hello"));
                    return;
                }
                go.wait();
                const std::string user = request.has("Cookie") ? "ann" : "anybody";
                to.send(raw_head("304 Not Modified",
                                 "Cache-Control: max-age=60\r\nETag: \"1\"\r\nX-User: " + user +
                                     "\r\n"));
            });
            const auto one = w.enter("a.test");
            const auto two = w.enter("a.test");
            CHECK(one->ask(w.get("a.test", "/a")).body == "hello");
            one->http().send(w.get("a.test", "/a", has_cookie ? "Cookie: user=ann\r\n" : ""));
            REQUIRE(eventually([&] { return w.origin.count("/a") == 2; }));
            two->http().send(w.get("a.test", "/a"));
            REQUIRE(eventually([&] { return figure(w.proxy->stats(), figure_name::joined) == 1; }));
            go.open();
            CHECK(one->http().read().get("X-User") == (has_cookie ? "ann" : "anybody"));
            const auto second = two->http().read();
            CHECK(second.body == "hello");
            CHECK(second.get("X-User") == (has_cookie ? "" : "anybody"));
            CHECK(w.origin.count("/a") == (has_cookie ? 3 : 2));
        }
    }

    TEST_CASE("ways past us are not told, what protects the client is") {
        opened_world w;
        w.origin.on(
            "/a", ok("Alt-Svc: h3=\":443\"\r\nStrict-Transport-Security: max-age=1\r\n", "hello"));
        const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(got.get("Alt-Svc").empty());
        CHECK(got.get("Strict-Transport-Security") == "max-age=1");
    }

    TEST_CASE("an origin with a bad certificate is a 502 inside, and nothing is stored") {
        opened_world w{json::object(), storing_settings(), self_signed("DNS:a.test")};
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
        CHECK(got.status == 502);
        CHECK(got.body.find("self-signed") != std::string::npos);
        CHECK(w.origin.asked() == 0);
    }

    TEST_CASE("an expired certificate, or another host's, is a 502 inside, and the next good one "
              "serves") {
        using std::chrono::hours;
        for (const auto& bad : {of_origins().issue("DNS:a.test", {-hours{48}, -hours{1}}),
                                of_origins().issue("DNS:other.test")}) {
            opened_world w{json::object(), storing_settings(), bad};
            w.origin.on("/a", ok(std::string{cacheable}, "hello"));
            const auto one = w.enter("a.test");
            CHECK(one->ask(w.get("a.test", "/a")).status == 502);
            CHECK(w.origin.asked() == 0);
            w.origin.identify_as(of_origins().issue("DNS:a.test"));
            CHECK(one->ask(w.get("a.test", "/a")).body == "hello");
        }
    }

    TEST_CASE("what a CA must not be is said at once, and a reload keeps the old") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "hello");
        REQUIRE(::chmod(w.files.file("ca.key").c_str(), 0644) == 0);
        w.proxy->signal(SIGHUP);
        CHECK(w.proxy->says("intercept.ca_key"));
        CHECK(is_hit(w.enter("a.test")->ask(w.get("a.test", "/a"))));
    }

    TEST_CASE("a server that asks for a client's certificate is not asked in its client's place") {
        using asking = tls_peer::server_wishes::asking;
        for (const auto how : {asking::asks, asking::insists}) {
            for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
                CAPTURE(static_cast<int>(how));
                CAPTURE(newest);
                opened_world w{json::object(),
                               storing_settings(),
                               of_origins().issue("DNS:a.test,DNS:b.test"),
                               {.newest = newest, .client = how}};
                w.origin.on("/a", ok(std::string{cacheable}, "hello"));
                const auto got = w.enter("a.test")->ask(w.get("a.test", "/a"));
                CHECK(got.status == 502);
                CHECK(got.body.find("intercept.except") != std::string::npos);
                CHECK(lower(got.get("Connection")) == "close");  // the next is passed on
                CHECK(w.origin.asked() == 0);
                const auto told = w.proxy->admin("/explain?method=CONNECT&url=" + w.at("a.test"));
                CHECK(json::parse(told.body)["opened"]["why"] == "host-refused");
                // From now on who asks is known to the server, or isn't, as it was before us.
                auto wanted = w.wishes("a.test");
                wanted.trusted = of_origins().certificate();
                if (how == asking::asks) {
                    w.check_passed_on("a.test");
                } else {
                    auto peer = tls_peer::client(w.connect("a.test").release(), wanted);
                    (void)peer.shake_hands();
                }
                CHECK(w.figure("opened") == 1);
                CHECK(w.passed_on("a.test") == json{{"host-refused", 1}});
            }
        }
    }

    TEST_CASE("outside of tunnels a server that asks for a certificate may answer without one") {
        for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
            using asking = tls_peer::server_wishes::asking;
            const auto got_from = [newest](asking how, bool handed_on = false) {
                auto settings = storing_settings();
                const fake_origin sibling;
                settings["peers"] = {
                    {{"name", "s"}, {"url", "http://" + sibling.authority()}, {"kind", "sibling"}}};
                opened_world w{json::object(),
                               settings,
                               of_origins().issue("DNS:a.test"),
                               {.newest = newest, .client = how}};
                w.origin.on("/a", ok(std::string{cacheable}, "hello"));
                return w.proxy->get("https://" + w.at("a.test") + "/a",
                                    handed_on ? "Connection: Reprise-Home\r\nReprise-Home: here\r\n"
                                              : "");
            };
            CHECK(got_from(asking::asks).body == "hello");
            const auto refused = got_from(asking::insists);
            CHECK(refused.status == 502);
            CHECK(cache_status_of(refused).detail == "tls_client_certificate");
            // Whoever handed it on may have it from an opened tunnel.
            const auto handed_on = got_from(asking::asks, true);
            CHECK(handed_on.status == 502);
            CHECK(cache_status_of(handed_on).detail == "tls_client_certificate");
        }
    }

    TEST_CASE("each host's tunnels are told of, and what would open those with most bytes") {
        opened_world w;
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        for (int i = 0; i < 2; ++i) {
            const auto one = w.enter("a.test");
            (void)one->ask(w.get("a.test", "/a"));
            (void)one->ask(w.get("a.test", "/a"));
        }
        w.check_passed_on("c.test");
        json stats;
        // A request is counted when it has been answered, which is a moment later, and a tunnel when it is over.
        REQUIRE(eventually([&] {
            stats = w.proxy->stats();
            return !stats["tunnels"]["advice"].empty() &&
                   stats["intercept"]["hosts"]["requests"] == json{{"a.test", 4}} &&
                   stats["intercept"]["hosts"]["hits"] == json{{"a.test", 3}};
        }));
        const auto& hosts = stats["intercept"]["hosts"];
        CHECK(hosts["opened"] == json{{"a.test", 2}});
        CHECK(hosts["leaves"] == json{{"a.test", 1}});
        CHECK(stats["intercept"]["ca_validity_seconds"].get<double>() >= 0);
        const auto& advice = stats["tunnels"]["advice"][0];
        CHECK(advice["host"] == "c.test");
        CHECK(advice["why"] == "not-listed");
        CHECK(advice["bytes"].get<std::uint64_t>() > 500);  // a certificate went by
        CHECK(advice["line"] == R"("hosts": ["a.test","b.test","c.test"])");
        const auto metrics = w.proxy->admin("/metrics").body;
        CHECK(metrics.find(R"(reprise_intercept_host_hits_total{host="a.test"} 3)") !=
              std::string::npos);
    }

}  // TEST_SUITE
