// What an operator may say of storing: which field governs (RFC 9213), whether cookies are kept
// (RFC 9111 7.3), and for how long what does not say.

#include "tests/scenario/world.hpp"

#include <chrono>
#include <string>

TEST_SUITE("scenario/storing_settings") {

    using namespace reprise::tests;

    namespace {

    /// Asked twice, the second answer came from the store.
    bool is_kept(world& w, const std::string& url) {
        return w.get(url).status != 0 && is_hit(w.get(url));
    }

    json with(const json& settings) {
        auto all = storing_settings();
        all.update(settings);
        return all;
    }

    /// Of what is stored there, in seconds.
    json lifetime_of(world& w, const std::string& path) {
        const auto answer = w.proxy.admin("/explain?url=" + w.origin.url(path));
        REQUIRE(answer.status == 200);
        return json::parse(answer.body).at("stored").at(0).at("freshness").at("lifetime");
    }

    std::string unchanged_for(std::chrono::seconds time) {
        return "Last-Modified: " + http_date(-time) + "\r\n";
    }

    }  // namespace

    TEST_CASE("a targeted field governs in place of Cache-Control and passes untouched") {
        world w{with(json::parse(R"({ "targeted": ["CDN-Cache-Control"] })"))};
        w.origin.on("/kept",
                    ok("Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60;x\r\n", "a"));
        w.origin.on("/not-kept",
                    ok("Cache-Control: max-age=60\r\nCDN-Cache-Control: no-store\r\n", "b"));
        w.origin.on("/invalid",
                    ok("Cache-Control: max-age=60\r\nCDN-Cache-Control: no-store, &\r\n", "c"));
        CHECK(is_kept(w, "/kept"));
        CHECK(w.get("/kept").get("CDN-Cache-Control") == "max-age=60;x");
        CHECK(w.get("/kept").get("Cache-Control") == "no-store");
        CHECK_FALSE(is_kept(w, "/not-kept"));
        CHECK(w.get("/not-kept").get("Cache-Status").find("detail=no-store") != std::string::npos);
        CHECK(is_kept(w, "/invalid"));
    }

    TEST_CASE("a field that is not on the list governs nothing") {
        world w;
        w.origin.on("/a", ok("Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60\r\n", "a"));
        CHECK_FALSE(is_kept(w, "/a"));
    }

    TEST_CASE("a cookie is not kept unless \"explicit\" says so of what states a lifetime") {
        const auto with_cookie = ok("Set-Cookie: a=b\r\nCache-Control: max-age=60\r\n", "a");
        {
            world w{with(json::parse(R"({ "caching": { "set_cookie": "explicit" } })"))};
            w.origin.on("/a", with_cookie);
            CHECK(is_kept(w, "/a"));
            w.origin.on("/b", ok("Set-Cookie: a=b\r\nETag: \"1\"\r\n", "b"));
            CHECK_FALSE(is_kept(w, "/b"));
        }
        world w;
        w.origin.on("/a", with_cookie);
        CHECK_FALSE(is_kept(w, "/a"));
        CHECK(w.get("/a").get("Cache-Status").find("detail=set-cookie") != std::string::npos);
    }

    TEST_CASE("a cookie that comes with a 304, or with the answer to a HEAD, is nobody else's") {
        for (const std::string kind : {"never", "explicit"}) {
            for (const bool by_head : {false, true}) {
                CAPTURE(kind);
                CAPTURE(by_head);
                auto settings = storing_settings();
                settings["caching"] = {{"set_cookie", kind}};
                world w{settings};
                const std::string own = "ETag: \"1\"\r\nX-Version: 2\r\n"
                                        "Cache-Control: max-age=60\r\n";
                w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
                    const std::string cookie = "Set-Cookie: session=alice\r\n";
                    if (request.method == "HEAD") {
                        to.send(raw_head("200 OK", own + cookie + "Content-Length: 5\r\n"));
                    } else if (request.has("If-None-Match")) {
                        to.send(raw_head("304 Not Modified", own + cookie));
                    } else {
                        to.send(ok("ETag: \"1\"\r\nCache-Control: max-age=60\r\n", "hello"));
                    }
                });
                CHECK(w.get("/a").body == "hello");
                if (by_head) {
                    CHECK(w.ask("HEAD", "/a", "Cache-Control: no-cache\r\n").status == 200);
                } else {
                    CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "hello");
                }
                const auto other = w.get("/a");
                CHECK(is_hit(other));
                CHECK(other.get("X-Version") == "2");
                CHECK_FALSE(other.has("Set-Cookie"));
            }
        }
    }

    TEST_CASE("an error that states no lifetime is kept for freshness.negative") {
        const auto gone_missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx";
        {
            world w;
            w.origin.on("/a", gone_missing);
            CHECK_FALSE(is_kept(w, "/a"));
        }
        world w{with(json::parse(R"({ "freshness": { "negative": "60s" } })"))};
        w.origin.on("/a", gone_missing);
        w.origin.on("/b",
                    "HTTP/1.1 503 Busy\r\nCache-Control: no-store\r\n"
                    "Content-Length: 1\r\n\r\nx");
        const auto first = w.get("/a");
        CHECK(first.get("Cache-Status").find("detail=negative") != std::string::npos);
        const auto second = w.get("/a");
        CHECK(second.status == 404);
        CHECK(is_hit(second));
        CHECK_FALSE(is_kept(w, "/b"));
    }

    TEST_CASE(
        "how long what has a Last-Modified alone is fresh is a setting, and at most how long") {
        const auto old = ok(unchanged_for(std::chrono::hours{240}), "a");
        {
            world w;
            w.origin.on("/a", old);
            CHECK(is_kept(w, "/a"));
        }
        {
            world w{with(json::parse(R"({ "freshness": { "heuristic_fraction": 0 } })"))};
            w.origin.on("/a", old);
            CHECK_FALSE(is_kept(w, "/a"));
        }
        world w{with(json::parse(R"({ "freshness": { "heuristic_most": "1s" } })"))};
        w.origin.on("/a", old);
        CHECK(w.get("/a").status == 200);
        CHECK(lifetime_of(w, "/a") == 1);
    }

    TEST_CASE("freshness.heuristic_errors decides for errors, but for 410") {
        const auto old = unchanged_for(std::chrono::hours{240});
        for (const bool errors : {true, false}) {
            CAPTURE(errors);
            auto settings = storing_settings();
            settings["freshness"] = {{"heuristic_errors", errors}};
            world w{settings};
            w.origin.on("/missing", answer("404 Not Found", old, "x"));
            w.origin.on("/gone", answer("410 Gone", old, "x"));
            w.origin.on("/there", ok(old, "x"));
            CHECK(is_kept(w, "/missing") == errors);
            CHECK(is_kept(w, "/gone"));
            CHECK(is_kept(w, "/there"));
        }
    }

    TEST_CASE("a rule's heuristic_fraction goes before the general one") {
        const auto later = ok(unchanged_for(std::chrono::seconds{100}), "a");
        {
            world w{with(json::parse(R"({ "freshness": { "heuristic_fraction": 0, "rules": [
                { "url": "*/ruled", "heuristic_fraction": 0.5 } ] } })"))};
            w.origin.on("/ruled", later);
            w.origin.on("/other", later);
            CHECK(is_kept(w, "/ruled"));
            CHECK(lifetime_of(w, "/ruled") == 50);
            CHECK_FALSE(is_kept(w, "/other"));
        }
        world w{with(json::parse(R"({ "freshness": { "heuristic_fraction": 0.5, "rules": [
            { "url": "*/ruled", "heuristic_fraction": 0 } ] } })"))};
        w.origin.on("/ruled", later);
        w.origin.on("/other", later);
        CHECK_FALSE(is_kept(w, "/ruled"));
        CHECK(is_kept(w, "/other"));
    }

    TEST_CASE("requests that prefer alike share a variant") {
        world w;
        w.origin.on("/a", ok("Vary: Accept-Language\r\nCache-Control: max-age=60\r\n", "a"));
        CHECK_FALSE(is_hit(w.get("/a", "Accept-Language: en, de;q=0.5\r\n")));
        CHECK(is_hit(w.get("/a", "Accept-Language: DE;q=0.50 , EN\r\n")));
        CHECK_FALSE(is_hit(w.get("/a", "Accept-Language: de, en;q=0.5\r\n")));
    }
}
