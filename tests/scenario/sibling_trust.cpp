// What a sibling says is believed of what it could know: bodies and lifetimes within bounds, and of
// cookies, of what is one client's own, and of responses to come nothing. proxy/peer/TRUST.md.

#include "tests/scenario/liar.hpp"

#include <atomic>

TEST_SUITE("scenario/sibling_trust") {

    using namespace reprise::tests;

    namespace {

    /// What it answers, whoever asks for what.
    origin_handler says(const std::string& fields, const std::string& body = "of the liar") {
        return [=](origin_request&, origin_connection& connection) {
            connection.send(ok("Age: 5\r\n" + fields, body));
        };
    }

    std::int64_t seconds_left(const response& got) {
        const auto ttl = cache_status_of(got).ttl;
        return ttl.empty() ? -1 : std::stoll(ttl);
    }

    }  // namespace

    TEST_CASE("what no store shares, or is stale by its own word, is a false hit") {
        for (const std::string fields : {"Cache-Control: private, max-age=600\r\n",
                                         "Cache-Control: no-store\r\n",
                                         "Cache-Control: no-cache, max-age=600\r\n",
                                         "Cache-Control: max-age=5\r\n"}) {
            CAPTURE(fields);
            fleet f{2};
            f.serve_everything();
            liar as{f, 0, says(fields)};
            store_and_meet_liar(f, as);
            const auto got = f[1].get(f.origin.url("/a"));
            CHECK(got.status == 200);
            CHECK(got.body == "body of /a");
            CHECK(cache_status_of(got).stored);
            CHECK(f.origin.count("/a") == 2);
            CHECK(eventually([&] { return f.asked(1, "liar", "false-hit") == 1; }));
        }
    }

    TEST_CASE("another sibling is asked before the origin when one says private") {
        fleet f{2};
        f.serve_everything();
        liar as{f, 0, says("Cache-Control: private, max-age=600\r\n")};
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        auto good = peer_at("n0", f[0].port());
        f.tell(1, json::array({good, peer_at("liar", as.as.port())}));
        REQUIRE(f.holds(1, "liar", 1));
        REQUIRE(f.holds(1, "n0", 1));
        CHECK(f[1].get(f.origin.url("/a")).body == "body of /a");
        CHECK(f.asked(1, "n0", "true-hit") == 1);
        CHECK(f.origin.count("/a") == 1);
    }

    TEST_CASE("a cookie from a sibling reaches who asked, and is never stored") {
        auto settings = node_settings();
        settings["caching"] = {{"set_cookie", "explicit"}};
        fleet f{2, settings};
        f.serve_everything("Cache-Control: max-age=600\r\nSet-Cookie: c=d\r\n");
        liar as{f, 0, says("Cache-Control: max-age=600\r\nSet-Cookie: a=b\r\n")};
        store_and_meet_liar(f, as);
        for (int i = 1; i <= 3; ++i) {
            const auto got = f[1].get(f.origin.url("/a"));
            CHECK(got.body == "of the liar");
            CHECK(got.get("Set-Cookie") == "a=b");
            CHECK(cache_status_of(got).detail == "set-cookie");
            CHECK(f.asked(1, "liar", "true-hit") == i);
        }
        CHECK(f.asked(1, "liar", "true-hit") == 3);
        // An origin's, with the lifetime that it states, is what the settings say.
        CHECK(f[1].get(f.origin.url("/b")).status == 200);
        CHECK(is_hit(f[1].get(f.origin.url("/b"))));
    }

    TEST_CASE("what a sibling says of a key keeps no later response out") {
        fleet f{2};
        f.serve_everything();
        std::atomic<bool> lies{true};
        liar as{f, 0, [&](origin_request&, origin_connection& connection) {
                    connection.send(lies ? ok("Age: 5\r\nVary: *\r\n", "of the liar")
                                         : answer("504 Not Here", "", "no"));
                }};
        store_and_meet_liar(f, as);
        CHECK(f[1].get(f.origin.url("/a")).body == "of the liar");
        lies = false;
        // A key that was said to be nobody else's would be asked for by each alone.
        auto& slow = f.origin.make_gate();
        f.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            (void)slow.wait();
            connection.send(ok("Cache-Control: max-age=600\r\n", "body of /a"));
        });
        client one{f[1].port()};
        client other{f[1].port()};
        one.send(absolute_request("GET", f.origin.url("/a")));
        REQUIRE(eventually([&] { return f.origin.count("/a") == 2; }));
        other.send(absolute_request("GET", f.origin.url("/a")));
        REQUIRE(eventually([&] { return figure(f[1].stats(), "/collapsing/joined") == 1; }));
        slow.open();
        CHECK(one.read().body == "body of /a");
        CHECK(cache_status_of(other.read()).collapsed);
        CHECK(f.origin.count("/a") == 2);
    }

    TEST_CASE("a sibling is believed for max_age at most, from when its origin made it") {
        fleet f{2};
        f.serve_everything();
        std::atomic<bool> old{true};
        liar as{f, 0, [&](origin_request&, origin_connection& connection) {
                    connection.send(ok(old ? "Age: 60\r\nCache-Control: max-age=31536000\r\n"
                                           : "Age: 5\r\nCache-Control: max-age=31536000\r\n",
                                       "of the liar"));
                }};
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        CHECK(f[0].get(f.origin.url("/b")).status == 200);
        auto known = peer_at("liar", as.as.port());
        known["max_age"] = "60s";
        f.tell(1, json::array({known}));
        REQUIRE(f.holds(1, "liar", 2));
        CHECK(f[1].get(f.origin.url("/a")).body == "body of /a");
        CHECK(f.asked(1, "liar", "false-hit") == 1);
        old = false;
        CHECK(f[1].get(f.origin.url("/b")).body == "of the liar");
        const auto again = f[1].get(f.origin.url("/b"));
        CHECK(is_hit(again));
        CHECK(seconds_left(again) > 0);
        CHECK(seconds_left(again) <= 55);
        CHECK(seconds_left(f[1].get(f.origin.url("/a"))) > 500);  // an origin's word is its own
    }
}
