// Clients of one shared fetch of which some are slower than others: whoever shares has all of it,
// or goes on with a fetch of its own, and nobody is cut because somebody else is faster.

#include "tests/scenario/crowd.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/long_body.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

TEST_SUITE("scenario/falling_behind") {

    using namespace reprise::tests;

    namespace {

    json with_window(const std::string& window) {
        auto settings = basic_settings();
        settings["collapsing"] = {{"window", window}};
        settings["limits"]["connections_per_client"] = 1000;
        return settings;
    }

    /// An origin's answer to GETs of `body` under a strong ETag: the first when `go` opens, the
    /// others, and ranges, at once.
    origin_handler ranged(const std::string& body, gate& go) {
        return [&](origin_request& request, origin_connection& connection) {
            if (request.connection == 0) {
                go.wait();
            }
            const std::string fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"
                                       "Accept-Ranges: bytes\r\n";
            const auto part = span_of(request.get("Range"), body.size());
            if (!part || request.get("If-Range") != "\"v1\"") {
                connection.send(raw_head("200 OK", fields + "Transfer-Encoding: chunked\r\n") +
                                chunk(body) + chunk(""));
                return;
            }
            connection.send(answer("206 Partial Content",
                                   fields + content_range(*part, body.size()),
                                   std::string_view{body}.substr(part->first, part->count)));
        };
    }

    /// A client that reads a long body on a thread of its own.
    class reader_thread {
    public:
        reader_thread(client& one, const long_body& body) : check_{body} {
            thread_ = std::thread{[&] {
                answer_ = one.read("GET", [&](std::string_view bytes) {
                    check_.feed(bytes);
                    seen_ = check_.seen();
                });
                over_ = true;
            }};
        }
        reader_thread(const reader_thread&) = delete;
        reader_thread& operator=(const reader_thread&) = delete;
        ~reader_thread() { wait(); }

        /// Until it has all, or has had nothing new for two moments.
        void wait_until_held() const {
            for (auto before = ~std::uint64_t{0}; !over_;) {
                const auto now = seen_.load();
                if (now == before && now > 0) {
                    return;
                }
                before = now;
                (void)never_within_a_moment([&] { return over_.load(); });
                (void)never_within_a_moment([&] { return over_.load(); });
            }
        }
        void wait() {
            if (thread_.joinable()) {
                thread_.join();
            }
        }
        [[nodiscard]] bool is_over() const { return over_; }
        [[nodiscard]] bool is_whole() {
            wait();
            return answer_.complete() && check_.is_whole();
        }

    private:
        long_body_check check_;
        response answer_;
        std::atomic<std::uint64_t> seen_{0};
        std::atomic<bool> over_{false};
        std::thread thread_;
    };

    void send_chunked(origin_connection& connection, const long_body& body, const char* fields) {
        connection.send(raw_head("200 OK",
                                 std::string{"Cache-Control: max-age=60\r\n"
                                             "Transfer-Encoding: chunked\r\n"} +
                                     fields));
        for (std::uint64_t at = 0; at < body.size();) {
            const auto piece = body.piece(at, 256 * kib);
            if (!connection.send(chunk(piece), 6 * patience)) {
                return;
            }
            at += piece.size();
        }
        connection.send(chunk(""));
    }

    /// The origin's /a is `body`, of unknown length and with nothing to go on by, once the gate opens.
    auto& answer_chunked(world& w, const long_body& body) {
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            go.wait();
            send_chunked(connection, body, "");
        });
        return go;
    }

    /// Every response of the crowd, each read by a thread of its own.
    std::vector<response> read_all(crowd& all) {
        std::vector<response> answers(all.rest.size() + 1);
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            threads.emplace_back([&, i] {
                auto& one = i == 0 ? all.leader : all.rest[i - 1];
                answers[i] = one.read();
            });
        }
        threads.clear();
        return answers;
    }

    }  // namespace

    TEST_CASE("who falls out before its head went out has an answer of its own, head and all") {
        const auto body = patterned(mib);
        world w{with_window("64KiB")};
        w.origin.on("/a", ranged(body, w.origin.make_gate()));
        auto all = gather(w, 30);  // of unknown length, so that it is not held whole
        w.origin.open_gates();
        for (const auto& one : read_all(all)) {
            CHECK(one.status == 200);
            CHECK(one.get("ETag") == "\"v1\"");
            CHECK(one.complete());
            CHECK((one.body == body));
        }
    }

    TEST_CASE("at the smallest window nobody is cut from what can not be resumed") {
        const auto body = patterned(mib);
        for (const std::string framing : {"chunked", "length", "close"}) {
            CAPTURE(framing);
            world w{with_window("64KiB")};
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                if (request.connection == 0) {
                    go.wait();
                }
                const std::string fields = "Cache-Control: max-age=60\r\n";
                if (framing == "length") {
                    connection.send(ok(fields, body));
                } else if (framing == "close") {
                    connection.send(raw_head("200 OK", fields) + body);
                    connection.close();
                } else {
                    connection.send(raw_head("200 OK", fields + "Transfer-Encoding: chunked\r\n") +
                                    chunk(body) + chunk(""));
                }
            });
            auto all = gather(w, 20);
            go.open();
            for (const auto& one : read_all(all)) {
                CHECK(one.status == 200);
                CHECK(one.complete());
                CHECK((one.body == body));
            }
        }
    }

    TEST_CASE("a slow client of what can not be resumed is not cut by a faster one") {
        const long_body body{48 * mib};
        for (const bool leader_is_slow : {false, true}) {
            CAPTURE(leader_is_slow);
            world w{with_window("1MiB")};
            auto& go = answer_chunked(w, body);
            auto all = gather(w, 1);
            auto& slow = leader_is_slow ? all.leader : all.rest[0];
            auto& fast = leader_is_slow ? all.rest[0] : all.leader;
            slow.connection().shrink_receive_buffer(64 << 10);
            go.open();
            reader_thread of_fast{fast, body};
            of_fast.wait_until_held();
            CHECK_FALSE(of_fast.is_over());
            reader_thread of_slow{slow, body};
            CHECK(of_slow.is_whole());
            CHECK(of_fast.is_whole());
            CHECK(w.origin.count("/a") == 1);
        }
    }

    TEST_CASE("one that stops reading is waited for no longer than timeouts.client_body") {
        const long_body body{48 * mib};
        auto settings = with_window("1MiB");
        settings["timeouts"]["client_body"] = "4s";  // a busy machine may keep the one that reads
        world w{settings};
        auto& go = answer_chunked(w, body);
        auto all = gather(w, 1);
        all.leader.connection().shrink_receive_buffer(64 << 10);
        go.open();
        reader_thread of_fast{all.rest[0], body};
        CHECK(of_fast.is_whole());
        const auto stalled = all.leader.read();
        CHECK(stalled.end == ending::cut_short);
        CHECK(stalled.was_reset);
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("who is limited to less than limits.body_rate holds up nobody for long") {
        const long_body body{24 * mib};
        auto settings = with_window("1MiB");
        settings["limits"]["client_rate"] = "1KiB";
        settings["access"]["fronts"] = {"127.0.0.2"};  // no one client
        settings["limits"]["body_rate"] = 32 * kib;
        settings["timeouts"]["client_body"] = "4s";  // a busy machine may keep the one that reads
        world w{settings};
        auto& go = answer_chunked(w, body);
        client slow{w.proxy.port()};
        client quick{w.proxy.port(), "127.0.0.2"};
        w.share_a_fetch(slow, quick, "/a");
        go.open();
        long_body_check whole{body};
        const auto got = quick.read("GET", [&](std::string_view bytes) { whole.feed(bytes); });
        CHECK(got.complete());
        CHECK(whole.is_whole());
        CHECK(w.origin.count("/a") == 1);
        const auto cut = slow.read();
        CHECK(cut.end == ending::cut_short);
        CHECK(cut.was_reset);
    }

    TEST_CASE("a client that stalls holds up nobody who can fetch for himself") {
        const long_body body{48 * mib};
        auto settings = with_window("1MiB");
        settings["memory"] = {{"max_object", "32MiB"}};  // what is stored is held whole, for all
        world w{settings};
        SUBCASE("of a length that is known") {
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
                go.wait();
                connection.send(raw_head("200 OK",
                                         "Cache-Control: max-age=60\r\nContent-Length: " +
                                             std::to_string(body.size()) + "\r\n"));
                for (std::uint64_t at = 0; at < body.size();) {
                    const auto piece = body.piece(at, 256 * kib);
                    if (!connection.send(piece, 6 * patience)) {
                        return;
                    }
                    at += piece.size();
                }
            });
            auto all = gather(w, 1);
            all.leader.connection().shrink_receive_buffer(64 << 10);
            go.open();
            reader_thread of_fast{all.rest[0], body};
            CHECK(of_fast.is_whole());
            reader_thread of_slow{all.leader, body};
            CHECK(of_slow.is_whole());
            CHECK(w.origin.count("/a") == 2);
        }
        SUBCASE("having stalled before they came") {
            w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
                send_chunked(connection, body, "");
            });
            auto slow = w.proxy.connect();
            slow.connection().shrink_receive_buffer(64 << 10);
            slow.send(w.request("/a"));
            auto begun = slow.read_head();
            // What the kernel takes for it is soon taken; then its fetch waits.
            CHECK(never_within_a_moment([&] { return w.origin.open_connections() == 0; }));
            client fast{w.proxy.port()};
            fast.send(w.request("/a"));
            reader_thread of_fast{fast, body};
            CHECK(of_fast.is_whole());
            slow.read_body(begun, body.size() + 1);
            CHECK(begun.complete());
            CHECK(begun.body.size() == body.size());
        }
    }

    TEST_CASE("who fell behind goes on under a strong ETag, whether by a range or by all again") {
        const long_body body{48 * mib};
        for (const bool has_ranges : {true, false}) {
            CAPTURE(has_ranges);
            world w{with_window("1MiB")};
            auto& go = w.origin.make_gate();
            w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
                if (request.connection == 0) {
                    go.wait();
                }
                const auto part = span_of(request.get("Range"), body.size());
                if (!has_ranges || !part) {
                    send_chunked(connection, body, "ETag: \"v1\"\r\n");
                    return;
                }
                auto at = part->first;
                connection.send(raw_head("206 Partial Content",
                                         "ETag: \"v1\"\r\n" + content_range(*part, body.size()) +
                                             "Content-Length: " + std::to_string(part->count) +
                                             "\r\n"));
                while (at < body.size()) {
                    const auto piece = body.piece(at, 256 * kib);
                    if (!connection.send(piece, 6 * patience)) {
                        return;
                    }
                    at += piece.size();
                }
            });
            auto all = gather(w, 1);
            all.rest[0].connection().shrink_receive_buffer(64 << 10);
            go.open();
            reader_thread of_fast{all.leader, body};
            CHECK(of_fast.is_whole());
            reader_thread of_slow{all.rest[0], body};
            CHECK(of_slow.is_whole());
            CHECK(w.origin.count("/a") == 2);
        }
    }

}  // TEST_SUITE
