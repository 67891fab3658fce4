// Purges: PURGE on a listener, POST /purge on the admin listener; by URL, prefix and tag, hard and
// soft.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/purge") {

    using namespace reprise::tests;

    namespace {

    json purging_settings() {
        auto settings = storing_settings();
        settings["access"]["purge_clients"] = {"127.0.0.1"};
        return settings;
    }

    /// Fresh for a minute, with an ETag; a validation is answered 304.
    void put_page(world& w, const std::string& path, const std::string& fields = "") {
        w.origin.on(path, [fields](origin_request& request, origin_connection& connection) {
            const auto own = "Cache-Control: max-age=60\r\nETag: \"one\"\r\n" + fields;
            connection.send(request.has("If-None-Match") ? raw_head("304 Not Modified", own)
                                                         : ok(own, "hello"));
        });
        CHECK(w.get(path).status == 200);
        REQUIRE(is_hit(w.get(path)));
    }

    json purged(const response& answer) {
        CHECK(answer.get("Content-Type") == "application/json");
        return json::parse(answer.body);
    }

    }  // namespace

    TEST_CASE("by default nobody may PURGE, and the answer names the setting") {
        world w;
        put_page(w, "/a");
        const auto refused = w.ask("PURGE", "/a");
        CHECK(refused.status == 403);
        CHECK(refused.body.find("access.purge_clients") != std::string::npos);
        CHECK(is_hit(w.get("/a")));
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.proxy.logged("/a").at("status") == 200);
    }

    TEST_CASE("PURGE drops every variant of a URL; of what is not stored it says 404") {
        world w{purging_settings()};
        put_page(w, "/a", "Vary: Accept-Language\r\n");
        CHECK(w.get("/a", "Accept-Language: da\r\n").status == 200);
        const auto answer = w.ask("PURGE", "/a");
        CHECK(answer.status == 200);
        const auto said = purged(answer);
        CHECK(said.at("variants") == 2);
        CHECK(said.at("url") == w.origin.url("/a"));
        CHECK(w.ask("PURGE", "/a").status == 404);
        CHECK_FALSE(is_hit(w.get("/a")));
        CHECK(is_hit(w.get("/a")));
        CHECK(w.origin.requests("/a").back().method == "GET");  // PURGE goes no further
        CHECK(eventually([&] { return figure(w.proxy.stats(), "/purges/by_kind/url") == 2; }));
        CHECK(figure(w.proxy.stats(), "/purges/responses") == 2);
    }

    TEST_CASE("a soft purge leaves what can be validated") {
        world w{purging_settings()};
        put_page(w, "/a");
        CHECK(w.ask("PURGE", "/a", "Purge: soft\r\n").status == 200);
        const auto next = w.get("/a");
        CHECK(cache_status_of(next).fwd == "stale");
        CHECK(cache_status_of(next).fwd_status == "304");
        CHECK(next.body == "hello");
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("what was purged softly still stands in for an origin that fails") {
        world w{purging_settings()};
        put_page(w, "/a", "Cache-Control: stale-if-error=60\r\n");
        CHECK(w.ask("PURGE", "/a", "Purge: soft\r\n").status == 200);
        w.origin.on("/a", answer("503 Service Unavailable", "", "down"));
        CHECK(w.get("/a").body == "hello");
        CHECK(w.ask("PURGE", "/a").status == 200);
        CHECK(w.get("/a").status == 503);
    }

    TEST_CASE("by prefix: what begins with the URL, of its origin alone") {
        world w{purging_settings()};
        for (const std::string path : {"/dir/a", "/dir/b", "/dirt"}) {
            put_page(w, path);
        }
        const auto answer = w.ask("PURGE", "/dir/", "Purge: prefix\r\n");
        CHECK(answer.status == 200);
        CHECK(purged(answer).at("prefix") == w.origin.url("/dir/"));
        CHECK_FALSE(is_hit(w.get("/dir/a")));
        CHECK_FALSE(is_hit(w.get("/dir/b")));
        CHECK(is_hit(w.get("/dirt")));
        CHECK(is_hit(w.get("/dir/a")));  // stored after the purge
        CHECK(w.ask("PURGE", "/dir/", "Purge: prefix, soft\r\n").status == 200);
        CHECK(cache_status_of(w.get("/dir/a")).fwd_status == "304");
        CHECK(figure(w.proxy.stats(), "/purges/bans") == 2);
    }

    TEST_CASE("by tag: whatever its URL, of its origin alone") {
        world w{purging_settings()};
        fake_origin other;
        other.on("/a", ok("Cache-Control: max-age=60\r\nSurrogate-Key: news\r\n", "other"));
        put_page(w, "/a", "Surrogate-Key: front news\r\n");
        put_page(w, "/b", "Cache-Tag: sport, news\r\n");
        put_page(w, "/c", "Cache-Tag: sport\r\n");
        CHECK(w.proxy.get(other.url("/a")).body == "other");
        CHECK(w.get("/a").get("Surrogate-Key") == "front news");  // passed on
        CHECK(w.ask("PURGE", "/", "Surrogate-Key: news\r\n").status == 200);
        CHECK_FALSE(is_hit(w.get("/a")));
        CHECK_FALSE(is_hit(w.get("/b")));
        CHECK(is_hit(w.get("/c")));
        CHECK(is_hit(w.proxy.get(other.url("/a"))));
    }

    TEST_CASE("what was on its way when it was purged is not stored, and nobody joins it") {
        for (const std::string fields :
             {"", "Purge: soft\r\n", "Purge: prefix\r\n", "Surrogate-Key: k\r\n"}) {
            CAPTURE(fields);
            world w{purging_settings()};
            auto& asked = w.origin.make_gate();
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
                const bool first = w.origin.count("/a") == 1;
                if (first) {
                    asked.open();
                    go.wait();
                }
                connection.send(ok("Cache-Control: max-age=60\r\nSurrogate-Key: k\r\n",
                                   first ? "before" : "after"));
            });
            auto early = w.proxy.connect(w.request("/a"));
            asked.wait();
            const auto status = w.ask("PURGE", "/a", fields).status;
            CHECK((status == 200 || status == 404));
            CHECK(w.get("/a").body == "after");
            go.open();
            CHECK(early.read().body == "before");
            const auto next = w.get("/a");
            CHECK(next.body == "after");
            CHECK(is_hit(next));
        }
    }

    TEST_CASE("a 304 that was asked for before a purge freshens nothing") {
        for (const std::string more : {"", "Vary: X-Kind\r\n"}) {  // the latter is stored anew
            for (const std::string fields :
                 {"", "Purge: soft\r\n", "Purge: prefix\r\n", "Purge: prefix, soft\r\n"}) {
                CAPTURE(more);
                CAPTURE(fields);
                world w{purging_settings()};
                auto& asked = w.origin.make_gate();
                auto& go = w.origin.make_gate();
                w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                    if (request.has("If-None-Match")) {
                        asked.open();
                        go.wait();
                        connection.send(
                            raw_head("304 Not Modified",
                                     "Cache-Control: max-age=60\r\nETag: \"x\"\r\n" + more));
                    } else {
                        connection.send(
                            ok("Cache-Control: max-age=60\r\nETag: \"x\"\r\n", "hello"));
                    }
                });
                CHECK(w.get("/a").status == 200);
                auto early = w.proxy.connect(w.request("/a", "Cache-Control: no-cache\r\n"));
                asked.wait();
                CHECK(w.ask("PURGE", "/a", fields).status == 200);
                go.open();
                CHECK(early.read().body == "hello");
                CHECK_FALSE(is_hit(w.get("/a")));
            }
        }
    }

    TEST_CASE("a PURGE that says what it cannot mean is 400 and purges nothing") {
        world w{purging_settings()};
        put_page(w, "/a");
        CHECK(w.ask("PURGE", "/a", "Purge: softly\r\n").status == 400);
        CHECK(w.ask("PURGE", "/a", "Purge: prefix\r\nCache-Tag: x\r\n").status == 400);
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("POST /purge wants the token, and purges by URL, prefix and tag") {
        const temp_dir directory;
        auto settings = storing_settings();
        settings["admin"]["token_file"] = directory.write("token", "open-sesame-and-more\n");
        world w{settings};
        put_page(w, "/a", "Surrogate-Key: k\r\n");
        const auto post = [&](const std::string& query, bool right = true) {
            client one{w.proxy.admin_port()};
            return one.ask("POST /purge" + query + " HTTP/1.1\r\nHost: 127.0.0.1:" +
                           std::to_string(w.proxy.admin_port()) + "\r\nContent-Length: 0\r\n" +
                           (right ? "Authorization: Bearer open-sesame-and-more\r\n" : "") +
                           "\r\n");
        };
        const auto url = w.origin.url("/a");
        CHECK(post("?url=" + url, false).status == 401);
        CHECK(is_hit(w.get("/a")));
        for (const auto& query : {"?url=" + url,
                                  "?prefix=" + w.origin.url("/"),
                                  "?prefix=" + w.origin.url(""),
                                  "?tag=k&origin=" + w.origin.url("")}) {
            CAPTURE(query);
            CHECK(post(query).status == 200);
            const auto next = w.get("/a");
            CHECK(cache_status_of(next).fwd == "uri-miss");
            CHECK(is_hit(w.get("/a")));
            CHECK(post(query + "&soft").status == 200);
            CHECK(cache_status_of(w.get("/a")).fwd_status == "304");
            CHECK(is_hit(w.get("/a")));
        }
        CHECK(post("?url=" + w.origin.url("/none")).status == 404);
        for (const std::string wrong : {"",
                                        "?soft",
                                        "?url=nonsense",
                                        "?url=%zz",
                                        "?tag=k",
                                        "?tag=&origin=http://a",
                                        "?uri=http://a/",
                                        "?url=http://a/&prefix=http://a/",
                                        "?tag=k&origin=http://a&origin=http://b"}) {
            CAPTURE(wrong);
            CHECK(post(wrong).status == 400);
        }
        CHECK(is_hit(w.get("/a")));
    }

}  // TEST_SUITE
