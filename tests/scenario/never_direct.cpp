// peering.never_direct: parents are the only way out, for requests, uploads, upgrades and tunnels.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/ways_out.hpp"

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <sys/stat.h>
#include <thread>
#include <utility>
#include <vector>

TEST_SUITE("scenario/never_direct") {

    using namespace reprise::tests;

    namespace {

    /// What a parent makes of CONNECT: it says this and `first`, and then what it hears.
    origin_handler echoes(std::string head, std::string first = "") {
        return [said = head + first](origin_request&, origin_connection& connection) {
            connection.send(said);
            for (std::string heard; connection.read_some(heard) == read_end::data; heard.clear()) {
                connection.send(heard);
            }
            connection.close();
        };
    }
    const std::string made = "HTTP/1.1 200 Connection established\r\n\r\n";

    /// Read by its owner alone.
    std::string write_secret(const temp_dir& at, std::string_view name, std::string_view text) {
        auto path = at.write(name, text);
        ::chmod(path.c_str(), 0600);
        return path;
    }

    }  // namespace

    TEST_CASE(
        "a reload that makes parents the only way out, where nobody was a peer, leads nowhere") {
        fake_origin parent, origin;
        serve_all(parent);
        origin.on("/a", ok("Cache-Control: no-store\r\n", "straight from the origin"));
        auto before = storing_settings();
        before["access"]["connect_ports"] = {443, origin.port()};
        const proxy_process proxy{before};
        CHECK(proxy.get(origin.url("/a")).status == 200);
        auto after = only_by(json::array({way_out("p", parent.port())}));
        after["access"] = before["access"];
        proxy.reload(after);
        const auto got = proxy.get(origin.url("/a"));
        CHECK(got.status == 503);
        CHECK(got.body.find("peering.never_direct") != std::string::npos);
        CHECK(proxy.connect(connect_to(origin.authority())).read("CONNECT").status == 503);
        CHECK(proxy.get("https://" + origin.authority() + "/a").status == 503);
        CHECK(origin.count("/a") == 1);
        CHECK(origin.connections() == 1);
        CHECK(proxy.says("peers change at the next start: there were none at this one"));
        proxy.reload(before);
        CHECK(proxy.get(origin.url("/a")).status == 200);
    }

    TEST_CASE("peering.never_direct and the first parents come by one reload, and go by one") {
        fake_origin parent, origin;
        serve_all(parent, "Cache-Control: no-store\r\n");
        origin.otherwise([](origin_request&, origin_connection& connection) {
            connection.send(ok("Cache-Control: no-store\r\n", "origin"));
        });
        auto before = storing_settings();
        before["peers"] = json::array({way_out("unheard-of", 1)});
        before["peers"][0]["kind"] = "sibling";
        const auto after = only_by(json::array({way_out("p", parent.port())}));
        const proxy_process proxy{before};
        std::atomic<unsigned> served{0}, refused{0};
        {
            std::vector<std::jthread> askers;
            for (int i = 0; i < 2; ++i) {
                askers.emplace_back([&](const std::stop_token& over) {
                    while (!over.stop_requested()) {
                        ++(proxy.get(origin.url("/a")).status == 200 ? served : refused);
                    }
                });
            }
            for (int i = 0; i < 20; ++i) {
                proxy.reload(after);
                proxy.reload(before);
            }
        }
        CHECK(refused == 0);
        CHECK(served > 0);
    }

    TEST_CASE("all that is asked of an origin goes to the parent, and the origin hears of nobody") {
        fake_origin parent, origin;
        serve_all(parent, "ETag: \"1\"\r\nCache-Control: max-age=0\r\n");
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        const auto url = origin.url("/a");
        CHECK(proxy.get(url).body == "parent: GET " + url);
        CHECK(proxy.ask("HEAD", url).status == 200);
        CHECK(proxy.ask("POST", url, "Content-Length: 0\r\n").body == "parent: POST " + url);
        CHECK(proxy.get(url, "Range: bytes=3-\r\n").status / 100 == 2);
        CHECK(proxy.get(url, "Cache-Control: no-cache\r\n").status == 200);
        // No name is looked up.
        CHECK(proxy.get("http://known.to.the.parent.test/b").status == 200);
        CHECK(origin.connections() == 0);
        CHECK(parent.requests().size() >= 6);
        for (const auto& one : parent.requests()) {
            CHECK(one.target.starts_with("http://"));
        }
        CHECK(proxy.logged("/b").at("peer") == "p");
    }

    TEST_CASE("uploads and websockets go through the parent too") {
        fake_origin parent, origin;
        const auto url = origin.url("/ws");
        parent.on("/ws", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
                            "websocket\r\nSec-WebSocket-Accept: "
                            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello");
            std::string got;
            while (got.size() < 4 && connection.read_some(got) == read_end::data) {
            }
            connection.send("got " + got);
            connection.close();
        });
        parent.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("", std::to_string(request.body.size())));
        });
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        auto one = proxy.connect(absolute_request(
            "GET",
            url,
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
        CHECK(one.read_head().status == 101);
        CHECK(one.read_raw(5) == "hello");
        one.send("ping");
        CHECK(one.read_raw(8) == "got ping");

        const std::string body(300 * kib, 'x');
        auto two = proxy.connect(
            absolute_request("PUT",
                             origin.url("/up"),
                             "Content-Length: " + std::to_string(body.size()) + "\r\n") +
            body);
        CHECK(two.read("PUT").body == std::to_string(body.size()));
        CHECK(origin.connections() == 0);
    }

    TEST_CASE("credentials go to their parent alone, and into no log") {
        fake_origin one, two;
        serve_all(one, "Cache-Control: no-store\r\n");
        serve_all(two, "Cache-Control: no-store\r\n");
        const temp_dir at;
        auto with = way_out("one", one.port());
        with["credentials_file"] = write_secret(at, "c", "Aladdin:open sesame\n");
        auto settings = only_by(json::array({with, way_out("two", two.port())}));
        settings["log"]["level"] = "trace";
        const proxy_process proxy{settings};
        for (int i = 0; i < 20; ++i) {
            CHECK(proxy
                      .get("http://a.test/" + std::to_string(i),
                           "Proxy-Authorization: Basic Y2xpZW50OnM=\r\n")
                      .status == 200);
            auto tunnel = proxy.connect(connect_to("a" + std::to_string(i) + ".test:443"));
            (void)tunnel.read_head("CONNECT");
        }
        // Whoever answers a TRACE sends back what it was sent.
        for (int i = 0; i < 20; ++i) {
            const auto url = "http://a" + std::to_string(i) + ".test/";
            CHECK(proxy.ask("TRACE", url, "Max-Forwards: 1\r\n").status == 200);
        }
        std::size_t tunnels = 0, traces = 0;
        for (const auto& request : one.requests()) {
            if (request.method == "TRACE") {
                CHECK_FALSE(request.has("Proxy-Authorization"));
                ++traces;
                continue;
            }
            CHECK(request.get("Proxy-Authorization") == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
            tunnels += request.method == "CONNECT" ? 1 : 0;
        }
        CHECK(traces > 0);
        CHECK(tunnels > 0);
        CHECK(one.requests().size() > tunnels + traces);
        CHECK_FALSE(two.requests().empty());
        for (const auto& request : two.requests()) {
            CHECK_FALSE(request.has("Proxy-Authorization"));
        }
        for (const auto& text : {proxy.output(), proxy.errors(), proxy.admin("/stats").body}) {
            CHECK(text.find("QWxhZGRpbjpvcGVuIHNlc2FtZQ") == std::string::npos);
            CHECK(text.find("sesame") == std::string::npos);
        }
    }

    TEST_CASE("a parent's 407 is none of the client's business") {
        fake_origin parent;
        parent.otherwise([](origin_request&, origin_connection& connection) {
            connection.send(answer("407 Proxy Authentication Required",
                                   "Proxy-Authenticate: Basic realm=\"x\"\r\n",
                                   "who?"));
        });
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        const auto got = proxy.get("http://a.test/");
        CHECK(got.status == 502);
        CHECK_FALSE(got.has("Proxy-Authenticate"));
        CHECK(got.body.find("credentials_file") != std::string::npos);
        CHECK(proxy.ask("POST", "http://a.test/", "Content-Length: 0\r\n").status == 502);
    }

    TEST_CASE(
        "credentials and the parent's place change by a reload, and a bad file changes nothing") {
        fake_origin before, after;
        serve_all(before, "Cache-Control: no-store\r\n");
        serve_all(after, "Cache-Control: no-store\r\n");
        const temp_dir at;
        const auto settings_with = [&](const fake_origin& parent, std::string_view secret) {
            auto way = way_out("p", parent.port());
            way["credentials_file"] = write_secret(at, "c", secret);
            return only_by(json::array({way}));
        };
        const proxy_process proxy{settings_with(before, "a:1")};
        CHECK(proxy.get("http://a.test/1").status == 200);
        CHECK(before.requests().back().get("Proxy-Authorization") == "Basic YTox");
        proxy.reload(settings_with(before, "a:2"));
        CHECK(eventually([&] {
            return proxy.get("http://a.test/2").status == 200 &&
                   before.requests().back().get("Proxy-Authorization") == "Basic YToy";
        }));
        proxy.reload(settings_with(after, "a:3"));
        CHECK(eventually([&] {
            return proxy.get("http://a.test/3").status == 200 && !after.requests().empty();
        }));
        CHECK(after.requests().back().get("Proxy-Authorization") == "Basic YToz");
        const auto had = after.requests().size();
        const auto bad = settings_with(before, "no colon");
        proxy.rewrite_settings(bad);
        proxy.signal(SIGHUP);
        CHECK(proxy.says("peers[0].credentials_file"));
        CHECK(proxy.errors().find("no colon") == std::string::npos);
        CHECK(proxy.get("http://a.test/4").status == 200);
        CHECK(after.requests().size() == had + 1);
    }

    TEST_CASE("while no parent is there it is 503, and what is stale stands in") {
        fake_origin parent, origin;
        serve_all(parent, "ETag: \"1\"\r\nCache-Control: max-age=0, stale-if-error=600\r\n");
        const auto url = origin.url("/a");
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        CHECK(proxy.get(url).status == 200);
        CHECK(proxy.get(url).status == 200);
        parent.stop();
        CHECK(proxy.get(url).body == "parent: GET " + url);
        const auto none = proxy.get(origin.url("/b"));
        CHECK(none.status == 503);
        CHECK(none.has("Retry-After"));
        CHECK(none.body.find("peering.never_direct") != std::string::npos);
        CHECK(none.body.find("p: connect_refused") != std::string::npos);
        auto one = proxy.connect(connect_to("a.test:443"));
        const auto refused = one.read("CONNECT");
        CHECK(refused.status == 503);
        CHECK(refused.body.find("p: connect_refused") != std::string::npos);
        CHECK(proxy.logged("/b").at("reason") == "no_parent");
        CHECK(origin.connections() == 0);
    }

    TEST_CASE(
        "a parent that says nothing is not there, unless it may have done what it was asked") {
        fake_origin parent;
        parent.otherwise(
            [](origin_request&, origin_connection& connection) { connection.close(); });
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        CHECK(proxy.get("http://a.test/").status == 503);
        const auto post = proxy.ask("POST", "http://a.test/", "Content-Length: 0\r\n");
        CHECK(post.status == 502);
        CHECK_FALSE(post.has("Retry-After"));
    }

    TEST_CASE("a tunnel goes through the parent, every byte of it") {
        fake_origin parent;
        parent.otherwise_at_head(echoes(made, "SSH-2.0-far\r\n"));
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        const auto early = patterned(100 * kib);
        auto one = proxy.connect(
            connect_to("only.the.parent.knows.test:443", "Via: 1.0 before\r\n") + early);
        CHECK(one.read_head("CONNECT").status == 200);
        CHECK(one.read_raw(13 + early.size()) == "SSH-2.0-far\r\n" + early);
        one.connection().finish_sending();
        CHECK(one.is_closed_by_proxy());
        REQUIRE(parent.requests().size() == 1);
        const auto asked = parent.requests().front();
        CHECK(asked.method == "CONNECT");
        CHECK(asked.target == "only.the.parent.knows.test:443");
        CHECK(asked.get("Host") == asked.target);
        CHECK(asked.get("Via").starts_with("1.0 before, 1.1 reprise-"));
        const auto line = proxy.logged("only.the.parent");
        CHECK(line.at("peer") == "p");
        CHECK(line.at("origin") == "127.0.0.1:" + std::to_string(parent.port()));
    }

    TEST_CASE("tunnels go around a parent that is not there, and take no from one that is") {
        fake_origin one, two;
        one.otherwise_at_head(echoes(made));
        two.otherwise_at_head([](origin_request&, origin_connection& connection) {
            connection.send(answer("403 Forbidden", "", "no"));
            connection.close();
        });
        auto settings = only_by(
            json::array({way_out("one", one.port()), way_out("two", two.port())}));
        const proxy_process proxy{settings};
        std::size_t made_here = 0, refused = 0;
        for (int i = 0; i < 24; ++i) {
            auto tunnel = proxy.connect(connect_to("h" + std::to_string(i) + ".test:443"));
            const auto head = tunnel.read_head("CONNECT");
            made_here += head.status == 200 ? 1 : 0;
            refused += head.status == 502 ? 1 : 0;
        }
        CHECK(made_here > 0);
        CHECK(refused > 0);
        CHECK(made_here + refused == 24);
        CHECK(one.requests().size() == made_here);  // what one refused the other was not asked
        CHECK(two.requests().size() == refused);
        CHECK(figure(proxy.stats(), "/parents/up/two") == 1);

        two.stop();
        for (int i = 0; i < 24; ++i) {
            auto tunnel = proxy.connect(connect_to("h" + std::to_string(i) + ".test:443"));
            CHECK(tunnel.read_head("CONNECT").status == 200);
        }
        CHECK(figure(proxy.stats(), "/parents/up/two") == 0);
    }

    TEST_CASE("a parent that has come back is there for all, though it refuses the tunnel that "
              "found out") {
        fake_origin parent;
        std::atomic<bool> is_back{false};
        parent.otherwise_at_head([&](origin_request&, origin_connection& connection) {
            if (is_back) {
                connection.send(answer("403 Forbidden", "", "no"));
            }
            connection.close();
        });
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        const auto ask = [&] { return proxy.connect(connect_to("a.test:443")).read("CONNECT"); };
        const auto is_up = [&] { return figure(proxy.stats(), "/parents/up/p") == 1; };
        CHECK(ask().status == 503);
        CHECK_FALSE(is_up());
        is_back = true;
        CHECK(ask().status == 502);
        CHECK(is_up());
    }

    TEST_CASE(
        "a parent that does not know us is not there for all because it says so to a tunnel") {
        fake_origin parent;
        const auto who = answer("407 Proxy Authentication Required", "", "who?");
        parent.otherwise_at_head([&](origin_request&, origin_connection& connection) {
            connection.send(who);
            connection.close();
        });
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        const auto is_up = [&] { return figure(proxy.stats(), "/parents/up/p") == 1; };
        CHECK(proxy.get("http://a.test/").status == 502);
        CHECK_FALSE(is_up());
        CHECK(proxy.connect(connect_to("a.test:443")).read("CONNECT").status == 502);
        CHECK_FALSE(is_up());
    }

    TEST_CASE("where the last parent lives no more it is named, and not the origin") {
        fake_origin parent;
        parent.otherwise([](origin_request&, origin_connection& connection) {
            (void)connection.is_closed_by_proxy(patience);
        });
        auto settings = only_by(json::array({way_out("p", parent.port())}));
        settings["timeouts"]["origin_head"] = "1s";
        settings["timeouts"]["origin_connect"] = "1s";
        const proxy_process proxy{settings};
        const auto got = proxy.get("http://a.test/");
        CHECK(got.status == 503);
        CHECK(got.body.find("origin_head_timeout") != std::string::npos);
    }

    TEST_CASE("a parent that answers CONNECT with nonsense, a refusal or nothing is named") {
        fake_origin parent;
        std::atomic<int> turn{0};
        parent.otherwise_at_head([&](origin_request&, origin_connection& connection) {
            switch (turn) {
            case 0: connection.send(answer("407 Proxy Authentication Required", "", "")); break;
            case 1: connection.send("SSH-2.0-x\r\n\r\n"); break;
            case 2: (void)connection.is_closed_by_proxy(); break;
            }
            connection.close();
        });
        auto settings = only_by(json::array({way_out("p", parent.port())}));
        const proxy_process proxy{settings};
        const auto ask = [&](int what) {
            turn = what;
            return proxy.connect(connect_to("a.test:443")).read("CONNECT");
        };
        const auto unknown = ask(0);
        CHECK(unknown.status == 502);
        CHECK(unknown.body.find("credentials_file") != std::string::npos);
        CHECK(ask(1).status == 503);
        settings["timeouts"]["origin_connect"] = "300ms";
        proxy.reload(settings);
        CHECK(ask(2).status == 504);
    }

    TEST_CASE("what may not be reached is asked of no parent") {
        fake_origin parent;
        parent.otherwise_at_head(echoes(made));
        auto settings = only_by(json::array({way_out("p", parent.port())}));
        settings["access"].erase("allow_destinations");
        settings["access"]["deny_destinations"] = {"denied.test", "10.1.0.0/16"};
        const proxy_process proxy{settings};
        for (const std::string host : {"127.0.0.1",
                                       "127.1",
                                       "[::1]",
                                       "169.254.169.254",
                                       "localhost",
                                       "denied.test",
                                       "10.1.2.3"}) {
            CAPTURE(host);
            CHECK(proxy.connect(connect_to(host + ":443")).read("CONNECT").status == 403);
            CHECK(proxy.get("http://" + host + "/").status == 403);
        }
        CHECK(proxy.connect(connect_to("a.test:25")).read("CONNECT").status == 403);
        for (const auto& [host, status] :
             std::vector<std::pair<std::string, int>>{{"127.0.0.1..", 400},
                                                      {"localhost..", 400},
                                                      {"denied.test..", 400},
                                                      {"0127.0.0.1", 502},
                                                      {"0169.254.169.254", 502}}) {
            CAPTURE(host);
            CHECK(proxy.connect(connect_to(host + ":443")).read("CONNECT").status == status);
            CHECK(proxy.get("http://" + host + "/").status == status);
        }
        CHECK(parent.connections() == 0);
    }

    TEST_CASE("an accelerator's upstream is reached all the same") {
        fake_origin parent, upstream;
        serve_all(parent);
        upstream.on("/a", ok("", "of the upstream"));
        auto settings = only_by(json::array({way_out("p", parent.port())}));
        settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                         {"mode", "accelerator"},
                                         {"upstream", "http://" + upstream.authority()}});
        const proxy_process proxy{settings};
        client one{proxy.port(1)};
        CHECK(one.ask("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").body == "of the upstream");
        CHECK(parent.connections() == 0);
    }

    TEST_CASE("a way out that leads back is seen") {
        fake_origin parent;
        serve_all(parent);
        const proxy_process proxy{only_by(json::array({way_out("p", parent.port())}))};
        proxy.reload(only_by(json::array({way_out("p", proxy.port())})));
        CHECK(eventually([&] {
            auto one = proxy.connect(connect_to("a.test:443"));
            const auto got = one.read("CONNECT");
            return got.status == 508 && got.body.find("with 508") != std::string::npos;
        }));
        CHECK(proxy.get("http://a.test/").status == 508);
    }

    TEST_CASE("tunnels go around a parent that leads back, but for who claims to have come by it") {
        fake_origin good;
        good.otherwise_at_head(echoes(made));
        const proxy_process proxy{only_by(json::array({way_out("good", good.port())}))};
        proxy.reload(
            only_by(json::array({way_out("back", proxy.port()), way_out("good", good.port())})));
        REQUIRE(eventually([&] { return proxy.stats()["parents"]["up"].contains("back"); }));
        const auto asked = [&](int host, const std::string& fields = "") {
            auto one = proxy.connect(connect_to("h" + std::to_string(host) + ".test:443", fields));
            return one.read_head("CONNECT").status;
        };
        // A client's Via makes any proxy find a loop: the parent is not taken from others for it.
        int found = 0;
        for (int i = 0; i < 16; ++i) {
            found += asked(i, "Via: 1.1 somebody\r\n") == 508 ? 1 : 0;
        }
        CHECK(found > 0);
        CHECK(figure(proxy.stats(), "/parents/up/back") == 1);
        for (int i = 0; i < 16; ++i) {
            CHECK(asked(i) == 200);
        }
        CHECK(figure(proxy.stats(), "/parents/up/back") == 0);
        CHECK(proxy.says("back: a parent that is gone around from now on: loop_detected"));
    }

    TEST_CASE("settings without a parent, or with a file that is none, end the start") {
        auto settings = only_by(json::array());
        CHECK_THROWS_WITH_AS(
            proxy_process{settings}, doctest::Contains("peering.never_direct"), std::runtime_error);
        const temp_dir at;
        auto way = way_out("p", 9);
        way["credentials_file"] = at.write("c", "nonsense");
        CHECK_THROWS_WITH_AS(proxy_process{only_by(json::array({way}))},
                             doctest::Contains("peers[0].credentials_file"),
                             std::runtime_error);
    }
}
