// What one client says in its request decides for nobody else who waits for the same: a server, or what stands in
// front of it, may close the connection over it, or never answer. And yet an origin that is down for all is not asked
// by all of them at once.

#include "tests/scenario/crowd.hpp"
#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <chrono>
#include <cstdint>
#include <string>

TEST_SUITE("scenario/anothers_fields") {

    using namespace reprise::tests;

    namespace {

    constexpr std::size_t followers = 8;

    const std::string bad = "X-Bad: 1\r\n";
    const std::string good = ok("Cache-Control: max-age=60\r\n", "good");

    std::string own(std::size_t i) {
        return "X-Id: " + std::to_string(i) + "\r\n";
    }
    std::string led_by_bad(std::size_t i) {
        return i == 0 ? bad : own(i);
    }

    /// An origin that takes offence at X-Bad: it ends that connection, once all have gathered, and answers all else.
    gate& take_offence(world& w) {
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&held = go](origin_request& request, origin_connection& connection) {
            if (request.has("X-Bad")) {
                held.wait();
                connection.reset();
            } else {
                connection.send(good);
            }
        });
        return go;
    }

    }  // namespace

    TEST_CASE("who is refused by the end of its connection is refused alone") {
        world w;
        auto& go = take_offence(w);
        auto all = gather(w, followers, led_by_bad);
        go.open();
        CHECK(all.leader.read().status == 502);
        for (auto& one : all.rest) {
            const auto answer = one.read();
            CHECK(answer.status == 200);
            CHECK(answer.body == "good");
        }
    }

    TEST_CASE("nor does it help to have one's own wait for the next fetch, too") {
        world w;
        auto& go = take_offence(w);
        // In the order in which they came those of the same client would lead one after another. Whoever leads next is
        // not known: those share a good one's answer, and where one of theirs leads each is refused alone.
        constexpr std::size_t bad_ones = 3;
        auto all = gather(
            w, followers, [](std::size_t i) { return i <= bad_ones ? bad + own(i) : own(i); });
        go.open();
        CHECK(all.leader.read().status == 502);
        for (std::size_t i = 0; i < all.rest.size(); ++i) {
            CAPTURE(i);
            const auto status = all.rest[i].read().status;
            CHECK((status == 200 || (i < bad_ones && status == 502)));
        }
    }

    TEST_CASE("nor are the others given what is stale, though the origin would answer them") {
        world w;
        w.origin.on("/a", ok("Age: 100\r\nETag: \"1\"\r\nCache-Control: max-age=60\r\n", "stale"));
        CHECK(w.get("/a").body == "stale");
        auto& go = take_offence(w);
        auto all = gather(w, followers, led_by_bad);
        go.open();
        CHECK(all.leader.read().body == "stale");  // for its own failure it stands in
        for (auto& one : all.rest) {
            CHECK(one.read().body == "good");
        }
    }

    TEST_CASE("who is never answered lets nobody else wait as long") {
        auto settings = storing_settings();
        settings["timeouts"]["origin_head"] = sanitized ? "80s"
                                                        : "20s";  // others wait for a quarter of it
        world w{settings};
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            if (request.has("X-Bad")) {
                (void)connection.is_closed_by_proxy(2 * patience);
            } else {
                connection.send(good);
            }
        });
        auto all = gather(w, followers, led_by_bad);
        for (auto& one : all.rest) {
            CHECK(one.read().body == "good");
        }
    }

    TEST_CASE(
        "an origin that answers nobody for a while is asked by some, and not by all who wait") {
        using namespace std::chrono_literals;
        constexpr auto patience_with_another = 3s;  // they gather in less
        auto settings = storing_settings();
        settings["timeouts"]["origin_head"] = "12s";  // four times that
        settings["timeouts"]["origin_connect"] = "1m";
        settings["threads"] = 1;
        settings["origins"] = {{"connections", 10}, {"connections_per_client", 10}};
        constexpr std::int64_t at_most_alone = 5;  // half of those
        constexpr std::size_t many = 24;
        world w{settings};
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&held = go](origin_request&, origin_connection& connection) {
            held.wait();
            connection.send(good);
        });
        const auto begun = std::chrono::steady_clock::now();
        auto all = gather(w, many, own);
        REQUIRE(eventually([&] { return w.origin.count("/a") >= 3; }, 3 * patience));
        CHECK(never_within_a_moment([&] {
            const auto asked = static_cast<std::int64_t>(w.origin.count("/a"));
            const auto passed = std::chrono::steady_clock::now() - begun;
            return asked > 1 + passed / patience_with_another + at_most_alone;
        }));
        go.open();
        for (auto& one : all.rest) {
            CHECK(one.read().body == "good");
        }
    }

    TEST_CASE(
        "an origin that is down for all is asked once more, where those who waited ask the same") {
        world w;
        auto& go = w.origin.make_gate();
        auto& next = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            (request.has("X-Bad") ? go : next).wait();
            connection.reset();
        });
        auto all = gather(w, followers, [](std::size_t i) { return i == 0 ? bad : std::string{}; });
        go.open();
        CHECK(all.leader.read().status == 502);
        CHECK(eventually([&] {
            return figure(w.proxy.stats(), figure_name::joined) ==
                   static_cast<std::int64_t>(2 * followers - 1);
        }));
        next.open();
        for (auto& one : all.rest) {
            CHECK(one.read().status == 502);
        }
        CHECK(w.origin.count("/a") == 2);
    }

}  // TEST_SUITE
