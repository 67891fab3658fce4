// What a second look found in shared fetches and validation: each of these once went wrong. An
// origin that lies about a part, news that crosses a write, a leader that turns back.

#include "tests/scenario/crowd.hpp"
#include "tests/scenario/world.hpp"

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

TEST_SUITE("scenario/review") {

    using namespace reprise::tests;

    namespace {

    constexpr std::size_t long_enough = 16 * mib;  // several windows and what the kernel holds

    /// A fast and a slow client of one fetch; the slow one falls out of it and is resumed with a
    /// 206 that claims the whole rest but brings `surplus` more bytes, or fewer.
    struct resumption {
        world w;
        client slow;
        response answer;

        static json settings() {
            auto out = basic_settings();
            out["admission"] = "never";
            out["collapsing"] = {{"window", "1MiB"}};
            return out;
        }

        explicit resumption(int surplus) : w{settings()}, slow{w.proxy.port()} {
            auto& go = w.origin.make_gate();
            w.origin.on("/next", ok("", "true"));
            w.origin.on("/a", [&, surplus](origin_request& request, origin_connection& to) {
                const auto all = std::to_string(long_enough);
                const auto range = request.get("Range");
                if (range.empty()) {
                    to.send(raw_head("200 OK",
                                     "ETag: \"a\"\r\nCache-Control: max-age=60\r\n"
                                     "Content-Length: " +
                                         all + "\r\n"));
                    go.wait();
                    to.send(std::string(long_enough, 'x'), 6 * patience);
                    return;
                }
                const auto at = std::stoul(range.substr(std::string_view{"bytes="}.size()));
                auto part = std::string(long_enough - at, 'x');
                if (surplus > 0) {
                    part += "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
                } else {
                    part.resize(part.size() - 1000);
                }
                to.send(raw_head("206 Partial Content",
                                 "ETag: \"a\"\r\nContent-Range: bytes " + std::to_string(at) + "-" +
                                     std::to_string(long_enough - 1) + "/" + all +
                                     "\r\nContent-Length: " + std::to_string(part.size()) +
                                     "\r\n"));
                to.send(part, 6 * patience);
            });
            slow.connection().shrink_receive_buffer(64 << 10);
            auto fast = w.proxy.connect(w.request("/a"));
            REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
            answer = (slow.send(w.request("/a")), slow.read_head());
            go.open();
            const auto first = fast.read();
            CHECK(first.complete());
            CHECK(first.body.size() == long_enough);
        }
    };

    }  // namespace

    TEST_CASE("a resumed part that is longer than what is missing ends the connection") {
        resumption r{1};
        r.slow.read_body(r.answer, long_enough, 6 * patience);
        r.slow.send(r.w.request("/next"));
        const auto next = r.slow.read();
        CHECK(next.body != "forged");
        CHECK(next.status == 0);
    }

    TEST_CASE("a resumed part that is shorter than what is missing ends the connection") {
        resumption r{-1};
        r.slow.read_body(r.answer, long_enough, patience);
        CHECK(r.answer.end == ending::cut_short);
    }

    TEST_CASE("all who ask at the moment an object is stored are answered") {
        auto settings = storing_settings();
        settings["threads"] = 4;
        settings["log"]["access"] = "off";
        world w{settings};
        w.origin.otherwise([](origin_request&, origin_connection& to) {
            to.send(ok("Cache-Control: max-age=600\r\n", "hello"));
        });
        std::vector<client> all;
        for (int i = 0; i < 48; ++i) {
            all.push_back(w.proxy.connect());
        }
        // A race: one in some hundred rounds met it.
        const int rounds = sanitized ? 100 : 600;
        bool every = true;
        for (int round = 0; round < rounds && every; ++round) {
            CAPTURE(round);
            const auto wanted = w.request("/" + std::to_string(round));
            for (auto& one : all) {
                one.send(wanted);
            }
            for (auto& one : all) {
                const auto answer = one.read();
                every = every && answer.body == "hello";
            }
            CHECK(every);
        }
    }

    TEST_CASE("a 304 that crosses an unsafe method does not bring back what that invalidated") {
        std::atomic<bool> changed{false};
        world w{storing_settings()};
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
            if (request.method == "POST") {
                changed = true;
                to.send(ok("", ""));
            } else if (request.get("If-None-Match") == "\"old\"") {
                go.wait();
                to.send(
                    raw_head("304 Not Modified", "ETag: \"old\"\r\nCache-Control: max-age=60\r\n"));
            } else {
                to.send(changed ? ok("ETag: \"new\"\r\nCache-Control: max-age=60\r\n", "new")
                                : ok("ETag: \"old\"\r\nCache-Control: max-age=0\r\n", "old"));
            }
        });
        CHECK(w.get("/a").body == "old");
        auto validating = w.proxy.connect(w.request("/a"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 2; }));
        CHECK(w.ask("POST", "/a", "Content-Length: 0\r\n").status == 200);
        go.open();
        CHECK(validating.read().status == 200);
        CHECK(w.get("/a").body == "new");
    }

    TEST_CASE(
        "If-Match and If-Unmodified-Since reach the origin though something stale is stored") {
        for (const std::string condition :
             {"If-Match: \"other\"\r\n",
              "If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT\r\n"}) {
            CAPTURE(condition);
            world w{storing_settings()};
            w.origin.on("/a", [](origin_request& request, origin_connection& to) {
                if (request.has("If-Match") || request.has("If-Unmodified-Since")) {
                    to.send(answer("412 Precondition Failed", "", ""));
                } else if (request.has("If-None-Match")) {
                    to.send(raw_head("304 Not Modified", "ETag: \"a\"\r\n"));
                } else {
                    to.send(ok("ETag: \"a\"\r\nCache-Control: max-age=0\r\n", "hello"));
                }
            });
            CHECK(w.get("/a").status == 200);
            CHECK(w.get("/a", condition).status == 412);
        }
    }

    TEST_CASE("a 304 that makes a response private is one client's own") {
        world w{storing_settings()};
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
            if (!request.has("If-None-Match")) {
                to.send(ok("ETag: \"a\"\r\nCache-Control: max-age=0\r\n", "hello"));
                return;
            }
            go.wait();
            to.send(raw_head("304 Not Modified",
                             "ETag: \"a\"\r\nCache-Control: private\r\nX-For: one\r\n"));
        });
        CHECK(w.get("/a").body == "hello");
        auto leader = w.proxy.connect(w.request("/a"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 2; }));
        auto follower = w.proxy.connect(w.request("/a"));
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), figure_name::joined) == 1; }));
        go.open();
        CHECK(leader.read().get("X-For") == "one");
        CHECK(follower.read().get("X-For") == "");
    }

    TEST_CASE("early hints of a private response are one client's own") {
        world w{storing_settings()};
        auto& go = w.origin.make_gate();
        auto& finish = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
            go.wait();
            to.send("HTTP/1.1 103 Early Hints\r\nLink: </of-" + std::to_string(request.connection) +
                    ">; rel=preload\r\n\r\n");
            finish.wait();
            to.send(ok("Cache-Control: private\r\n", std::to_string(request.connection)));
        });
        auto all = gather(w, 1);
        go.open();
        CHECK(all.leader.read_one_head().status == 103);
        finish.open();
        const auto own = all.rest.front().read();
        for (const auto& one : own.interim) {
            CHECK(one.get("Link") == "</of-" + own.body + ">; rel=preload");
        }
    }

    TEST_CASE("a fetch that was cut off is no sight") {
        world w{basic_settings()};
        w.origin.on("/a", [&](origin_request&, origin_connection& to) {
            if (w.origin.count("/a") == 1) {
                to.send(raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 9\r\n") +
                        "half");
                to.close();
                return;
            }
            to.send(ok("Cache-Control: max-age=60\r\n", "all of it"));
        });
        CHECK_FALSE(w.get("/a").complete());
        CHECK_FALSE(cache_status_of(w.get("/a")).stored);
        CHECK(cache_status_of(w.get("/a")).stored);
    }

    TEST_CASE("what late requests have kept whole is held to the store's promise") {
        auto settings = basic_settings();
        settings["memory"] = {{"size", "64MiB"}};
        settings["collapsing"] = {{"window", "1MiB"}};
        world w{settings};
        constexpr std::size_t each = 16 * mib;
        constexpr int objects = 12;
        auto& go = w.origin.make_gate();
        auto& never = w.origin.make_gate();
        w.origin.otherwise([&](origin_request&, origin_connection& to) {
            to.send(raw_head("200 OK",
                             "Cache-Control: max-age=60\r\nContent-Length: " +
                                 std::to_string(each) + "\r\n") +
                    "x");
            go.wait();
            to.send(std::string(each - 2, 'x'), 6 * patience);
            never.wait(6 * patience);
        });
        const auto before = w.proxy.resident_bytes();
        std::vector<client> all;
        std::vector<response> answers;
        for (int turn = 0; turn < 2; ++turn) {  // the second one comes when the head is known
            for (int i = 0; i < objects; ++i) {
                all.push_back(w.proxy.connect(w.request("/" + std::to_string(i))));
                answers.push_back(all.back().read_head());
            }
        }
        go.open();
        std::vector<std::jthread> readers;
        for (std::size_t i = 0; i < all.size(); ++i) {
            readers.emplace_back([&, i] { all[i].read_body(answers[i], each - 1, 6 * patience); });
        }
        readers.clear();
        CHECK(w.proxy.resident_bytes() < before + (sanitized ? 512 : 80) * mib);
        never.open();
    }
}
