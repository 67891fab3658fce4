// What may be stored and for how long it answers (RFC 9111 3, 4.2, 5.2).

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <chrono>

TEST_SUITE("scenario/freshness") {

    using namespace reprise::tests;

    namespace {

    /// Asks twice for what the origin sends with these fields; the second answer.
    response second_answer(world& w, const std::string& path, const std::string& fields) {
        w.origin.on(path, ok(fields, "hello"));
        const auto first = w.get(path);
        CHECK(first.status == 200);
        CHECK(first.body == "hello");
        const auto second = w.get(path);
        CHECK(second.body == "hello");
        return second;
    }

    std::string days_ago(int days) {
        return http_date(std::chrono::hours{-24 * days});
    }

    }  // namespace

    TEST_CASE("a response answers again when it says it is fresh") {
        struct row {
            std::string what;
            std::string fields;
        };
        const row rows[] = {
            {"max-age", "Cache-Control: max-age=60\r\n"},
            {"s-maxage beats max-age", "Cache-Control: s-maxage=60, max-age=0\r\n"},
            {"max-age beats Expires", "Cache-Control: max-age=60\r\nExpires: 0\r\n"},
            {"Expires", "Expires: " + http_date(std::chrono::hours{1}) + "\r\n"},
            {"the heuristic", "Last-Modified: " + days_ago(10) + "\r\n"},
            {"a directive in other case", "cache-control: MAX-AGE=60\r\n"},
            {"two field lines", "Cache-Control: public\r\nCache-Control: max-age=60\r\n"},
            {"unknown directives beside it",
             "Cache-Control: x-what=\"a, no-store\", max-age=60\r\n"},
            {"empty list members", "Cache-Control: , ,max-age=60,\r\n"},
            {"a huge lifetime", "Cache-Control: max-age=99999999999999999999\r\n"},
            {"must-revalidate while fresh", "Cache-Control: max-age=60, must-revalidate\r\n"},
        };
        world w;
        int i = 0;
        for (const auto& row : rows) {
            CAPTURE(row.what);
            CHECK(is_hit(second_answer(w, "/" + std::to_string(i++), row.fields)));
        }
    }

    TEST_CASE(
        "a directive with field names keeps those fields, and no others, from who comes next") {
        world w;
        for (const std::string says : {"private=\"X-Who\"",
                                       "no-cache=\"x-who, X-Absent\"",
                                       "private=\"X-Who\", no-cache=\"X-Other\""}) {
            CAPTURE(says);
            w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
                const auto own = "ETag: \"1\"\r\nX-Kept: yes\r\nX-Who: alice\r\n"
                                 "Cache-Control: max-age=60, " +
                                 says + "\r\n";
                to.send(request.has("If-None-Match") ? raw_head("304 Not Modified", own)
                                                     : ok(own, "hello"));
            });
            const auto first = w.get("/a", "Cache-Control: no-cache\r\n");
            CHECK(first.body == "hello");
            for (int i = 0; i < 2; ++i) {
                const auto hit = w.get("/a");
                CHECK(is_hit(hit));
                CHECK(hit.body == "hello");
                CHECK(hit.get("X-Kept") == "yes");
                CHECK_FALSE(hit.has("X-Who"));
                // What a 304 says again is withheld again.
                CHECK(w.get("/a", "Cache-Control: no-cache\r\n").status == 200);
            }
        }
        w.origin.on("/b",
                    ok("Cache-Control: max-age=60, private=\"X-Who\"\r\nX-Who: alice\r\n", "b"));
        CHECK(w.get("/b").get("X-Who") == "alice");
        CHECK_FALSE(w.get("/b").has("X-Who"));
    }

    TEST_CASE("what a reload brings ends what was fresh, though it is too large to be stored") {
        const auto body = patterned(80 * kib);
        const std::string fresh = "Cache-Control: public, max-age=600\r\n";
        auto settings = storing_settings();
        settings["memory"] = {{"size", "64MiB"}, {"max_object", "64KiB"}};
        for (const bool says_length : {true, false}) {
            for (const std::string validator : {"", "ETag: \"1\"\r\n"}) {
                CAPTURE(says_length);
                CAPTURE(validator);
                world w{settings};
                w.origin.on("/a", ok(fresh + validator, "old"));
                CHECK(w.get("/a").body == "old");
                CHECK(hit_body(w.get("/a")) == "old");
                w.origin.on("/a",
                            says_length
                                ? ok(fresh, body)
                                : raw_head("200 OK", fresh + "Transfer-Encoding: chunked\r\n") +
                                      chunk(body) + chunk(""));
                CHECK((w.get("/a", "Cache-Control: no-cache\r\n").body == body));
                const auto next = w.get("/a");
                CHECK_FALSE(is_hit(next));
                CHECK((next.body == body));
            }
        }
    }

    TEST_CASE("nobody shares a fetch whose fields are for one client") {
        world w;
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
            go.wait();
            to.send(ok("Cache-Control: max-age=60, private=\"X-Who\"\r\nX-Who: " +
                           request.get("X-Name") + "\r\n",
                       "hello"));
        });
        auto alice = w.proxy.connect(w.request("/a", "X-Name: alice\r\n"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
        auto bob = w.proxy.connect(w.request("/a", "X-Name: bob\r\n"));
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), figure_name::joined) == 1; }));
        go.open();
        CHECK(alice.read().get("X-Who") == "alice");
        CHECK(bob.read().get("X-Who") == "bob");
    }

    TEST_CASE("a response does not answer again when it may not") {
        struct row {
            std::string what;
            std::string fields;
        };
        const row rows[] = {
            {"no-store", "Cache-Control: no-store\r\n"},
            {"no-store beats max-age", "Cache-Control: max-age=60, no-store\r\n"},
            {"no-store in capitals", "Cache-Control: max-age=60, NO-STORE\r\n"},
            {"no-store in a second line",
             "Cache-Control: max-age=60\r\nCache-Control: no-store\r\n"},
            {"private", "Cache-Control: private, max-age=60\r\n"},
            {"private in mixed case", "Cache-Control: Private, max-age=60\r\n"},
            {"s-maxage of zero", "Cache-Control: max-age=60, s-maxage=0\r\n"},
            {"max-age of zero", "Cache-Control: max-age=0\r\n"},
            {"Expires in the past", "Expires: " + days_ago(1) + "\r\n"},
            {"Expires that is no date", "Expires: 0\r\n"},
            {"an Age that uses it up", "Cache-Control: max-age=60\r\nAge: 61\r\n"},
            {"nothing that says how long", "X-Nothing: at all\r\n"},
            {"Vary: *", "Cache-Control: max-age=60\r\nVary: *\r\n"},
            {"Vary: * among others", "Cache-Control: max-age=60\r\nVary: Accept, *\r\n"},
            {"no-cache", "Cache-Control: no-cache, max-age=60\r\n"},
        };
        world w;
        int i = 0;
        for (const auto& row : rows) {
            CAPTURE(row.what);
            const auto path = "/" + std::to_string(i++);
            CHECK_FALSE(is_hit(second_answer(w, path, row.fields)));
            CHECK(w.origin.count(path) == 2);
        }
    }

    TEST_CASE("Cache-Status names why a response was not stored") {
        world w;
        w.origin.on("/no-store", ok("Cache-Control: no-store\r\n", "x"));
        w.origin.on("/private", ok("Cache-Control: private\r\n", "x"));
        CHECK(cache_status_of(w.get("/no-store")).detail == "no-store");
        CHECK(cache_status_of(w.get("/private")).detail == "private");
    }

    TEST_CASE("statuses are stored as RFC 9111 allows") {
        struct row {
            std::string status;
            const char* fields;
            bool stored;
        };
        const row rows[] = {
            {"404 Not Found", "Cache-Control: max-age=60\r\n", true},
            {"301 Moved Permanently", "Location: /x\r\nCache-Control: max-age=60\r\n", true},
            {"302 Found", "Location: /x\r\nCache-Control: max-age=60\r\n", true},
            {"302 Found", "Location: /x\r\n", false},
            {"500 Internal Server Error", "", false},
            {"503 Service Unavailable", "", false},
        };
        world w;
        int i = 0;
        for (const auto& row : rows) {
            CAPTURE(row.status);
            const auto path = "/" + std::to_string(i++);
            w.origin.on(path, answer(row.status, row.fields, "hello"));
            CHECK(w.get(path).body == "hello");
            CHECK(is_hit(w.get(path)) == row.stored);
        }
    }

    TEST_CASE("Age starts from the origin's and grows") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=600\r\nAge: 100\r\n", "hello"));
        const auto asked_at = std::chrono::steady_clock::now();
        const auto first = std::stoi(w.get("/a").get("Age"));
        // What the answer took on its way is added (RFC 9111 4.2.3).
        const auto took = std::chrono::floor<std::chrono::seconds>(
            std::chrono::steady_clock::now() - asked_at);
        CHECK(first >= 100);
        CHECK(first <= 100 + took.count());
        const auto hit = w.get("/a");
        REQUIRE(is_hit(hit));
        CHECK(hit.fields.count("Age") == 1);
        CHECK(std::stoi(hit.get("Age")) >= 100);
        CHECK(eventually([&] { return std::stoi(w.get("/a").get("Age")) >= 102; }));
    }

    TEST_CASE("a response becomes stale and is fetched again") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=1\r\n", "one"));
        CHECK(w.get("/a").body == "one");
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "two"));
        response answer;
        CHECK(eventually([&] {
            answer = w.get("/a");
            return answer.body == "two";
        }));
        CHECK(cache_status_of(answer).fwd == "stale");
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("a response to Authorization is kept only with leave") {
        struct row {
            std::string cache_control;
            bool shared;
        };
        const row rows[] = {
            {"max-age=60", false},
            {"max-age=60, public", true},
            {"s-maxage=60", true},
            {"max-age=60, must-revalidate", true},
            {"max-age=60, PUBLIC", true},
        };
        world w;
        int i = 0;
        for (const auto& row : rows) {
            CAPTURE(row.cache_control);
            const auto path = "/" + std::to_string(i++);
            w.origin.on(path, ok("Cache-Control: " + row.cache_control + "\r\n", "hello"));
            const auto first = w.get(path, "Authorization: Basic bWU6c2VjcmV0\r\n");
            CHECK(first.body == "hello");
            CHECK(w.origin.requests(path).at(0).get("Authorization") == "Basic bWU6c2VjcmV0");
            CHECK(cache_status_of(first).stored == row.shared);
            CHECK(is_hit(w.get(path)) == row.shared);
        }
    }

    TEST_CASE("what the request says decides too") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        REQUIRE(cache_status_of(w.get("/a")).stored);
        const auto asks_origin = [&](const char* fields) {
            const auto before = w.origin.count("/a");
            CHECK(w.get("/a", fields).body == "hello");
            return w.origin.count("/a") == before + 1;
        };
        CHECK(asks_origin("Cache-Control: no-cache\r\n"));
        CHECK(asks_origin("Cache-Control: NO-CACHE\r\n"));
        CHECK(asks_origin("Cache-Control: max-age=0\r\n"));
        CHECK(asks_origin("Cache-Control: min-fresh=1000\r\n"));
        CHECK_FALSE(asks_origin("Cache-Control: max-age=50\r\n"));
        CHECK_FALSE(asks_origin("Cache-Control: min-fresh=10\r\n"));
        CHECK_FALSE(asks_origin("Cache-Control: only-if-cached\r\n"));
        CHECK(cache_status_of(w.get("/a", "Cache-Control: no-cache\r\n")).fwd == "request");
    }

    TEST_CASE("what no-cache fetched replaces what was stored") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "old"));
        CHECK(w.get("/a").body == "old");
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "new"));
        CHECK(w.get("/a").body == "old");
        CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "new");
        CHECK(hit_body(w.get("/a")) == "new");
    }

    TEST_CASE("no-store in the request keeps its response out") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK_FALSE(cache_status_of(w.get("/a", "Cache-Control: no-store\r\n")).stored);
        CHECK_FALSE(is_hit(w.get("/a")));
    }

    TEST_CASE("the answer to another method than GET is not stored") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.ask("POST", "/a", "Content-Length: 0\r\n").body == "hello");
        CHECK_FALSE(is_hit(w.get("/a")));
    }

    TEST_CASE("a body over memory.max_object passes and is not stored") {
        auto settings = storing_settings();
        settings["memory"] = {{"size", "16MiB"}, {"max_object", "64KiB"}};
        world w{settings};
        const auto small = patterned(60 * kib);
        const auto large = patterned(80 * kib);
        w.origin.on("/small", ok("Cache-Control: max-age=60\r\n", small));
        w.origin.on("/large", ok("Cache-Control: max-age=60\r\n", large));
        w.origin.on(
            "/chunked",
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
                chunk(large) + chunk(""));
        for (const std::string path : {"/small", "/large", "/chunked"}) {
            CAPTURE(path);
            CHECK(w.get(path).complete());
        }
        CHECK(is_hit(w.get("/small")));
        const auto again = w.get("/large");
        CHECK_FALSE(is_hit(again));
        CHECK(again.body == large);
        const auto chunked_again = w.get("/chunked");
        CHECK_FALSE(is_hit(chunked_again));
        CHECK(chunked_again.body == large);
    }

}  // TEST_SUITE
