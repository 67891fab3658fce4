// freshness.rules: lifetimes by URL, what of an origin's directives is set aside, and what becomes of
// a client's wish for a newer one.

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/freshness_rules") {

    using namespace reprise::tests;

    namespace {

    json under(const std::string& rules) {
        auto all = storing_settings();
        all["freshness"] = {{"rules", json::parse(rules)}};
        return all;
    }

    bool is_kept(world& w, const std::string& url, const std::string& fields = "") {
        return w.get(url, fields).status == 200 && is_hit(w.get(url, fields));
    }

    json explained(world& w, const std::string& path) {
        const auto answer = w.proxy.admin("/explain?url=" + w.origin.url(path));
        REQUIRE(answer.status == 200);
        return json::parse(answer.body);
    }

    }  // namespace

    TEST_CASE("what states no lifetime has the rule's, and /explain names the rule") {
        world w{under(R"([ { "url": "*/first/*", "at_least": "1h" },
                           { "url": "*/capped/*", "at_most": "100s" } ])")};
        w.origin.on("/first/a", ok("", "a"));
        w.origin.on("/other/a", ok("", "a"));
        w.origin.on("/capped/a", ok("Cache-Control: max-age=1000\r\n", "a"));
        CHECK(is_kept(w, "/first/a"));
        CHECK_FALSE(is_kept(w, "/other/a"));
        CHECK(is_kept(w, "/capped/a"));
        const auto first = explained(w, "/first/a");
        CHECK(first.at("freshness_rule").at("index") == 0);
        CHECK(first.at("freshness_rule").at("url") == "*/first/*");
        CHECK(first.at("stored")[0].at("freshness").at("lifetime") == 3600);
        CHECK(first.at("stored")[0].at("freshness").at("lifetime_from") ==
              "freshness.rules[0].at_least");
        const auto capped = explained(w, "/capped/a");
        CHECK(capped.at("freshness_rule").at("at_most") == 100);
        CHECK(capped.at("stored")[0].at("freshness").at("lifetime") == 100);
        CHECK(explained(w, "/other/a").at("freshness_rule").is_null());
    }

    TEST_CASE("what is overridden is kept and shared, but for what is one client's") {
        world w{under(R"([ { "url": "*", "at_least": "1h",
                             "override": ["no-store", "private", "no-cache", "max-age"] } ])")};
        for (const std::string directives : {"no-store", "private", "no-cache", "max-age=0"}) {
            CAPTURE(directives);
            const auto answer = ok("Cache-Control: " + directives + "\r\n", "a");
            w.origin.on("/plain/" + directives, answer);
            w.origin.on("/user/" + directives, answer);
            w.origin.on("/cookie/" + directives, answer);
            w.origin.on("/sets/" + directives,
                        ok("Set-Cookie: a=b\r\nCache-Control: " + directives + "\r\n", "a"));
            CHECK(is_kept(w, "/plain/" + directives));
            CHECK_FALSE(is_kept(w, "/user/" + directives, "Authorization: Basic eDp5\r\n"));
            CHECK_FALSE(is_kept(w, "/cookie/" + directives, "Cookie: a=b\r\n"));
            CHECK_FALSE(is_kept(w, "/sets/" + directives));
        }
    }

    TEST_CASE("a 304 is read under the same rule as the response that it confirms") {
        world w{under(R"([ { "url": "*", "at_least": "1h", "override": ["no-store"] } ])")};
        w.origin.on("/a", [](origin_request& request, origin_connection& to) {
            const std::string own = "ETag: \"1\"\r\nCache-Control: no-store\r\n";
            to.send(request.has("If-None-Match") ? raw_head("304 Not Modified", own)
                                                 : ok(own, "hello"));
        });
        CHECK(is_kept(w, "/a"));
        CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "hello");
        CHECK(is_hit(w.get("/a")));
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE("a 304 to one client's request raises nothing for others") {
        world w{under(R"([ { "url": "*", "at_least": "1h",
                             "override": ["max-age", "must-revalidate", "private"] } ])")};
        for (const std::string mine : {"Authorization: Basic eDp5\r\n", "Cookie: a=b\r\n"}) {
            CAPTURE(mine);
            const std::string path = mine.starts_with('C') ? "/cookie" : "/user";
            w.origin.on(path, [](origin_request& request, origin_connection& to) {
                const std::string own =
                    "ETag: \"1\"\r\nCache-Control: max-age=0, must-revalidate\r\n";
                to.send(request.has("If-None-Match") ? raw_head("304 Not Modified", own)
                                                     : ok(own, "hello"));
            });
            for (unsigned i = 0; i < 3; ++i) {
                CHECK(w.get(path, mine).body == "hello");
            }
            CHECK(w.origin.count(path) == 3);
            CHECK_FALSE(is_hit(w.get(path)));
        }
    }

    TEST_CASE("a reload is obeyed or ignored as the rule says") {
        world w{under(R"([ { "url": "*/ignored", "reload": "ignore" } ])")};
        for (const std::string path : {"/ignored", "/obeyed"}) {
            w.origin.on(path, ok("Cache-Control: max-age=60\r\n", "a"));
            CHECK(w.get(path).status == 200);
        }
        for (const std::string wish : {"Cache-Control: no-cache\r\n",
                                       "Cache-Control: max-age=0\r\n",
                                       "Pragma: no-cache\r\n"}) {
            CAPTURE(wish);
            CHECK(is_hit(w.get("/ignored", wish)));
            CHECK_FALSE(is_hit(w.get("/obeyed", wish)));
        }
        // What is no reload is heard.
        CHECK_FALSE(is_hit(w.get("/ignored", "Cache-Control: min-fresh=1000\r\n")));
    }

    TEST_CASE("a reload's rules hold for what comes from then on") {
        world w{under(R"([ { "url": "*", "at_least": "1h" } ])")};
        w.origin.on("/old", ok("", "a"));
        w.origin.on("/new", ok("", "a"));
        CHECK(is_kept(w, "/old"));
        w.proxy.reload(storing_settings());
        CHECK(is_hit(w.get("/old")));
        CHECK_FALSE(is_kept(w, "/new"));
    }
}
