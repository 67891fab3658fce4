// How a shared fetch ends: broken, failed, left by some or by everybody. What was cut looks
// complete to nobody and is never stored.

#include "tests/scenario/crowd.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/wide_link.hpp"

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

TEST_SUITE("scenario/fetch_endings") {

    using namespace reprise::tests;

    TEST_CASE("a fetch that breaks in the middle looks complete to nobody and is not stored") {
        struct row {
            std::string what;
            std::string head;
            std::string part;
            bool by_reset;
        };
        const row rows[] = {
            {"length, FIN", "Content-Length: 1000\r\n", "part of it", false},
            {"length, RST", "Content-Length: 1000\r\n", "part of it", true},
            {"chunked, FIN", "Transfer-Encoding: chunked\r\n", chunk("part of it"), false},
            {"chunked, RST", "Transfer-Encoding: chunked\r\n", chunk("part of it"), true},
            {"chunked, nonsense",
             "Transfer-Encoding: chunked\r\n",
             chunk("part of it") + "zz\r\n",
             false},
            {"close, RST", "", "part of it", true},
        };
        for (const auto& row : rows) {
            CAPTURE(row.what);
            world w;
            auto& head = w.origin.make_gate();
            auto& end = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
                head.wait();
                connection.send(raw_head("200 OK", "Cache-Control: max-age=60\r\n" + row.head) +
                                row.part);
                end.wait();
                if (row.by_reset) {
                    connection.reset();
                } else {
                    connection.close();
                }
            });
            auto all = gather(w, 4);
            head.open();
            std::vector<response> answers;
            answers.push_back(all.leader.read_head());
            for (auto& one : all.rest) {
                answers.push_back(one.read_head());
            }
            end.open();
            for (std::size_t i = 0; i < answers.size(); ++i) {
                auto& one = i == 0 ? all.leader : all.rest[i - 1];
                one.read_body(answers[i], 2000);
                CHECK(answers[i].end == ending::cut_short);
                CHECK(answers[i].body.size() <= 10);
            }
            w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "whole"));
            const auto after = w.get("/a");
            CHECK_FALSE(is_hit(after));
            CHECK(after.body == "whole");
        }
    }

    TEST_CASE("a fetch that fails before its head is an error for all who waited") {
        world w;
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            go.wait();
            connection.reset();
        });
        auto all = gather(w, 4);
        go.open();
        CHECK(all.leader.read().status == 502);
        for (auto& one : all.rest) {
            const auto answer = one.read();
            CHECK(answer.status == 502);
            CHECK(answer.complete());
        }
    }

    TEST_CASE("the leader may leave: those who followed go on") {
        const auto body = patterned(4 * mib);
        world w;
        auto& head = w.origin.make_gate();
        auto& rest = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            head.wait();
            connection.send(raw_head("200 OK",
                                     "Cache-Control: max-age=60\r\nContent-Length: " +
                                         std::to_string(body.size()) + "\r\n") +
                            body.substr(0, mib));
            rest.wait();
            connection.send(std::string_view{body}.substr(mib));
        });
        SUBCASE("before the head") {
            auto all = gather(w, 3);
            all.leader.connection().reset();
            head.open();
            rest.open();
            for (auto& one : all.rest) {
                CHECK(one.read().body == body);
            }
        }
        SUBCASE("in the middle of the body") {
            auto all = gather(w, 3);
            head.open();
            auto first = all.leader.read_head();
            all.leader.read_body(first, 1000);
            std::vector<response> answers;
            for (auto& one : all.rest) {
                answers.push_back(one.read_head());
            }
            all.leader.connection().reset();
            rest.open();
            for (std::size_t i = 0; i < answers.size(); ++i) {
                all.rest[i].read_body(answers[i], body.size() + 1);
                CHECK(answers[i].complete());
                CHECK(answers[i].body == body);
            }
        }
        // Who follows on another thread may have its last byte a moment before all is stored.
        CHECK(eventually([&] { return is_hit(w.get("/a")); }));
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("a fetch that everybody left is given up when much of it is missing") {
        std::atomic<bool> given_up{false};
        world w;
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 16000000\r\n") +
                std::string(1000, 'x'));
            given_up = connection.is_closed_by_proxy();
        });
        {
            auto one = w.proxy.connect(w.request("/a"));
            auto answer = one.read_head();
            one.read_body(answer, 1000);
            one.connection().reset();
        }
        CHECK(eventually([&] { return given_up.load(); }));
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "whole"));
        CHECK(w.get("/a").body == "whole");
    }

    TEST_CASE("a fetch that everybody left goes on when little of it is missing, and is stored") {
        const auto body = patterned(300 * kib);
        world w;
        auto& rest = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK",
                                     "Cache-Control: max-age=60\r\nContent-Length: " +
                                         std::to_string(body.size()) + "\r\n") +
                            body.substr(0, 200 * kib));
            rest.wait();
            connection.send(std::string_view{body}.substr(200 * kib));
        });
        {
            auto one = w.proxy.connect(w.request("/a"));
            auto answer = one.read_head();
            one.read_body(answer, 1000);
            one.connection().reset();
        }
        CHECK(never_within_a_moment([&] { return w.origin.open_connections() == 0; }));
        rest.open();
        response answer;
        CHECK(eventually([&] {
            answer = w.get("/a");
            return is_hit(answer);
        }));
        CHECK(answer.body == body);
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("clients that leave while their origin is dialled leave no connection to it behind") {
        auto settings = storing_settings();
        settings["timeouts"]["origin_connect"] = "5m";
        world w{settings};
        wide_link silent{{.to = w.origin.port()}};
        silent.cut();
        const auto open = [&] {
            const auto all = "/proc/" + std::to_string(w.proxy.pid()) + "/fd";
            return std::distance(std::filesystem::directory_iterator{all}, {});
        };
        const auto before = open();
        constexpr std::ptrdiff_t size = 8;
        std::vector<client> all;
        for (std::ptrdiff_t i = 0; i < size; ++i) {
            all.push_back(w.proxy.connect(absolute_request(
                "GET",
                "http://127.0.0.1:" + std::to_string(silent.port()) + "/" + std::to_string(i))));
        }
        // A connection by which the proxy was found to have started may have ended since.
        REQUIRE(eventually([&] { return open() >= before + 2 * size - 1; }));
        for (auto& one : all) {
            one.connection().reset();
        }
        CHECK(eventually([&] { return open() <= before; }));
    }

}  // TEST_SUITE
