// A Squid of the settings, as it is answered: tests/clients/squid.sh has a real one.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/squid_peer") {

    using namespace reprise::tests;

    namespace {

    constexpr const char* digest = "GET /squid-internal-periodic/store_digest HTTP/1.1\r\n"
                                   "Host: x\r\n\r\n";
    constexpr const char* asks = "Via: 1.1 a.invalid (squid/5.7)\r\n"
                                 "Cache-Control: max-age=259200, only-if-cached\r\n";

    json with_squid() {
        auto settings = storing_settings();
        settings["digest"] = {{"squid", true}, {"publish_after", "1s"}};
        settings["peers"] = json::array(
            {{{"name", "squid"}, {"url", "http://127.0.0.1:1"}, {"protocol", "squid"}}});
        return settings;
    }

    }  // namespace

    TEST_CASE("who asks before the index is loaded waits for the digest") {
        const temp_dir directory;
        auto settings = with_squid();
        settings["disk"] = disk_of_all_admitted(directory.file("store"), "64MiB");
        fake_origin origin;
        for (int start = 0; start < 5; ++start) {
            const proxy_process proxy{settings};
            client squid{proxy.port()};
            const auto got = squid.ask(digest);
            CHECK(got.status == 200);
            CHECK(got.get("Content-Type") == "application/cache-digest");
            CHECK(got.body.size() > 256);
        }
    }

    TEST_CASE("its questions get 200 or 504, whatever is refused to others") {
        auto settings = with_squid();
        SUBCASE("not a client") {
            settings["access"]["clients"] = json::array({"10.0.0.0/8"});
            const world w{settings};
            CHECK(w.get("/a").status == 403);
            CHECK(w.get("/a", asks).status == 504);
            CHECK(w.origin.count("/a") == 0);
        }
        SUBCASE("a destination that is denied") {
            settings["access"]["deny_destinations"] = json::array({"127.0.0.0/8"});
            const world w{settings};
            CHECK(w.get("/a").status == 403);
            CHECK(w.get("/a", asks).status == 504);
        }
        SUBCASE("a loop") {
            const world w{settings};
            const auto via = w.get("/a").get("Via");
            CHECK(w.get("/a", "Via: " + via + "\r\n" + asks).status == 504);
        }
        SUBCASE("who is no Squid is told why") {
            settings["peers"][0]["url"] = "http://127.0.0.2:1";
            settings["access"]["clients"] = json::array({"10.0.0.0/8"});
            const world w{settings};
            CHECK(w.get("/a", asks).status == 403);
            client other{w.proxy.port()};
            CHECK(other.ask(digest).status == 403);
        }
    }

    TEST_CASE("what is stale it is not given, though others are while it is asked for anew") {
        world w{with_squid()};
        w.origin.on(
            "/a",
            ok("Age: 100\r\nCache-Control: max-age=60, stale-while-revalidate=600\r\n", "old"));
        CHECK(w.get("/a").status == 200);
        CHECK(w.get("/a", asks).status == 504);
        CHECK(w.get("/a", "Cache-Control: only-if-cached, max-stale\r\n").status == 504);
        CHECK(w.origin.count("/a") == 1);
        CHECK(cache_status_of(w.get("/a")).hit);
    }

    TEST_CASE("while no peer's address is known, who is refused as a client does not wait") {
        auto settings = with_squid();
        settings["peers"] = json::array({{{"name", "p"}, {"dns", "no-such-name.invalid"}}});
        settings["access"]["clients"] = json::array({"10.0.0.0/8"});
        const proxy_process proxy{settings};
        client other{proxy.port()};
        CHECK(other.ask(digest).status == 403);
    }

    TEST_CASE("who leaves while he waits for the digest is let go of") {
        auto settings = with_squid();
        settings["peers"] = json::array({{{"name", "p"}, {"dns", "no-such-name.invalid"}}});
        const proxy_process proxy{settings};
        {
            client other{proxy.port()};
            REQUIRE(other.send(digest));
        }
        CHECK(proxy.logged("store_digest")["outcome"] == "client_gone");
    }
}
