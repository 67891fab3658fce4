// What the log says of peers that are refused, lost and back: once for each change, whatever is
// asked meanwhile. And a parent that is this very instance.

#include "tests/scenario/fleet.hpp"

#include <atomic>

TEST_SUITE("scenario/peer_log") {

    using namespace reprise::tests;

    namespace {

    std::size_t times(const proxy_process& node, std::string_view part) {
        const auto text = node.errors();
        std::size_t count = 0;
        for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
            ++count;
        }
        return count;
    }

    bool says(const proxy_process& node, std::string_view part, std::size_t often = 1) {
        return eventually([&] { return times(node, part) >= often; }, 3 * patience);
    }

    /// It says so, by and by (the log is written behind what it tells of), and no second time till then.
    bool says_once(const proxy_process& node, std::string_view part) {
        return says(node, part) && times(node, part) == 1;
    }

    /// How often node 0 has asked for its only sibling's digest in vain.
    std::int64_t failures(fleet& f) {
        return figure(f[0].stats(), "/siblings/digest_answers/n1/failed");
    }

    }  // namespace

    TEST_CASE(
        "a sibling that refuses, answers, is lost and comes back is said to, each time once") {
        fleet f{0};
        f.add(node_settings());
        auto settings = node_settings();
        settings["listeners"][0]["address"] = "127.0.0.3:0";
        f.add(settings);  // which knows nobody at 127.0.0.1 with a digest of Reprise's
        auto known = peer_at("n1", f[1].port());
        known["url"] = "http://127.0.0.3:" + std::to_string(f[1].port());
        auto squid = peer_at("s", 1);
        squid["protocol"] = "squid";
        f.tell(1, json::array({squid}));
        // Until it has heard of a peer at that address it gives its digest to whoever is there.
        REQUIRE(eventually([&] { return f[1].stats()["siblings"]["digest_answers"].contains("s"); },
                           patience));
        f.tell(0, json::array({known}));
        CHECK(says(f[0], "peers: n1: its digest can't be had: refused"));
        REQUIRE(eventually([&] { return failures(f) >= 3; }, 3 * patience));
        CHECK(times(f[0], "peers: n1: its digest can't be had: refused") == 1);
        // Each side's log has why, and so has who is asked for the digest.
        CHECK(says(f[0], "refused (status 403: 127.0.0.1 is a peer's, but asks"));
        CHECK(says_once(f[1], "a digest was asked for and refused: 127.0.0.1"));
        const auto page = f[0].admin("/digest?of=n1");
        CHECK(page.status == 404);
        CHECK(page.body.find("named \"n1\": refused (status 403: 127.0.0.1 is a peer's") !=
              std::string::npos);
        CHECK(page.body.find("it is asked for again in ") != std::string::npos);
        f.tell(1, json::array({peer_at("n0", f[0].port())}));
        CHECK(says(f[0], "peers: n1: its digest is followed again"));
        const auto before = failures(f);
        f[1].kill();
        CHECK(says(f[0], "peers: n1: its digest can't be had: unreachable"));
        REQUIRE(eventually([&] { return failures(f) >= before + 2; }, 3 * patience));
        CHECK(times(f[0], "peers: n1: its digest can't be had: unreachable") == 1);
        CHECK(times(f[0], "its digest is followed again") == 1);
    }

    TEST_CASE(
        "a sibling whose news never fits its wholes is neither asked nor told of without end") {
        fleet f{0};
        f.add(node_settings());
        f.add(node_settings());
        f.serve_everything();
        client to{f[0].port()};
        // What node 0 says of its digest: whole, or what came since a generation.
        const auto said = [&to](const std::string& query) {
            return to.ask("GET /.well-known/reprise/digest?" + query +
                          " HTTP/1.1\r\nHost: x\r\nReprise-Node: me\r\n\r\n");
        };
        const auto generation_of = [](const response& one) {
            const auto tag = one.get("ETag");
            return tag.substr(1, tag.size() - 2);
        };
        const auto whole = said("wait=0");
        REQUIRE(whole.status == 200);
        auto news = whole;
        for (const auto* path : {"/a", "/b"}) {
            CHECK(f[0].get(f.origin.url(path)).status == 200);
            const auto since = generation_of(news);
            REQUIRE(eventually([&] {
                news = said("wait=25&since=" + since);
                return news.status == 200;
            }));
        }
        fake_origin sibling;
        sibling.on("/.well-known/reprise/digest", [&](origin_request& request, auto& connection) {
            const auto& it = request.target.find("since=") == std::string::npos ? whole : news;
            connection.send(answer("200 OK",
                                   "Cache-Control: private\r\nReprise-Node: it\r\nReprise-News: "
                                   "30\r\nETag: " +
                                       it.get("ETag") + "\r\n",
                                   it.body));
        });
        constexpr auto figures = "/.well-known/reprise/figures";
        sibling.on(figures, answer("404 Not Found", "", ""));
        f.tell(1, json::array({peer_at("s", sibling.port())}));
        CHECK(says(f[1], "peers: s: its digest can't be had: wrong_base"));
        CHECK(says(f[1], "peers: s: its digest is followed again"));
        // These are asked for at a pace of their own: behind seconds, each time that they can't be had.
        REQUIRE(eventually([&] { return sibling.count(figures) >= 3; }, 3 * patience));
        CHECK(sibling.count("/.well-known/reprise/digest") < 60);
        CHECK(times(f[1], "peers: s: its digest can't be had: wrong_base") <= 2);
        CHECK(times(f[1], "peers: s: its digest is followed again") <= 2);
    }

    TEST_CASE("a parent that is lost, and one that answers again, are said to, each once") {
        fleet f{0};
        f.add(node_settings());
        f.serve_everything("Cache-Control: no-store\r\n");
        fake_origin parent;
        std::atomic<bool> well{false};
        parent.otherwise([&](auto&, auto& connection) {
            if (well) {
                connection.send(ok("Cache-Control: no-store\r\n", "of the parent"));
            } else {
                connection.close();
            }
        });
        f.tell(0, json::array({parent_at("p", parent.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
        // Two outages' worth: it is tried again when it has been left alone for a second.
        REQUIRE(eventually(
            [&] {
                CHECK(f[0].get(f.origin.url("/a")).body == "body of /a");
                return parent.requests().size() >= 2;
            },
            3 * patience));
        CHECK(figure(f[0].stats(), "/parents/up/p") == 0);
        CHECK(says_once(f[0], "peers: p: a parent that is gone around from now on: "));
        well = true;
        REQUIRE(eventually([&] { return f[0].get(f.origin.url("/a")).body == "of the parent"; },
                           3 * patience));
        CHECK(says(f[0], "peers: p: a parent that answers again"));
        CHECK(f[0].get(f.origin.url("/b")).body == "of the parent");
        CHECK(times(f[0], "a parent that answers again") == 1);
        CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
    }

    TEST_CASE("a parent that is this instance is known, said, not up, and nobody's answer") {
        fleet f{0};
        f.add(node_settings());
        f.serve_everything("Cache-Control: no-store\r\n");
        f.tell(0, json::array({parent_at("p", f[0].port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        for (int i = 0; i < 20; ++i) {
            const auto path = "/" + std::to_string(i);
            CHECK(f[0].get(f.origin.url(path)).body == "body of " + path);
        }
        CHECK(f[0].ask("POST", f.origin.url("/post")).body == "body of /post");
        CHECK(says_once(f[0], "peers: p: a parent that is gone around from now on: loop_detected"));
        CHECK(figure(f[0].stats(), "/parents/up/p") == 0);
    }

    TEST_CASE("parents of each other are gone around, too") {
        fleet f{0};
        f.add(node_settings());
        f.add(node_settings());
        f.serve_everything("Cache-Control: no-store\r\n");
        f.tell(0, json::array({parent_at("p1", f[1].port())}));
        f.tell(1, json::array({parent_at("p0", f[0].port())}));
        for (std::size_t i : {0u, 1u}) {
            REQUIRE(eventually([&] {
                return f[i].stats()["parents"]["up"].contains("p" + std::to_string(1 - i));
            }));
        }
        for (int i = 0; i < 10; ++i) {
            const auto path = "/" + std::to_string(i);
            CHECK(f[i % 2].get(f.origin.url(path)).body == "body of " + path);
        }
        CHECK(says(f[0], "loop_detected"));
        // Once for each outage. There are more where this takes more than a second: one that passes the other by is well.
        const auto outages = times(f[0], "a parent that is gone around from now on: ");
        CHECK(outages <= 1 + times(f[0], "a parent that answers again"));
    }

    TEST_CASE("a parent that is a listener of this instance is asked nothing at all") {
        fleet f{0};
        f.add(node_settings());
        f.serve_everything("Cache-Control: no-store\r\n");
        f.tell(0, json::array({parent_at("p", f[0].port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        for (int i = 0; i < 5; ++i) {
            client one{f[0].port()};
            CHECK(one.ask(absolute_request("POST", f.origin.url("/post"), "", "abc")).body ==
                  "body of /post");
        }
        CHECK(eventually([&] { return f[0].access_log().size() >= 5; }));
        CHECK(f[0].access_log().size() ==
              5);  // what came by way of the parent would stand there too
        CHECK(says(f[0], "is a listener of this instance"));
        CHECK(f.text(0, "/parents/trouble/p") == "loop_detected");
        CHECK(f[0].admin("/metrics")
                  .body.find(
                      "reprise_parent_in_trouble{parent=\"p\",trouble=\"loop_detected\"} 1\n") !=
              std::string::npos);
    }

    TEST_CASE("a parent that finds a loop of its own is gone around, and said to, once") {
        fleet f{0};
        f.add(node_settings());
        f.serve_everything("Cache-Control: no-store\r\n");
        fake_origin parent;
        parent.otherwise([](auto&, auto& connection) {
            connection.send(answer("508 Loop Detected", "", "a loop"));
        });
        f.tell(0, json::array({parent_at("p", parent.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        for (int i = 0; i < 20; ++i) {
            const auto path = "/" + std::to_string(i);
            CHECK(f[0].get(f.origin.url(path)).body == "body of " + path);
        }
        CHECK(says_once(f[0], "a parent that is gone around from now on: loop_detected"));
        CHECK(figure(f[0].stats(), "/parents/up/p") == 0);
        CHECK(f.text(0, "/parents/trouble/p") == "loop_detected");
        // A second, two, four: whatever this machine makes of twenty requests.
        CHECK(parent.requests().size() < 10);
    }

    TEST_CASE("what may be an origin's 508 or 407 is the answer to what can't be sent twice") {
        for (const std::string status :
             {"508 Loop Detected", "407 Proxy Authentication Required"}) {
            CAPTURE(status);
            fleet f{0};
            f.add(node_settings());
            f.serve_everything("Cache-Control: no-store\r\n");
            fake_origin parent;
            parent.otherwise([&](auto&, auto& connection) {
                connection.send(answer(status, "", "out of resources"));
            });
            f.tell(0, json::array({parent_at("p", parent.port())}));
            REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
            client one{f[0].port()};
            const auto got = one.ask(
                absolute_request("POST", f.origin.url("/buy"), "Content-Length: 0\r\n"));
            CHECK(got.status == (status.starts_with("508") ? 508 : 502));
            CHECK(parent.requests().size() == 1);
            CHECK(f.origin.requests().empty());
        }
    }

    TEST_CASE("a 508 that is an origin's, or that a client's Via brought about, is no loop of the "
              "parent's") {
        fleet f{0};
        f.add(node_settings());
        f.serve_everything("Cache-Control: no-store\r\n");
        fake_origin parent;
        parent.otherwise([](origin_request& request, origin_connection& connection) {
            const bool found = request.get("Via").find("1.1 p,") != std::string::npos;
            connection.send(answer("508 Loop Detected",
                                   found ? "" : "Via: 1.1 p\r\nProxy-Status: x; error=other\r\n",
                                   found ? "of the parent" : "of the origin"));
        });
        f.tell(0, json::array({parent_at("p", parent.port())}));
        REQUIRE(eventually([&] { return f[0].stats()["parents"]["up"].contains("p"); }));
        CHECK(f[0].get(f.origin.url("/a")).body == "of the origin");
        const auto led_on = f[0].get(f.origin.url("/a"), "Via: 1.1 p\r\n");
        CHECK(led_on.status == 508);
        CHECK(led_on.body == "of the parent");
        CHECK(figure(f[0].stats(), "/parents/up/p") == 1);
        CHECK(f.text(0, "/parents/trouble/p") == "none");
        CHECK(f.origin.requests().empty());
    }

}  // TEST_SUITE
