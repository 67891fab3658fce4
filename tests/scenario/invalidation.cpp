// An unsafe method that succeeded makes what was stored of its URL unusable (RFC 9111 4.4).

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/invalidation") {

    using namespace reprise::tests;

    namespace {

    /// GET is fresh for a minute; every other method gets `unsafe_answer`.
    void put_page(world& w, const std::string& path, const std::string& unsafe_answer) {
        w.origin.on(path, [unsafe_answer](origin_request& request, origin_connection& connection) {
            connection.send(request.method == "GET" ? ok("Cache-Control: max-age=60\r\n", "hello")
                                                    : unsafe_answer);
        });
        CHECK(w.get(path).status == 200);
        REQUIRE(is_hit(w.get(path)));
    }

    }  // namespace

    TEST_CASE("POST, PUT, DELETE and PATCH invalidate") {
        world w;
        for (const std::string method : {"POST", "PUT", "DELETE", "PATCH", "X-UNKNOWN"}) {
            CAPTURE(method);
            const auto path = "/" + method;
            put_page(w, path, raw_head("204 No Content", ""));
            CHECK(w.ask(method, path, "Content-Length: 0\r\n").status == 204);
            CHECK_FALSE(is_hit(w.get(path)));
        }
    }

    TEST_CASE("OPTIONS and HEAD do not invalidate") {
        world w;
        for (const std::string method : {"OPTIONS", "HEAD"}) {
            CAPTURE(method);
            const auto path = "/" + method;
            put_page(w, path, raw_head("200 OK", "Content-Length: 0\r\n"));
            CHECK(w.ask(method, path).status == 200);
            CHECK(is_hit(w.get(path)));
        }
    }

    TEST_CASE("an unsafe method that failed invalidates nothing") {
        world w;
        put_page(w, "/a", answer("500 Internal Server Error", "", "no"));
        CHECK(w.ask("POST", "/a", "Content-Length: 0\r\n").status == 500);
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("Location and Content-Location of the same origin are invalidated, others are not") {
        world w;
        fake_origin other;
        other.on("/c", ok("Cache-Control: max-age=60\r\n", "hello"));
        put_page(w, "/b", ok("", ""));
        put_page(w, "/d", ok("", ""));
        CHECK(w.proxy.get(other.url("/c")).status == 200);
        put_page(w,
                 "/a",
                 answer("201 Created",
                        "Location: /b\r\nContent-Location: " + w.origin.url("/d") + "\r\n",
                        ""));
        CHECK(w.ask("POST", "/a", "Content-Length: 0\r\n").status == 201);
        CHECK_FALSE(is_hit(w.get("/b")));
        CHECK_FALSE(is_hit(w.get("/d")));

        put_page(w, "/e", answer("201 Created", "Location: " + other.url("/c") + "\r\n", ""));
        CHECK(w.ask("POST", "/e", "Content-Length: 0\r\n").status == 201);
        CHECK(is_hit(w.proxy.get(other.url("/c"))));
    }

    TEST_CASE("Location may name it by any reference, and behind an accelerator too") {
        for (const std::string reference : {"t", "./t", "../x/t", "/x/t", "//HOST/x/t"}) {
            CAPTURE(reference);
            world w;
            auto location = reference;
            if (const auto at = location.find("HOST"); at != std::string::npos) {
                location.replace(at, 4, w.origin.authority());
            }
            put_page(w, "/x/t", ok("", ""));
            put_page(w, "/x/post", answer("201 Created", "Location: " + location + "\r\n", ""));
            CHECK(w.ask("POST", "/x/post", "Content-Length: 0\r\n").status == 201);
            CHECK_FALSE(is_hit(w.get("/x/t")));
        }
        fake_origin origin;
        auto settings = storing_settings();
        settings["listeners"][0]["mode"] = "accelerator";
        settings["listeners"][0]["upstream"] = "http://" + origin.authority();
        const proxy_process proxy{settings};
        origin.on("/t", ok("Cache-Control: max-age=60\r\n", "hello"));
        origin.on("/post", answer("201 Created", "Location: t\r\n", ""));
        const auto ask = [&](const std::string& line) {
            auto one = proxy.connect();
            return one.ask(line + " HTTP/1.1\r\nHost: front.test\r\nContent-Length: 0\r\n\r\n");
        };
        CHECK(ask("GET /t").status == 200);
        REQUIRE(is_hit(ask("GET /t")));
        CHECK(ask("POST /post").status == 201);
        CHECK_FALSE(is_hit(ask("GET /t")));
    }

    TEST_CASE("a POST's answer that stands for its URL, and says how long, answers later GETs") {
        world w;
        const std::string same = "Content-Location: " + w.origin.url("/a") + "\r\n";
        const auto posted = [&](const std::string& fields, const std::string& status = "200 OK") {
            w.origin.on("/a", [=](origin_request& request, origin_connection& to) {
                to.send(request.method == "POST" ? answer(status, fields, "posted")
                                                 : ok("Cache-Control: max-age=60\r\n", "got"));
            });
            CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "got");
            CHECK(w.ask("POST", "/a", "Content-Length: 0\r\n").body == "posted");
            return w.get("/a");
        };
        for (const auto& where : {same, std::string{"Content-Location: /a\r\n"}}) {
            CHECK(hit_body(posted("Cache-Control: max-age=60\r\n" + where)) == "posted");
        }
        for (const std::string fields : {"Cache-Control: max-age=60\r\n",
                                         "Content-Location: /a\r\nETag: \"1\"\r\n",
                                         "Content-Location: /b\r\nCache-Control: max-age=60\r\n",
                                         "Content-Location: /a\r\nCache-Control: no-store\r\n"}) {
            CAPTURE(fields);
            const auto fetched = posted(fields);
            CHECK_FALSE(is_hit(fetched));
            CHECK(fetched.body == "got");
        }
    }

    TEST_CASE("what was purged while a POST was under way is not stored by its answer") {
        auto settings = storing_settings();
        settings["access"]["purge_clients"] = {"127.0.0.1"};
        for (const std::string method : {"PURGE", "PUT"}) {
            CAPTURE(method);
            world w{settings};
            auto& may_answer = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
                if (request.method == "POST") {
                    may_answer.wait();
                }
                to.send(
                    ok("Cache-Control: max-age=60\r\nContent-Location: /a\r\n", request.method));
            });
            CHECK(w.get("/a").body == "GET");
            auto posting = w.proxy.connect(
                absolute_request("POST", w.origin.url("/a"), "Content-Length: 0\r\n"));
            REQUIRE(eventually([&] { return w.origin.count("/a") == 2; }));
            CHECK(w.ask(method, "/a", method == "PUT" ? "Content-Length: 0\r\n" : "").status ==
                  200);
            may_answer.open();
            CHECK(posting.read("POST").body == "POST");
            const auto next = w.get("/a");
            CHECK_FALSE(is_hit(next));
            CHECK(next.body == "GET");
        }
    }

    TEST_CASE("a POST's answer is admitted as any other: at the second sight") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\nContent-Location: /a\r\n", "posted"));
        CHECK_FALSE(cache_status_of(w.ask("POST", "/a", "Content-Length: 0\r\n")).stored);
        CHECK(cache_status_of(w.ask("POST", "/a", "Content-Length: 0\r\n")).stored);
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("an invalidated object enters again without being a stranger") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        CHECK(cache_status_of(w.get("/a")).stored);
        CHECK(w.ask("DELETE", "/a").status == 200);
        CHECK(cache_status_of(w.get("/a")).stored);
    }

    TEST_CASE("what was on its way when its URL was changed is not stored afterwards") {
        // Asked for alone, so that nobody could join it: such a fetch is in no list.
        for (const std::string fields :
             {"Cache-Control: no-cache\r\n", "Authorization: Basic eDp5\r\n", ""}) {
            CAPTURE(fields);
            world w;  // admission: always
            auto& asked = w.origin.make_gate();
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                if (request.method != "GET") {
                    connection.send(ok("", "changed"));
                    return;
                }
                asked.open();
                go.wait();
                connection.send(ok("Cache-Control: public, max-age=60\r\n", "before"));
            });
            auto early = w.proxy.connect(w.request("/a", fields));
            asked.wait();
            CHECK(w.ask("POST", "/a", "Content-Length: 0\r\n").body == "changed");
            go.open();
            CHECK(early.read().body == "before");
            CHECK_FALSE(is_hit(w.get("/a")));
            CHECK(is_hit(w.get("/a")));  // that one was asked for after the change
        }
    }

}  // TEST_SUITE
