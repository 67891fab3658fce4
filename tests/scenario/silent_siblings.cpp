// A sibling that says nothing: who is asked beside it, and what becomes of whoever loses.

#include "tests/scenario/liar.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <initializer_list>

TEST_SUITE("scenario/silent_siblings") {

    using namespace reprise::tests;

    namespace {

    /// A node that believes of several what the first has stored, and asks them in this order: nothing is known
    /// of any. It waits for each for half of its budget; whoever is asked beside it has the other half, before
    /// the origin is asked.
    struct asked_in_turn {
        fleet f;
        std::deque<liar> siblings;

        asked_in_turn() : asked_in_turn{settings()} {}
        explicit asked_in_turn(const json& settings) : f{2, settings} { f.serve_everything(); }

        static json settings() {
            auto made = node_settings();
            made["peering"]["budget"] = "5s";
            return made;
        }
        void add(origin_handler asked) { siblings.emplace_back(f, 0, std::move(asked)); }
        /// /a, and `others`: nobody is met before all of them are told.
        void store_and_meet(std::initializer_list<const char*> others = {}) {
            for (const auto* path : others) {
                CHECK(f[0].get(f.origin.url(path)).status == 200);
            }
            CHECK(f[0].get(url()).status == 200);
            const auto stored = static_cast<std::int64_t>(others.size()) + 1;
            auto peers = json::array();
            for (auto& one : siblings) {
                peers.push_back(peer_at(name(peers.size()), one.as.port()));
                peers.back()["timeout"] = "1m";
            }
            f.tell(1, peers);
            for (std::size_t i = 0; i < siblings.size(); ++i) {
                REQUIRE(f.holds(1, name(i), stored));
            }
        }
        [[nodiscard]] static std::string name(std::size_t i) { return "s" + std::to_string(i); }
        [[nodiscard]] std::string url() const { return f.origin.url("/a"); }
        [[nodiscard]] auto asked(std::size_t i, const char* end) {
            return f.asked(1, name(i), end);
        }
        /// So many were asked of it for the object.
        [[nodiscard]] std::size_t questions(std::size_t i) {
            const auto all = siblings[i].as.requests();
            return static_cast<std::size_t>(std::count_if(
                all.begin(), all.end(), [this](const auto& one) { return one.target == url(); }));
        }
        [[nodiscard]] bool is_asked(std::size_t i) {
            return eventually([&] { return questions(i) == 1; });
        }
    };

    std::string object(const char* body) {
        return ok("Age: 1\r\nCache-Control: max-age=600\r\n", body);
    }

    void say_nothing(origin_request&, origin_connection& c) {
        (void)c.is_closed_by_proxy();
    }

    }  // namespace

    TEST_CASE("whoever comes next is asked beside it, and no origin") {
        asked_in_turn s;
        std::atomic<bool> left{false};
        s.add([&](auto&, auto& c) { left = c.is_closed_by_proxy(); });
        s.add([](auto&, auto& c) { c.send(object("of the second")); });
        s.store_and_meet();
        CHECK(s.f[1].get(s.url()).body == "of the second");
        CHECK(s.f.origin.count("/a") == 1);
        CHECK(eventually([&] { return left.load(); }));
        CHECK(s.asked(0, "late") == 1);
        CHECK(s.asked(1, "true-hit") == 1);
    }

    TEST_CASE("two that are silent leave time for a third") {
        asked_in_turn s;
        const auto is_a = [](const origin_request& request) {
            return request.target.ends_with("/a");
        };
        s.add([&](auto& request, auto& c) {
            c.send(is_a(request) ? object("of the first") : answer("504 Not Here", "", "no"));
        });
        s.add([&](auto& request, auto& c) {
            if (is_a(request)) {
                say_nothing(request, c);
            }
            c.send(object("of the second"));
        });
        s.add(say_nothing);
        s.store_and_meet({"/b"});
        // The third was never asked and comes first then; the second is known to be quick, and waited for for a moment.
        CHECK(s.f[1].get(s.f.origin.url("/b")).body == "of the second");
        CHECK(s.f[1].get(s.url()).body == "of the first");
        CHECK(s.f.origin.count("/a") == 1);
        CHECK(s.questions(1) == 1);
        CHECK(s.questions(2) == 1);
    }

    TEST_CASE(
        "it may answer yet, and whoever was asked beside it is left, and not held to anything") {
        asked_in_turn s;
        std::atomic<bool> left{false};
        s.add([&](auto&, auto& c) {
            (void)s.is_asked(1);
            c.send(object("of the first"));
        });
        s.add([&](auto&, auto& c) { left = c.is_closed_by_proxy(); });
        s.store_and_meet();
        CHECK(s.f[1].get(s.url()).body == "of the first");
        CHECK(s.f.origin.count("/a") == 1);
        CHECK(eventually([&] { return left.load(); }));
        CHECK(s.asked(0, "true-hit") == 1);
        for (const auto* end : {"true-hit", "false-hit", "late", "failed"}) {
            CAPTURE(std::string{end});
            CHECK(s.asked(1, end) == 0);
        }
    }

    TEST_CASE("it is waited for though whoever was asked beside it has nothing") {
        asked_in_turn s;
        s.add([&](auto&, auto& c) {
            (void)eventually([&] { return s.asked(1, "false-hit") == 1; });
            c.send(object("of the first"));
        });
        s.add([](auto&, auto& c) { c.send(answer("504 Not Here", "", "no")); });
        s.store_and_meet();
        CHECK(s.f[1].get(s.url()).body == "of the first");
        CHECK(s.f.origin.count("/a") == 1);
        CHECK(s.asked(0, "true-hit") == 1);
    }

    TEST_CASE("one that begins an answer and says no more is not waited for alone either") {
        for (const auto* begun : {"H",
                                  "HTTP/1.1 200 OK\r\nAge: 1\r\nCache-Control: "
                                  "max-age=600\r\nContent-Length: 13\r\n\r\n"}) {
            CAPTURE(std::string{begun});
            asked_in_turn s;
            s.add([begun](auto&, auto& c) {
                c.send(begun);
                (void)c.is_closed_by_proxy();
            });
            s.add([](auto&, auto& c) { c.send(object("of the second")); });
            s.store_and_meet();
            CHECK(s.f[1].get(s.url()).body == "of the second");
            CHECK(s.f.origin.count("/a") == 1);
            CHECK(s.asked(0, "late") == 1);
        }
    }

    TEST_CASE(
        "one that was not asked yet, since all connections to it are in use, is not held to it") {
        auto settings = asked_in_turn::settings();
        settings["origins"] = {{"connections", 1}, {"connections_per_client", 1}};
        settings["threads"] = 1;
        asked_in_turn s{settings};
        const auto is_slow = [](const origin_request& request) {
            return request.target.ends_with("/slow");
        };
        std::atomic<bool> streams{false};
        s.add([&](auto& request, auto& c) {
            if (is_slow(request)) {
                c.send("HTTP/1.1 200 OK\r\nAge: 1\r\nCache-Control: max-age=600\r\nContent-Length: "
                       "9\r\n\r\nb");
                streams = true;
                (void)c.is_closed_by_proxy();
            }
            c.send(object("of the first"));
        });
        s.add([](auto&, auto& c) { c.send(object("of the second")); });
        s.store_and_meet({"/slow"});
        client reading{s.f[1].port()};
        reading.send(absolute_request("GET", s.f.origin.url("/slow")));
        REQUIRE(eventually([&] { return streams.load(); }));
        CHECK(s.f[1].get(s.url()).body == "of the second");
        CHECK(s.questions(0) == 0);
        CHECK(s.asked(0, "late") == 0);
    }

    TEST_CASE("one that has said that it is at work is waited for alone") {
        asked_in_turn s;
        s.add([](auto&, auto& c) {
            c.send("HTTP/1.1 102 Processing\r\n\r\n");
            c.pause(std::chrono::milliseconds{2800});  // longer than it would be waited for else
            c.send(object("of the first"));
        });
        s.add([](auto&, auto& c) { c.send(object("of the second")); });
        s.store_and_meet();
        CHECK(s.f[1].get(s.url()).body == "of the first");
        CHECK(s.questions(1) == 0);
    }

    TEST_CASE(
        "one that says that it is at work, and never more than that, is not believed for ever") {
        auto settings = asked_in_turn::settings();
        settings["peering"]["budget"] = "300ms";
        asked_in_turn s{settings};
        s.add([](auto&, auto& c) {
            c.send("HTTP/1.1 102 Processing\r\n\r\n");
            (void)c.is_closed_by_proxy();
        });
        s.add([](auto&, auto& c) { c.send(object("of the second")); });
        constexpr int objects = 40;
        const auto path = [](int i) { return "/" + std::to_string(i); };
        for (int i = 0; i < objects; ++i) {
            CHECK(s.f[0].get(s.f.origin.url(path(i))).status == 200);
        }
        s.store_and_meet();
        REQUIRE(s.f.holds(1, asked_in_turn::name(1), objects));
        const auto before = s.f.origin.requests().size();
        for (int i = 0; i < objects; ++i) {
            CHECK(s.f[1].get(s.f.origin.url(path(i))).status == 200);
        }
        CHECK(s.asked(0, "late") > 0);
        CHECK(s.asked(1, "true-hit") > 0);
        CHECK(s.f.origin.requests().size() - before < objects);
    }

    TEST_CASE("clients who leave end all that was asked, and it is nobody's fault") {
        asked_in_turn s;
        std::array<std::atomic<bool>, 2> left{};
        for (auto& one : left) {
            s.add([&one](auto&, auto& c) { one = c.is_closed_by_proxy(); });
        }
        s.store_and_meet();
        {
            client leaving{s.f[1].port()};
            leaving.send(absolute_request("GET", s.url()));
            REQUIRE(s.is_asked(0));
            REQUIRE(s.is_asked(1));
        }
        for (std::size_t i = 0; i < left.size(); ++i) {
            CAPTURE(i);
            CHECK(eventually([&] { return left[i].load(); }));
            for (const auto* end : {"true-hit", "false-hit", "late", "failed"}) {
                CAPTURE(std::string{end});
                CHECK(s.asked(i, end) == 0);
            }
        }
    }
}
