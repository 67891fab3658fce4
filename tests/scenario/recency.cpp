// What is kept is the most recent response (RFC 9111 4), whichever of several ends last, and what
// is kept ages whatever becomes of the clock.

#include "tests/scenario/fleet.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/stepped_clock.hpp"

#include <atomic>
#include <string>

TEST_SUITE("scenario/recency") {

    using namespace reprise::tests;

    namespace {

    const std::string keeps = "Cache-Control: max-age=600\r\n";

    /// A proxy whose wall clock the test sets.
    struct clock_world {
        fake_origin origin;
        stepped_clock clock;
        proxy_process proxy;

        explicit clock_world(const json& settings = storing_settings())
            : proxy{settings, clock.environment()} {}
        [[nodiscard]] response get(std::string_view path, std::string_view fields = "") const {
            return proxy.get(origin.url(path), fields);
        }
    };

    }  // namespace

    TEST_CASE("a slow download that ends after a reload takes the newer one's place nowhere") {
        world w;
        auto& go = w.origin.make_gate();
        std::atomic<int> asked{0};
        w.origin.on("/a", [&](origin_request&, origin_connection& to) {
            if (asked.fetch_add(1) != 0) {
                to.send(ok(keeps + "ETag: \"2\"\r\n", "newer"));
                return;
            }
            to.send(raw_head("200 OK", keeps + "ETag: \"1\"\r\nContent-Length: 5\r\n") + "ol");
            go.wait();
            to.send("der");
        });
        auto slow = w.proxy.connect(w.request("/a"));
        auto first = slow.read_head();
        CHECK(first.get("ETag") == "\"1\"");
        CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "newer");
        go.open();
        slow.read_body(first, 5);
        CHECK(first.body == "older");
        CHECK(first.complete());
        // What has read the end of it stores it before it tells that all of it is there.
        CHECK(hit_body(w.get("/a")) == "newer");
    }

    TEST_CASE("a Date in the future pins nothing") {
        world w;
        w.origin.on("/a",
                    "HTTP/1.1 200 OK\r\n" + keeps + "Date: " + http_date(std::chrono::hours{1000}) +
                        "\r\nContent-Length: 3\r\n\r\nold");
        CHECK(w.get("/a").body == "old");
        w.origin.on("/a", ok(keeps, "new"));
        CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "new");
        CHECK(hit_body(w.get("/a")) == "new");
    }

    TEST_CASE("a reload is kept though the clock was set back before it") {
        clock_world w;
        w.origin.on("/a", ok(keeps, "old"));
        CHECK(w.get("/a").body == "old");
        w.clock.advance(-3600);
        w.origin.on("/a", ok(keeps, "new"));
        CHECK(w.get("/a", "Cache-Control: no-cache\r\n").body == "new");
        CHECK(hit_body(w.get("/a")) == "new");
    }

    TEST_CASE("a clock that is set back makes nothing younger") {
        clock_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "old"));
        CHECK(w.get("/a").body == "old");
        w.clock.advance(30);
        const auto aged = w.get("/a");
        CHECK(is_hit(aged));
        REQUIRE(aged.has("Age"));
        CHECK(std::stoi(aged.get("Age")) >= 29);
        w.origin.on("/b", ok(keeps, "another"));
        CHECK(w.get("/b").body == "another");  // what is fetched looks at both clocks
        w.clock.advance(-3600);
        const auto later = w.get("/a");
        CHECK(is_hit(later));
        REQUIRE(later.has("Age"));
        CHECK(std::stoi(later.get("Age")) >= std::stoi(aged.get("Age")));
        w.clock.advance(3600 + 40);
        CHECK_FALSE(is_hit(w.get("/a")));
    }

    TEST_CASE("what was stored before the clock was set back ends when its lifetime has passed") {
        clock_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=1\r\n", "old"));
        CHECK(w.get("/a").body == "old");
        w.clock.advance(-3600);
        w.origin.on("/a", ok(keeps, "new"));
        CHECK(eventually([&] { return w.get("/a").body == "new"; }));
    }

    TEST_CASE(
        "what is stored while the clock is behind is listed for siblings as long as it is fresh") {
        stepped_clock clock;
        fleet f{2, node_settings(), clock.environment()};
        f.origin.on("/a", ok(keeps, "hello"));
        CHECK(f[0].get(f.origin.url("/a")).body == "hello");
        REQUIRE(f.holds(1, "n0", 1));
        clock.advance(-7200);
        f.origin.on("/short", ok("Cache-Control: max-age=24\r\n", "short"));
        CHECK(f[0].get(f.origin.url("/short")).body == "short");
        REQUIRE(f.holds(1, "n0", 2));
        // Ten seconds before its end it is of no use to others any more.
        CHECK(eventually([&] { return f.told(1, "n0") == 1; }, 3 * patience));
        CHECK(f.claims(1, f.origin.url("/a")));
        CHECK_FALSE(f.claims(1, f.origin.url("/short")));
    }

    TEST_CASE("what is stored while the clock is behind is as fresh as it says") {
        clock_world w;
        w.origin.on("/a", ok(keeps, "old"));
        CHECK(w.get("/a").body == "old");
        w.clock.advance(-7200);
        w.origin.on("/b",
                    ok("Cache-Control: max-age=60\r\nDate: " +
                           http_date(std::chrono::seconds{-7200}) + "\r\n",
                       "hello"));
        CHECK(w.get("/b").body == "hello");
        CHECK(is_hit(w.get("/b")));
    }
}
