// Nodes that come to be cut off from each other, and back. And what does that to them: a link that is
// longer than loopback, and can be cut without anybody being told.

#include "tests/scenario/fleet.hpp"
#include "tests/support/wide_link.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>

TEST_SUITE("scenario/partition") {

    using namespace reprise::tests;
    using namespace std::chrono_literals;

    namespace {

    /// Two nodes, of which the second knows the first by a link.
    struct apart {
        fleet f{0};
        std::unique_ptr<wide_link> way;

        explicit apart(const json& settings = seldom_settings()) {
            f.add(settings);
            f.add(settings);
            f.serve_everything();
            way = std::make_unique<wide_link>(link_options{.to = f[0].port()});
            auto known = seldom_peer("n0", way->port());
            known["timeout"] = "3s";  // so it finds out that the link is cut
            f.tell(1, json::array({known}));
            REQUIRE(f.is_by_news(1, "n0"));
        }
        [[nodiscard]] std::string url(const std::string& path) const { return f.origin.url(path); }
        /// The first stores it, and the second is told.
        void store(const std::string& path) {
            CHECK(f[0].get(url(path)).status == 200);
            REQUIRE(eventually([&] { return f.claims(1, url(path)); }));
        }
    };

    }  // namespace

    TEST_CASE(
        "a link brings all in order, no sooner than its delay, and ends as the other side does") {
        acceptor far;
        wide_link way{{.to = far.port(), .delay = 30ms}};
        const auto begun = std::chrono::steady_clock::now();
        const auto passed = [&] { return std::chrono::steady_clock::now() - begun; };
        auto near = stream::connect(way.port());
        CHECK(near.send("there"));
        auto other = far.accept(patience);
        REQUIRE(other.is_open());
        CHECK(passed() >= 30ms);
        CHECK(other.read_at_least(5) == "there");
        CHECK(passed() >= 90ms);  // it was made, that was said, and then it came
        CHECK(other.send("back"));
        CHECK(near.read_at_least(4) == "back");
        CHECK(passed() >= 120ms);
        const auto large = patterned(3'000'000);
        std::thread sends{[&] {
            CHECK(near.send(large));
            near.finish_sending();
        }};
        CHECK((other.read_at_least(large.size()) == large));
        sends.join();
        std::string none;
        CHECK(other.read_some(none) == read_end::closed);
        CHECK(way.counts().there == large.size() + 5);
        CHECK(way.counts().back == 4);
        CHECK(way.counts().connections == 1);
        other.reset();
        CHECK(near.read_some(none) == read_end::reset);
        CHECK(eventually([&] { return way.counts().open == 0; }));
    }

    TEST_CASE("of a cut link nobody hears anything, until it is mended") {
        acceptor far;
        wide_link way{{.to = far.port()}};
        auto near = stream::connect(way.port());
        auto other = far.accept(patience);
        CHECK(near.send("a"));
        CHECK(other.read_at_least(1) == "a");
        for (int again = 0; again < 2; ++again) {
            way.cut();
            CHECK(near.send("there"));
            CHECK(other.send("back"));
            std::string got;
            CHECK(other.read_some(got, a_moment) == read_end::timed_out);
            CHECK(near.read_some(got, a_moment) == read_end::timed_out);
            way.mend();
            CHECK(other.read_at_least(5) == "there");
            CHECK(near.read_at_least(4) == "back");
        }
        way.cut();
        other.close();
        std::string got;
        CHECK(near.read_some(got, a_moment) == read_end::timed_out);
        way.mend();
        CHECK(near.read_some(got) == read_end::closed);
        CHECK(stream::connect(way.port()).is_open());
        CHECK(far.accept(patience).is_open());
    }

    TEST_CASE("a node that is cut off serves by itself, and follows again when it is back") {
        apart at;
        auto& f = at.f;
        at.store("/a");
        at.store("/b");
        CHECK(f[1].get(at.url("/a")).body == "body of /a");
        CHECK(f.origin.count("/a") == 1);
        at.way->cut();
        // Known to be there, and not to be had; and one that it was not told of.
        CHECK(f[0].get(at.url("/c")).status == 200);
        CHECK(f[1].get(at.url("/b")).body == "body of /b");
        CHECK(f.origin.count("/b") == 2);
        CHECK(f[1].get(at.url("/c")).body == "body of /c");
        CHECK(f.origin.count("/c") == 2);
        at.way->mend();
        at.store("/d");
        CHECK(f[1].get(at.url("/d")).body == "body of /d");
        CHECK(f.origin.count("/d") == 1);
    }

    TEST_CASE(
        "one that could not be reached for a while is asked as before as soon as it is heard") {
        auto settings = seldom_settings();
        settings["peering"]["hit_worth"] = "1s";  // so that its silence costs it more than it gave
        apart at{settings};
        auto& f = at.f;
        constexpr int objects = 17;  // after eight answers each more in vain halves its chances
        constexpr int at_chance = 4;
        const auto path = [](const char* of, int i) { return of + std::to_string(i); };
        for (int i = 0; i < objects; ++i) {
            CHECK(f[0].get(at.url(path("/a", i))).status == 200);
            CHECK(f[0].get(at.url(path("/b", i))).status == 200);
        }
        REQUIRE(eventually([&] { return f.claims(1, at.url(path("/b", objects - 1))); }));
        CHECK(f[1].get(at.url("/a0")).status == 200);
        at.way->cut();
        std::deque<client> clients;
        for (int i = 1; i < objects; ++i) {
            clients.emplace_back(f[1].port());
            clients.back().send(absolute_request("GET", at.url(path("/a", i))));
        }
        for (auto& one : clients) {
            CHECK(one.read().status == 200);  // of the origin
        }
        CHECK(eventually([&] { return f.asked(1, "n0", "late") == objects - 1; }));
        // It is asked at one chance in many now: at the first of these, and at another when a second has passed, then two.
        clients.clear();
        for (int i = 0; i < at_chance; ++i) {
            clients.emplace_back(f[1].port());
            clients.back().send(absolute_request("GET", at.url(path("/b", i))));
        }
        for (auto& one : clients) {
            CHECK(one.read().status == 200);
        }
        CHECK(eventually([&] { return f.asked(1, "n0", "late") >= objects; }));
        CHECK(f[1].stats().at("/siblings/held_back/n0"_json_pointer).get<int>() > 0);
        at.way->mend();
        at.store("/news");
        for (int i = at_chance; i < objects; ++i) {
            CHECK(f[1].get(at.url(path("/b", i))).status == 200);
            CHECK(f.origin.count(path("/b", i)) == 1);
        }
    }

    TEST_CASE("a sibling that is cut off in the middle of a body is replaced behind it") {
        apart at;
        auto& f = at.f;
        const auto body = patterned(8'000'000);
        f.origin.on("/large", ok("Cache-Control: max-age=600\r\nETag: \"1\"\r\n", body));
        at.store("/large");
        client one{f[1].port()};
        one.send(absolute_request("GET", at.url("/large")));
        auto got = one.read_head();
        one.read_body(got, 1000);
        at.way->cut();
        one.read_body(got, body.size());
        CHECK((got.body == body));
    }
}
