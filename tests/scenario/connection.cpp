// A client's connection: kept, closed, timed out, limited.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/counted_allocations.hpp"
#include "tests/support/under_test.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <thread>
#include <vector>

TEST_SUITE("scenario/connection") {

    using namespace reprise::tests;
    using namespace std::chrono_literals;

    namespace {

    json with_timeouts(const json& timeouts) {
        auto settings = storing_settings();
        settings["timeouts"].update(timeouts);
        return settings;
    }

    }  // namespace

    TEST_CASE("an HTTP/1.1 connection is kept for the next request") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        auto one = w.proxy.connect();
        for (int i = 0; i < 20; ++i) {
            const auto answer = one.ask(w.request("/a"));
            CHECK(answer.version == "HTTP/1.1");
            CHECK(answer.body == "hello");
        }
    }

    TEST_CASE("Connection: close is granted, for misses and hits, in whatever case") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        for (const std::string option : {"close", "Close", "keep-alive, CLOSE"}) {
            CAPTURE(option);
            auto one = w.proxy.connect();
            const auto answer = one.ask(w.request("/a", "Connection: " + option + "\r\n"));
            CHECK(answer.body == "hello");
            CHECK(lower(answer.get("Connection")) == "close");
            CHECK(one.is_closed_by_proxy());
        }
    }

    TEST_CASE("an HTTP/1.0 connection ends with its answer unless keep-alive was asked for") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        for (int i = 0; i < 2; ++i) {  // a miss and a hit
            auto plain = w.proxy.connect();
            CHECK(plain.ask("GET " + w.origin.url("/a") + " HTTP/1.0\r\n\r\n").body == "hello");
            CHECK(plain.is_closed_by_proxy());

            auto kept = w.proxy.connect();
            for (int j = 0; j < 3; ++j) {
                const auto answer = kept.ask("GET " + w.origin.url("/a") +
                                             " HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
                CHECK(answer.body == "hello");
                CHECK(lower(answer.get("Connection")) == "keep-alive");
            }
        }
    }

    TEST_CASE("an HTTP/1.0 connection whose answer has no known length ends with it") {
        world w{basic_settings()};
        w.origin.on("/a",
                    raw_head("200 OK", "Transfer-Encoding: chunked\r\n") + chunk("hello") +
                        chunk(""));
        auto one = w.proxy.connect();
        const auto answer = one.ask("GET " + w.origin.url("/a") +
                                    " HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        CHECK(answer.body == "hello");
        CHECK(answer.complete());
        CHECK(lower(answer.get("Connection")) != "keep-alive");
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("an idle connection is closed after timeouts.client_idle, without a word") {
        world w{with_timeouts({{"client_idle", "1s"}})};
        w.origin.on("/a", ok("", "hello"));
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/a")).body == "hello");
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("a connection that never says anything is closed") {
        world w{with_timeouts({{"client_idle", "300ms"}, {"client_head", "300ms"}})};
        auto one = w.proxy.connect();
        const auto rest = one.read_to_end();
        CHECK(rest.end == read_end::closed);
    }

    TEST_CASE("a head that drips in is dropped after timeouts.client_head with 408") {
        world w{with_timeouts({{"client_head", "500ms"}, {"client_idle", "30s"}})};
        auto one = w.proxy.connect();
        const auto raw = w.request("/a");
        one.send(raw.substr(0, 20));
        std::string got;
        // One byte now and then must not keep it alive.
        const bool ended = eventually([&] {
            one.send("x");
            return one.connection().read_some(got, std::chrono::milliseconds{50}) !=
                   read_end::timed_out;
        });
        CHECK(ended);
        CHECK(got.rfind("HTTP/1.1 408 ", 0) == 0);
        CHECK(one.read_to_end().end != read_end::timed_out);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("a request body that drips in is dropped after timeouts.client_body") {
        auto settings = with_timeouts({{"client_body", "500ms"}});
        settings["limits"] = {{"body_rate", 1000}};
        std::atomic<bool> whole{false};
        world w{settings};
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            whole = request.body_complete;
            connection.close();
        });
        auto one = w.proxy.connect(
            absolute_request("POST", w.origin.url("/a"), "Content-Length: 100000\r\n"));
        std::string got;
        const bool ended = eventually([&] {
            one.send("x");
            const auto end = one.connection().read_some(got, std::chrono::milliseconds{50});
            return end == read_end::closed || end == read_end::reset;
        });
        CHECK(ended);
        if (!got.empty()) {
            CHECK(got.rfind("HTTP/1.1 408 ", 0) == 0);
        }
        CHECK(eventually([&] { return w.origin.open_connections() == 0; }));
        CHECK_FALSE(whole);
    }

    TEST_CASE("a head over limits.head_size is 431, a URL over limits.url_length is 414") {
        auto settings = storing_settings();
        settings["limits"] = {{"head_size", "8KiB"}, {"fields", 50}, {"url_length", "2KiB"}};
        world w{settings};
        w.origin.otherwise(sends(ok("", "hello")));
        const auto status_of = [&](const std::string& raw) {
            auto one = w.proxy.connect();
            const auto answer = one.ask(raw);
            CHECK(one.is_closed_by_proxy());
            return answer.status;
        };
        std::string many;
        for (int i = 0; i < 60; ++i) {
            many += "X-A: b\r\n";
        }
        CHECK(status_of(w.request("/a", "X-A: " + std::string(9000, 'x') + "\r\n")) == 431);
        CHECK(status_of(w.request("/a", many)) == 431);
        CHECK(status_of(w.request("/" + std::string(3000, 'x'))) == 414);
        CHECK(w.origin.requests().empty());
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/" + std::string(1500, 'x'),
                                "X-A: " + std::string(5000, 'x') + "\r\n"))
                  .body == "hello");
    }

    TEST_CASE("a head without end costs no more than the limit") {
        world w;
        w.proxy.forget_peak();
        const auto before = w.proxy.resident_bytes();
        auto one = w.proxy.connect("GET " + w.origin.url("/"));
        const std::string piece(mib, 'x');
        for (int i = 0; i < 64 && one.connection().send_until_stalled(piece, a_moment) == mib;
             ++i) {
        }
        const auto rest = one.read_to_end();
        CHECK(rest.end != read_end::timed_out);
        if (!rest.bytes.empty()) {
            CHECK(rest.bytes.rfind("HTTP/1.1 4", 0) == 0);
        }
        CHECK(w.proxy.peak_resident_bytes() < before + (sanitized ? 256 : 16) * mib);
    }

    TEST_CASE("an idle connection holds no buffer") {
        constexpr std::size_t many = 450;
        auto settings = storing_settings();
        settings["limits"] = {{"connections_per_client", 2 * many}};
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", std::string(1'000, 'a')));
        std::vector<client> held;
        const auto hold = [&](std::size_t more) {
            for (std::size_t i = 0; i < more; ++i) {
                held.push_back(w.proxy.connect());
                CHECK(held.back().ask(w.request("/a")).status == 200);
            }
        };
        hold(50);
        const auto before = w.proxy.resident_bytes();
        hold(many);
        CHECK(w.proxy.resident_bytes() < before + many * (sanitized ? 64 : 4) * kib);
    }

    TEST_CASE("one client has no more connections than limits.connections_per_client") {
        auto settings = storing_settings();
        settings["limits"] = {{"connections_per_client", 3}};
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        std::vector<client> kept;
        for (int i = 0; i < 3; ++i) {
            kept.push_back(w.proxy.connect());
            CHECK(kept.back().ask(w.request("/a")).body == "hello");
        }
        auto one_more = w.proxy.connect(w.request("/a"));
        const auto refused = one_more.read();
        CHECK((refused.status == 0 || refused.status == 503));
        CHECK(one_more.is_closed_by_proxy());

        client somebody_else{w.proxy.port(), "127.0.0.2"};
        CHECK(somebody_else.ask(w.request("/a")).body == "hello");

        kept.pop_back();
        CHECK(eventually([&] {
            auto again = w.proxy.connect();
            return again.ask(w.request("/a")).status == 200;
        }));
    }

    TEST_CASE("an origin that is silent is 504 after timeouts.origin_head") {
        world w{with_timeouts({{"origin_head", "300ms"}})};
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection&) { go.wait(); });
        const auto answer = w.get("/a");
        CHECK(answer.status == 504);
        CHECK(answer.has("Proxy-Status"));
    }

    TEST_CASE("an origin that stops in a body is given up after timeouts.origin_body") {
        world w{with_timeouts({{"origin_body", "300ms"}})};
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 100\r\n") +
                "part");
            go.wait();
        });
        const auto answer = w.get("/a");
        CHECK(answer.status == 200);
        CHECK(answer.end == ending::cut_short);
        CHECK(answer.body == "part");
    }

    TEST_CASE("an origin that drips is given up when nobody waits for it any more") {
        world w{with_timeouts({{"origin_body", "2500ms"}})};
        std::atomic<int> drips{0};
        std::promise<bool> was_closed;
        auto& go = w.origin.make_gate();
        w.origin.on("/a", ok("Cache-Control: max-age=0\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 4000\r\n") + "p");
            go.wait();
            // All the while a client waits, and a while longer; then it is over before all has come.
            for (int i = 0; i < 400; ++i) {
                connection.send("p");
                ++drips;
                if (connection.is_closed_by_proxy(50ms)) {
                    was_closed.set_value(true);
                    return;
                }
            }
            was_closed.set_value(false);
        });
        {
            auto one = w.proxy.connect(w.request("/a"));
            go.open();
            REQUIRE(eventually([&] { return drips > 60; }));  // more than origin_body
            CHECK_FALSE(one.is_closed_by_proxy(0ms));
        }
        auto closed = was_closed.get_future();
        REQUIRE(closed.wait_for(60s) == std::future_status::ready);
        CHECK(closed.get());
    }

    TEST_CASE("whoever joins what nobody waited for has as long as any client") {
        auto settings = with_timeouts({{"origin_body", "1500ms"}});
        settings["log"]["access"] = "-";
        std::array<std::atomic<bool>, 5> late{};
        world w{settings};
        const std::string head = "Cache-Control: max-age=60\r\nContent-Length: 1000\r\n";
        bool was_in_time = false;
        for (std::size_t i = 0; i < late.size() && !was_in_time; ++i) {
            const auto path = "/a" + std::to_string(i);
            auto& is_late = late[i];
            auto& nobody_waits = w.origin.make_gate();
            auto& may_join = w.origin.make_gate();
            auto& is_sent = w.origin.make_gate();
            w.origin.on(path, [&](origin_request&, origin_connection& connection) {
                connection.send(raw_head("200 OK", head) + "p");
                nobody_waits.wait();
                connection.send("p");  // from here on the proxy knows that
                std::this_thread::sleep_for(1s);
                connection.send("p");
                const auto silent_from = std::chrono::steady_clock::now();
                may_join.open();
                // Behind the end of what was for nobody, before that of this silence.
                std::this_thread::sleep_for(1s);
                connection.send(std::string(997, 'p'));
                is_late = std::chrono::steady_clock::now() - silent_from > 1400ms;
                is_sent.open();
            });
            {
                auto leaving = w.proxy.connect(w.request(path));
                CHECK(leaving.read_head().status == 200);
            }
            CHECK(w.proxy.logged(path).is_object());
            nobody_waits.open();
            may_join.wait();
            const auto answer = w.get(path);
            (void)is_sent.wait();
            was_in_time = w.origin.count(path) == 1 && !is_late;
            if (was_in_time) {
                CHECK(answer.status == 200);
                CHECK(answer.body == std::string(1000, 'p'));
            }
        }
        CHECK(was_in_time);
    }

    TEST_CASE("a client that sends FIN and waits for the origin counts as one that left") {
        // FIN is all that a closing browser sends, so who still waits cannot be told from who does
        // not.
        std::atomic<bool> given_up{false};
        world w;
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            given_up = connection.is_closed_by_proxy();
            connection.send(ok("", "hello"));
        });
        auto one = w.proxy.connect(w.request("/a"));
        one.connection().finish_sending();
        REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
        CHECK(eventually([&] { return given_up.load(); }));
        const auto answer = one.read();
        CHECK(answer.status == 0);
        CHECK(answer.end == ending::cut_short);
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("a client that has its request behind it and sends FIN is answered from the store") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        auto one = w.proxy.connect(w.request("/a"));
        one.connection().finish_sending();
        CHECK(one.read().body == "hello");
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("a client that leaves during a fetch costs nobody else anything") {
        world w{basic_settings()};
        auto& go = w.origin.hold("/slow", ok("", "late"));
        w.origin.on("/a", ok("", "hello"));
        for (int i = 0; i < 10; ++i) {
            auto one = w.proxy.connect(w.request("/slow"));
            CHECK(eventually([&] { return w.origin.connections() >= 1; }));
            one.connection().reset();
        }
        CHECK(w.get("/a").body == "hello");
        go.open();
        CHECK(w.get("/a").body == "hello");
    }

    TEST_CASE("an origin that said close is asked on a new connection, whatever its body was") {
        for (const std::size_t size : {std::size_t{10}, mib}) {
            CAPTURE(size);
            world w{basic_settings()};
            w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
                const auto body = patterned(size);
                connection.send(
                    raw_head("200 OK", "Connection: close\r\nTransfer-Encoding: chunked\r\n"));
                for (std::size_t at = 0; at < size; at += 1000) {
                    connection.send(chunk(std::string_view{body}.substr(at, 1000)));
                }
                connection.send(chunk(""));
            });
            auto one = w.proxy.connect();
            for (unsigned i = 1; i <= 3; ++i) {
                CHECK(one.ask(w.request("/a")).body.size() == size);
                CHECK(w.origin.connections() == i);
            }
        }
    }

    TEST_CASE("a client that left in the middle of a head keeps no place") {
        world w{with_timeouts({{"client_head", "600s"}})};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/a")).body == "hello");
        w.proxy.signal(SIGSTOP);  // so that half a head and the reset come at once
        one.send("GET ");
        one.connection().reset();
        w.proxy.signal(SIGCONT);
        CHECK(eventually([&] { return figure(w.proxy.stats(), "/clients/open") == 0; }));
    }

    TEST_CASE("a time without memory for new connections is no end of accepting them") {
        if (sanitized) {
            return;
        }
        auto settings = storing_settings();
        settings["threads"] = 1;
        counted_allocations memory;
        fake_origin origin;
        origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        proxy_process proxy{settings, memory.environment()};
        const auto ask = absolute_request("GET", origin.url("/a"));
        std::vector<client> held;  // what earlier connections took is not free for later ones
        for (int i = 0; i < 20; ++i) {
            held.push_back(proxy.connect());
            CHECK(held.back().ask(ask).body == "hello");
        }
        memory.workers_lack_memory(true);
        for (int i = 0; i < 20; ++i) {
            CHECK(proxy.connect().is_closed_by_proxy());
        }
        memory.workers_lack_memory(false);
        CHECK(proxy.connect().ask(ask).body == "hello");
        held.clear();
        CHECK(eventually([&] { return figure(proxy.stats(), "/clients/open") == 0; }));
    }

    TEST_CASE("a time without memory for administrators' connections is no end of accepting them") {
        if (sanitized) {
            return;
        }
        counted_allocations memory;
        proxy_process proxy{storing_settings(), memory.environment()};
        const auto ask = "GET /stats HTTP/1.1\r\nHost: localhost:" +
                         std::to_string(proxy.admin_port()) + "\r\n\r\n";
        std::vector<client> held;  // what earlier connections took is not free for later ones
        for (int i = 0; i < 8; ++i) {
            held.emplace_back(proxy.admin_port());
            CHECK(held.back().ask(ask).status == 200);
        }
        memory.admin_lacks_memory(true);
        for (int i = 0; i < 4; ++i) {
            CHECK(client{proxy.admin_port()}.is_closed_by_proxy());
        }
        memory.admin_lacks_memory(false);
        CHECK(proxy.stats().contains("uptime_seconds"));
    }

}  // TEST_SUITE
