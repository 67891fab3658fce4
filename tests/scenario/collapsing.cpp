// Concurrent misses of one key are one fetch, shared between threads, and it streams to all.

#include "tests/scenario/crowd.hpp"
#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

TEST_SUITE("scenario/collapsing") {

    using namespace reprise::tests;

    namespace {

    // Enough that SO_REUSEPORT gives both threads some: all on one has a chance of 2 to the -11.
    constexpr std::size_t followers = 12;

    /// Lets its visitors through when `expected` of them have come; says whether they all came.
    class meeting {
    public:
        explicit meeting(std::size_t expected) : left_{expected} {}
        bool arrive() {
            std::unique_lock lock{mutex_};
            if (left_ > 0 && --left_ == 0) {
                all_.notify_all();
            }
            return all_.wait_for(lock, patience, [&] { return left_ == 0; });
        }

    private:
        std::mutex mutex_;
        std::condition_variable all_;
        std::size_t left_;
    };

    }  // namespace

    TEST_CASE("concurrent misses make one fetch, and all have its answer") {
        for (const bool stored : {false, true}) {
            CAPTURE(stored);
            const auto body = patterned(500 * kib);
            world w{stored ? storing_settings() : basic_settings()};
            auto& go = w.origin.hold("/a", ok("Cache-Control: max-age=60\r\n", body));
            auto all = gather(w, followers);
            go.open();
            const auto first = all.leader.read();
            CHECK(first.body == body);
            CHECK(first.complete());
            for (auto& one : all.rest) {
                const auto answer = one.read();
                CHECK(answer.status == 200);
                CHECK(answer.body == body);
                CHECK(answer.complete());
                CHECK(cache_status_of(answer).collapsed);
            }
            CHECK(w.origin.count("/a") == 1);
        }
    }

    TEST_CASE("followers have their first bytes before the origin has sent its last") {
        world w{basic_settings()};
        auto& head = w.origin.make_gate();
        auto& rest = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            head.wait();
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
                chunk("first "));
            rest.wait();
            connection.send(chunk("last") + chunk(""));
        });
        auto all = gather(w, followers);
        head.open();
        std::vector<response> answers;
        for (auto& one : all.rest) {
            answers.push_back(one.read_head());
            one.read_body(answers.back(), 6);
            CHECK(answers.back().body == "first ");
        }
        rest.open();
        for (std::size_t i = 0; i < answers.size(); ++i) {
            all.rest[i].read_body(answers[i], 11);
            CHECK(answers[i].body == "first last");
            CHECK(answers[i].complete());
        }
        CHECK(all.leader.read().body == "first last");
    }

    TEST_CASE("who joins in the middle of the body has it from its start") {
        world w;
        auto& rest = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 10\r\n") +
                "first");
            rest.wait();
            connection.send(" last");
        });
        auto leader = w.proxy.connect(w.request("/a"));
        auto first = leader.read_head();
        leader.read_body(first, 5);
        REQUIRE(first.body == "first");
        auto late = w.proxy.connect(w.request("/a"));
        auto second = late.read_head();
        late.read_body(second, 5);
        CHECK(second.body == "first");
        rest.open();
        late.read_body(second, 11);
        CHECK(second.body == "first last");
        CHECK(second.complete());
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("an HTTP/1.0 follower of a chunked fetch gets no chunks") {
        world w;
        auto& go = w.origin.hold(
            "/a",
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n") +
                chunk("hello ") + chunk("world") + chunk(""));
        auto all = gather(w, 1);
        auto old = w.proxy.connect("GET " + w.origin.url("/a") + " HTTP/1.0\r\n\r\n");
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), figure_name::joined) == 2; }));
        go.open();
        const auto answer = old.read();
        CHECK_FALSE(answer.has("Transfer-Encoding"));
        CHECK(answer.body == "hello world");
        CHECK(answer.complete());
        CHECK(all.leader.read().body == "hello world");
        CHECK(all.rest[0].read().body == "hello world");
    }

    TEST_CASE("followers of what is not theirs are released to fetches of their own, all at once") {
        struct row {
            std::string what;
            const char* fields;
        };
        const row rows[] = {
            {"no-store", "Cache-Control: no-store\r\n"},
            {"private", "Cache-Control: private, max-age=60\r\n"},
            {"no-cache", "Cache-Control: no-cache, max-age=60\r\n"},
            {"Vary mismatch", "Cache-Control: max-age=60\r\nVary: X-Id\r\n"},
            {"Vary: *", "Cache-Control: max-age=60\r\nVary: *\r\n"},
        };
        for (const auto& row : rows) {
            CAPTURE(row.what);
            meeting at_origin{followers};
            std::atomic<int> alone{0};
            world w;
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                if (request.get("X-Id") == "0") {
                    go.wait();
                } else if (!at_origin.arrive()) {
                    ++alone;  // they came one after the other
                }
                connection.send(ok(row.fields, request.get("X-Id")));
            });
            auto all = gather(
                w, followers, [](std::size_t i) { return "X-Id: " + std::to_string(i) + "\r\n"; });
            go.open();
            CHECK(all.leader.read().body == "0");
            for (std::size_t i = 0; i < followers; ++i) {
                CHECK(all.rest[i].read().body == std::to_string(i + 1));
            }
            CHECK(alone == 0);
            CHECK(w.origin.count("/a") == followers + 1);
        }
    }

    TEST_CASE("followers are released at the head, before the leader's body is there") {
        world w;
        auto& body = w.origin.make_gate();
        auto& head = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            if (request.get("X-Id") == "0") {
                head.wait();
                connection.send(
                    raw_head("200 OK", "Cache-Control: private\r\nContent-Length: 1\r\n"));
                body.wait();
                connection.send("0");
            } else {
                connection.send(ok("Cache-Control: private\r\n", request.get("X-Id")));
            }
        });
        auto all = gather(
            w, 3, [](std::size_t i) { return "X-Id: " + std::to_string(i) + "\r\n"; });
        head.open();
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(all.rest[i].read().body == std::to_string(i + 1));
        }
        body.open();
        CHECK(all.leader.read().body == "0");
    }

    TEST_CASE("followers whose Vary fields match stay with the fetch") {
        world w;
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            if (request.number == 0 && request.connection == 0) {
                go.wait();
            }
            connection.send(ok("Cache-Control: max-age=60\r\nVary: Accept-Language\r\n",
                               request.get("Accept-Language")));
        });
        auto all = gather(w, 8, [](std::size_t i) {
            return i % 2 == 0 ? std::string{"Accept-Language: de\r\n"}
                              : std::string{"Accept-Language: fr\r\n"};
        });
        go.open();
        CHECK(all.leader.read().body == "de");
        for (std::size_t i = 0; i < all.rest.size(); ++i) {
            CHECK(all.rest[i].read().body == (i % 2 == 0 ? "fr" : "de"));
        }
        CHECK(w.origin.count("/a") <= 1 + 4);
        CHECK(w.origin.count("/a") >= 2);
    }

    TEST_CASE("requests with Authorization or no-cache neither lead nor follow") {
        meeting at_origin{7};
        std::atomic<int> alone{0};
        world w;
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            if (!at_origin.arrive()) {
                ++alone;
            }
            connection.send(ok("Cache-Control: max-age=60\r\n", request.get("X-Id")));
        });
        std::vector<client> all;
        const std::string kinds[] = {"Authorization: Basic eDp5\r\n",
                                     "Cache-Control: no-cache\r\n"};
        for (std::size_t i = 0; i < 7; ++i) {
            all.push_back(w.proxy.connect());
            // The last one may be led by nobody and is a leader itself.
            all.back().send(w.request("/a",
                                      (i < 6 ? kinds[i % 2] : std::string{}) +
                                          "X-Id: " + std::to_string(i) + "\r\n"));
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            CHECK(all[i].read().body == std::to_string(i));
        }
        CHECK(alone == 0);
    }

    TEST_CASE("who comes after an unadmitted fetch let go of its start begins an admitted one") {
        auto settings = basic_settings();
        settings["collapsing"] = {{"window", "1MiB"}};
        const auto body = patterned(12 * mib);
        world w{settings};
        auto& rest = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK",
                                     "Cache-Control: max-age=60\r\nContent-Length: " +
                                         std::to_string(body.size()) + "\r\n") +
                            body.substr(0, 8 * mib));
            rest.wait();
            connection.send(std::string_view{body}.substr(8 * mib));
        });
        auto one = w.proxy.connect(w.request("/a"));
        auto first = one.read_head();
        one.read_body(first, 8 * mib);
        REQUIRE(first.body.size() == 8 * mib);

        auto two = w.proxy.connect(w.request("/a"));
        auto second = two.read_head();
        two.read_body(second, 8 * mib);
        CHECK(w.origin.count("/a") == 2);

        auto three = w.proxy.connect(w.request("/a"));
        auto third = three.read_head();
        three.read_body(third, 8 * mib);
        CHECK(third.body.size() == 8 * mib);
        CHECK(w.origin.count("/a") == 2);

        rest.open();
        one.read_body(first, body.size() + 1);
        two.read_body(second, body.size() + 1);
        three.read_body(third, body.size() + 1);
        for (const auto* answer : {&first, &second, &third}) {
            CHECK(answer->complete());
            CHECK(answer->body == body);
        }
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("followers of a validation share its result") {
        std::atomic<int> asked{0};
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=0\r\nETag: \"v1\"\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            ++asked;
            go.wait();
            CHECK(request.get("If-None-Match") == "\"v1\"");
            connection.send(
                raw_head("304 Not Modified", "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"));
        });
        std::vector<client> all;
        for (int i = 0; i < 6; ++i) {
            all.push_back(w.proxy.connect(w.request("/a")));
        }
        REQUIRE(eventually([&] { return asked > 0; }));
        CHECK(never_within_a_moment([&] { return asked == 6; }));
        go.open();
        for (auto& one : all) {
            CHECK(one.read().body == "hello");
        }
    }

    // Whoever reloads shares what was asked for within a second of its own request. Where a machine takes
    // longer to gather a crowd, it is gathered once more. With a sanitizer it may always take longer: what
    // is not seen there the plain build shows.
    template <class Play>
    void gathered_in_time(const Play& play) {
        const int most = sanitized ? 3 : 10;
        int turn = 0;
        while (turn < most && !play()) {
            ++turn;
        }
        CHECK((turn < most || sanitized));
    }
    constexpr std::chrono::milliseconds in_time{800};

    TEST_CASE("a follower that reloads shares a 304 of the origin's, but none with an Age") {
        const std::string fields = "Cache-Control: max-age=600\r\nETag: \"v1\"\r\n";
        for (const std::string age : {"", "Age: 50\r\n"}) {
            CAPTURE(age);
            gathered_in_time([&] {
                world w;
                w.origin.on("/a", ok("Cache-Control: max-age=0\r\nETag: \"v1\"\r\n", "hello"));
                CHECK(w.get("/a").status == 200);
                auto& go = w.origin.make_gate();
                w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                    go.wait();
                    // Longer than a second, by which it is older than that: but the follower waits as long.
                    if (connection.pause(std::chrono::milliseconds{1500})) {
                        connection.send(request.has("If-None-Match")
                                            ? raw_head("304 Not Modified", fields + age)
                                            : ok(fields, "hello"));
                    }
                });
                const auto from = std::chrono::steady_clock::now();
                auto all = gather(w, 1, [](std::size_t i) {
                    return std::string{i == 0 ? "" : "Cache-Control: max-age=0\r\n"};
                });
                const bool is_in_time = std::chrono::steady_clock::now() - from < in_time;
                go.open();
                CHECK(all.leader.read().body == "hello");
                CHECK(all.rest[0].read().body == "hello");
                CHECK((w.origin.count("/a") == (age.empty() ? 2 : 3) || !is_in_time));
                return is_in_time;
            });
        }
    }

    TEST_CASE(
        "those who reload at once are one request, and one more where another cache was asked") {
        struct row {
            bool stored;
            std::string leader, age;
            std::size_t asked;
        };
        const std::string reload = "Cache-Control: max-age=0\r\n";
        const std::string fields = "Cache-Control: max-age=600\r\nETag: \"v1\"\r\n";
        for (const auto& row : {row{false, "", "", 1},
                                row{false, reload, "Age: 50\r\n", 1},
                                row{false, "", "Age: 50\r\n", 2},
                                row{true, reload, "Age: 50\r\n", 1},
                                row{true, "", "Age: 50\r\n", 2}}) {
            CAPTURE(row.stored);
            CAPTURE(row.leader);
            CAPTURE(row.age);
            gathered_in_time([&] {
                world w;
                if (row.stored) {
                    w.origin.on("/a", ok("Cache-Control: max-age=0\r\nETag: \"v1\"\r\n", "hello"));
                    CHECK(w.get("/a").status == 200);
                }
                const auto before = w.origin.count("/a");
                std::atomic<std::size_t> asked{0};
                auto& go = w.origin.make_gate();
                auto& second = w.origin.make_gate();
                w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                    (asked++ == 0 ? go : second).wait();
                    const bool holds = request.get("If-None-Match") == "\"v1\"";
                    connection.send(holds ? raw_head("304 Not Modified", fields + row.age)
                                          : ok(fields + row.age, "hello"));
                });
                const auto from = std::chrono::steady_clock::now();
                auto all = gather(
                    w, followers, [&](std::size_t i) { return i == 0 ? row.leader : reload; });
                const bool is_in_time = std::chrono::steady_clock::now() - from < in_time;
                go.open();
                CHECK(all.leader.read().body == "hello");
                if (row.asked == 2) {
                    CHECK(eventually([&] {
                        return figure(w.proxy.stats(), figure_name::joined) ==
                               static_cast<std::int64_t>(2 * followers - 1);
                    }));
                }
                second.open();
                for (auto& one : all.rest) {
                    CHECK(one.read().body == "hello");
                }
                CHECK((w.origin.count("/a") == before + row.asked || !is_in_time));
                return is_in_time;
            });
        }
    }

    TEST_CASE("an error keeps nobody from sharing the next fetch; what is nobody else's does") {
        struct row {
            const char* status;
            const char* fields;
            bool shares;
        };
        const row rows[] = {
            {"503 Service Unavailable", "", true},
            {"503 Service Unavailable", "Cache-Control: no-store\r\n", true},
            {"500 Internal Server Error", "Cache-Control: private\r\n", true},
            {"429 Too Many Requests", "", true},
            {"403 Forbidden", "", true},
            {"403 Forbidden", "Cache-Control: no-store\r\n", false},
            {"200 OK", "Cache-Control: no-store\r\n", false},
        };
        for (const auto& row : rows) {
            CAPTURE(row.status);
            CAPTURE(row.fields);
            world w;
            w.origin.on("/a", answer(row.status, row.fields, "no"));
            CHECK(w.get("/a").body == "no");
            auto& go = w.origin.hold("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
            std::vector<client> all;
            for (std::size_t i = 0; i < followers; ++i) {
                all.push_back(w.proxy.connect(w.request("/a")));
            }
            if (row.shares) {
                CHECK(eventually([&] {
                    return figure(w.proxy.stats(), figure_name::joined) ==
                           static_cast<std::int64_t>(followers - 1);
                }));
            } else {
                CHECK(eventually([&] { return w.origin.count("/a") == 1 + followers; }));
            }
            go.open();
            for (auto& one : all) {
                CHECK(one.read().body == "hello");
            }
            CHECK(w.origin.count("/a") == (row.shares ? 2 : 1 + followers));
        }
    }

    TEST_CASE("who waited for an error shares the next fetch; after a second one each asks") {
        for (const std::size_t errors : {std::size_t{1}, std::size_t{2}}) {
            CAPTURE(errors);
            std::atomic<std::size_t> asked{0};
            world w;
            auto& go = w.origin.make_gate();
            auto& share = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
                const auto number = asked++;
                (number == 0 ? go : share).wait();
                connection.send(number < errors ? answer("503 Service Unavailable", "", "no")
                                                : ok("Cache-Control: max-age=60\r\n", "hello"));
            });
            auto all = gather(w, followers);
            go.open();
            CHECK(all.leader.read().status == 503);
            CHECK(eventually([&] {
                return figure(w.proxy.stats(), figure_name::joined) ==
                       static_cast<std::int64_t>(2 * followers - 1);
            }));
            share.open();
            std::size_t served = 0;
            for (auto& one : all.rest) {
                served += one.read().body == "hello" ? 1 : 0;
            }
            if (errors == 1) {
                CHECK(served == followers);
                CHECK(w.origin.count("/a") == 2);
            } else {
                CHECK(served == followers - 1);  // but for who led the second
            }
        }
    }

}  // TEST_SUITE
