// Bodies of requests: any size and framing, Expect, and origins that answer before they have all.

#include "tests/scenario/world.hpp"

#include <thread>

TEST_SUITE("scenario/request_bodies") {

    using namespace reprise::tests;

    namespace {

    /// Answers with how long a body it got.
    void echo_length(origin_request& request, origin_connection& connection) {
        connection.send(ok("", std::to_string(request.body.size())));
    }

    /// Bytes of a request's body that an origin's handler has read.
    struct taken_bytes {
        std::atomic<std::size_t> count{0};

        void read(origin_connection& connection, std::size_t all) {
            std::string got;
            while (count < all && connection.goes_on()) {
                got.clear();
                const auto end = connection.read_some(got, std::chrono::milliseconds{20});
                if (end == read_end::closed || end == read_end::reset) {
                    return;
                }
                count += got.size();
            }
        }
        [[nodiscard]] bool reach(std::size_t bytes) const {
            return eventually([&] { return count >= bytes; });
        }
    };

    json with_timeouts(const json& timeouts) {
        auto settings = basic_settings();
        settings["timeouts"].update(timeouts);
        return settings;
    }

    std::string with_length(std::size_t bytes) {
        return "Content-Length: " + std::to_string(bytes) + "\r\n";
    }

    }  // namespace

    TEST_CASE("a body with a length arrives with that length") {
        world w;
        w.origin.on("/a", echo_length);
        const auto body = patterned(300 * kib);
        auto one = w.proxy.connect();
        const auto answer = one.ask(absolute_request("POST", w.origin.url("/a"), "", body));
        CHECK(answer.body == std::to_string(body.size()));
        const auto got = w.origin.requests("/a").at(0);
        CHECK(got.body == body);
        CHECK(got.get("Content-Length") == std::to_string(body.size()));
        CHECK_FALSE(got.has("Transfer-Encoding"));
    }

    TEST_CASE("a chunked body arrives whole, its chunk lines canonical, its trailers clean") {
        world w;
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect(
            "POST " + w.origin.url("/a") + " HTTP/1.1\r\nHost: " + w.origin.authority() +
            "\r\nTransfer-Encoding: Chunked\r\nTrailer: X-Sum\r\n\r\n"
            "5;ext=1\r\nhello\r\n00006\r\n world\r\n0\r\nX-Sum: 17\r\nContent-Length: 2\r\n"
            "Host: evil\r\nTransfer-Encoding: x\r\n\r\n");
        CHECK(one.read("POST").body == "11");
        const auto got = w.origin.requests("/a").at(0);
        CHECK(got.body == "hello world");
        CHECK(got.body_complete);
        CHECK(got.chunk_lines_are_canonical);
        CHECK(got.fields.count("Transfer-Encoding") <= 1);
        CHECK_FALSE(got.trailers.has("Content-Length"));
        CHECK_FALSE(got.trailers.has("Host"));
        CHECK_FALSE(got.trailers.has("Transfer-Encoding"));
        CHECK(got.trailers.get("X-Sum") == "17");
    }

    TEST_CASE("every byte of a chunked request may come alone") {
        world w;
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect();
        const auto raw = "POST " + w.origin.url("/a") +
                         " HTTP/1.1\r\nHost: " + w.origin.authority() +
                         "\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("hello") +
                         chunk(" world") + chunk("");
        for (const char c : raw) {
            one.send({&c, 1});
        }
        CHECK(one.read("POST").body == "11");
        CHECK(w.origin.requests("/a").at(0).body == "hello world");
    }

    TEST_CASE("no body, an empty body and a GET with a body keep the next request apart") {
        world w{basic_settings()};
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect();
        CHECK(one.ask(absolute_request("POST", w.origin.url("/a"))).body == "0");
        CHECK(one.ask(absolute_request("POST", w.origin.url("/a"), "Content-Length: 0\r\n")).body ==
              "0");
        CHECK(one.ask(absolute_request("DELETE", w.origin.url("/a"))).body == "0");
        CHECK(one.ask(absolute_request("GET", w.origin.url("/a"), "", "abc")).body == "3");
        CHECK(
            one.ask(absolute_request("PUT", w.origin.url("/a"), "Transfer-Encoding: chunked\r\n") +
                    chunk(""))
                .body == "0");
        CHECK(w.origin.count("/a") == 5);
    }

    TEST_CASE("Expect: 100-continue waits for the origin's word") {
        world w{basic_settings()};
        auto& go = w.origin.make_gate();
        w.origin.on_head("/a", [&](origin_request& request, origin_connection& connection) {
            go.wait();
            connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            connection.read_body(request);
            echo_length(request, connection);
        });
        auto one = w.proxy.connect(absolute_request(
            "POST", w.origin.url("/a"), "Expect: 100-continue\r\nContent-Length: 5\r\n"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
        CHECK(w.origin.requests("/a").at(0).get("Expect") == "100-continue");
        go.open();
        CHECK(one.read_one_head().status == 100);
        one.send("hello");
        const auto answer = one.read("POST");
        CHECK(answer.status == 200);
        CHECK(answer.body == "5");
    }

    TEST_CASE("a refusal in answer to Expect reaches the client, which need not send its body") {
        world w{basic_settings()};
        w.origin.on_head("/a", sends(answer("413 Content Too Large", "", "no")));
        w.origin.on("/b", ok("", "next"));
        auto one = w.proxy.connect(absolute_request(
            "POST", w.origin.url("/a"), "Expect: 100-continue\r\nContent-Length: 5000000\r\n"));
        const auto answer = one.read("POST");
        CHECK(answer.status == 413);
        CHECK(answer.body == "no");
        CHECK(answer.get("Connection") == "close");
        // The client may give up the body only with the connection: nothing that it sends now may
        // be read as a request unless the whole body has come.
        one.send(w.request("/b"));
        CHECK(one.read_to_end(a_moment).bytes.empty());
        CHECK(w.origin.count("/b") == 0);
    }

    TEST_CASE("who has a final answer in place of 100 Continue is told that the connection ends") {
        world w{basic_settings()};
        w.origin.on_head("/soon", sends(ok("", "soon")));
        const auto status_of = [&w](const std::string& path) {
            auto one = w.proxy.connect(absolute_request(
                "POST", w.origin.url(path), "Expect: 100-continue\r\nContent-Length: 5\r\n"));
            const auto got = one.read("POST");
            CHECK(got.get("Connection") == "close");
            CHECK(one.is_closed_by_proxy());
            return got.status;
        };
        CHECK(status_of("/soon") == 200);
        w.origin.stop();
        CHECK(status_of("/gone") == 502);
    }

    TEST_CASE("behind a body that came when it was asked for the connection goes on") {
        world w{basic_settings()};
        w.origin.on_head("/a", [](origin_request& request, origin_connection& connection) {
            connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            connection.read_body(request);
            connection.send(answer("409 Conflict", "", "no"));
        });
        w.origin.on("/b", ok("", "next"));
        auto one = w.proxy.connect(absolute_request(
            "POST", w.origin.url("/a"), "Expect: 100-continue\r\nContent-Length: 5\r\n"));
        CHECK(one.read_one_head().status == 100);
        one.send("hello");
        const auto got = one.read("POST");
        CHECK(got.status == 409);
        CHECK_FALSE(got.has("Connection"));
        CHECK(one.ask(w.request("/b")).body == "next");
    }

    TEST_CASE("a client that does not wait for 100 Continue is served too") {
        world w{basic_settings()};
        w.origin.on("/a", echo_length);
        auto one = w.proxy.connect();
        const auto answer = one.ask(
            absolute_request("POST", w.origin.url("/a"), "Expect: 100-continue\r\n", "hello"));
        CHECK(answer.status == 200);
        CHECK(answer.body == "5");
    }

    TEST_CASE("an unknown expectation is 417") {
        world w{basic_settings()};
        auto one = w.proxy.connect();
        CHECK(one.ask(absolute_request("POST", w.origin.url("/a"), "Expect: a-miracle\r\n", "x"))
                  .status == 417);
        CHECK(w.origin.requests().empty());
    }

    TEST_CASE("an origin that answers before the body is out: its connection is not used again") {
        world w{basic_settings()};
        w.origin.on_head("/early", sends(answer("401 Unauthorized", "", "who?")));
        w.origin.on("/b", ok("", "my own"));
        const auto body = w.request("/b",
                                    "X-Smuggled: yes\r\n");  // would be a request if read as one
        auto one = w.proxy.connect(
            absolute_request("POST",
                             w.origin.url("/early"),
                             "Content-Length: " + std::to_string(body.size() + 10) + "\r\n"));
        one.send(body.substr(0, body.size() / 2));
        const auto early = one.read("POST");
        CHECK(early.status == 401);
        CHECK(early.body == "who?");
        one.send(body.substr(body.size() / 2));
        for (int i = 0; i < 6; ++i) {
            CHECK(w.get("/b").body == "my own");
        }
        for (const auto& request : w.origin.requests()) {
            CHECK_FALSE(request.has("X-Smuggled"));
            if (request.target == "/b" || request.get("Host") == w.origin.authority()) {
                CHECK((request.target == "/early" || request.connection != 0));
            }
        }
    }

    TEST_CASE(
        "after an early reply a client that goes on sending is drained or closed, not stuck") {
        world w{basic_settings()};
        w.origin.on_head("/early", [&](origin_request&, origin_connection& connection) {
            connection.send(answer("403 Forbidden", "", "no"));
            connection.close();
        });
        auto one = w.proxy.connect();
        const std::size_t length = 64 * mib;
        one.send(absolute_request(
            "POST", w.origin.url("/early"), "Content-Length: " + std::to_string(length) + "\r\n"));
        const std::string piece(mib, 'x');
        std::thread sender{[&] {
            for (std::size_t sent = 0; sent < length && one.send(piece); sent += piece.size()) {
            }
        }};
        const auto answer = one.read("POST");
        sender.join();
        CHECK((answer.status == 403 || answer.was_reset));
        w.origin.on("/b", ok("", "next"));
        CHECK(w.get("/b").body == "next");
    }

    TEST_CASE("a request cut short never looks complete to the origin") {
        std::atomic<int> whole{0};
        std::atomic<int> cut{0};
        world w{basic_settings()};
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            ++(request.body_complete ? whole : cut);
            connection.close();
        });
        const std::string heads[] = {"Content-Length: 100\r\n\r\nhello",
                                     "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"};
        int expected = 0;
        for (const auto& head : heads) {
            for (const bool by_reset : {false, true}) {
                CAPTURE(head);
                CAPTURE(by_reset);
                auto one = w.proxy.connect("POST " + w.origin.url("/a") + " HTTP/1.1\r\nHost: " +
                                           w.origin.authority() + "\r\n" + head);
                const auto connections_before = static_cast<unsigned>(expected);
                CHECK(eventually([&] { return w.origin.connections() > connections_before; }));
                if (by_reset) {
                    one.connection().reset();
                } else {
                    one.connection().close();
                }
                ++expected;
                CHECK(eventually([&] { return w.origin.open_connections() == 0; }));
            }
        }
        CHECK(whole == 0);
    }

    TEST_CASE("a POST on a pooled connection that turns out dead is not sent twice") {
        std::atomic<int> posts{0};
        world w{basic_settings()};
        w.origin.on("/warm", ok("", "warm"));
        w.origin.on("/post", [&](origin_request&, origin_connection& connection) {
            ++posts;
            connection.close();
        });
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/warm")).body == "warm");
        const auto answer = one.ask(absolute_request("POST", w.origin.url("/post"), "", "x"));
        CHECK(answer.status == 502);
        CHECK(posts == 1);
    }

    TEST_CASE("a GET on a pooled connection that turns out dead is sent again") {
        world w{basic_settings()};
        w.origin.on("/a", [&](origin_request& request, origin_connection& connection) {
            if (request.number == 0) {
                connection.send(ok("", "hello"));
            } else {
                connection.close();  // as a server does whose idle time has just run out
            }
        });
        auto one = w.proxy.connect();
        for (int i = 0; i < 4; ++i) {
            const auto answer = one.ask(w.request("/a"));
            CHECK(answer.status == 200);
            CHECK(answer.body == "hello");
        }
    }

    TEST_CASE("a steady upload may take longer than timeouts.origin_head, however it is framed") {
        using clock = std::chrono::steady_clock;
        constexpr std::chrono::milliseconds as_long_as{3'000};
        for (const bool chunked : {false, true}) {
            CAPTURE(chunked);
            taken_bytes taken;
            world w{with_timeouts({{"origin_head", "2500ms"}, {"origin_upload", "2500ms"}})};
            const std::string piece(kib, 'x');
            constexpr std::size_t pieces = 64;
            w.origin.on_head("/a", [&](origin_request&, origin_connection& connection) {
                taken.read(connection, chunked ? pieces * chunk(piece).size() : pieces * kib);
                connection.send(ok("", "thanks"));
            });
            auto one = w.proxy.connect(absolute_request("POST",
                                                        w.origin.url("/a"),
                                                        chunked ? "Transfer-Encoding: chunked\r\n"
                                                                : with_length(pieces * kib)));
            const auto began = clock::now();
            for (std::size_t i = 0; i < pieces; ++i) {
                REQUIRE(one.send(chunked ? chunk(piece) : piece));
                REQUIRE(taken.reach((i + 1) * kib));
                std::this_thread::sleep_until(began + as_long_as * (i + 1) / pieces);
            }
            if (chunked) {
                one.send(chunk(""));
            }
            const auto answer = one.read("POST");
            CHECK(answer.status == 200);
            CHECK(answer.body == "thanks");
        }
    }

    TEST_CASE("an origin that takes a body slowly is waited for, and then for its answer") {
        // What is in the kernel's buffers is on its way, too: the origin has not had it.
        acceptor origin;
        const proxy_process proxy{with_timeouts({{"origin_head", "3s"}, {"origin_upload", "3s"}})};
        // More than all buffers on the way: what the origin's own machine holds for it takes it
        // less than half of the time.
        constexpr std::size_t all = 16 * mib;
        gate never;
        std::size_t taken = 0;
        std::thread server{[&] {
            auto connection = origin.accept(patience);
            std::string got;
            const auto began = std::chrono::steady_clock::now();
            while (!got.ends_with("the end")) {
                got.erase(0, got.size() - std::min<std::size_t>(got.size(), 7));
                const auto had = got.size();
                if (connection.read_some(got, patience, 64 * kib) != read_end::data) {
                    return;
                }
                taken += got.size() - had;
                // Twice as long as the origin may be silent, in steps.
                const auto due = began + std::chrono::milliseconds{6'000 * taken / all};
                (void)never.wait(std::chrono::duration_cast<std::chrono::milliseconds>(
                    due - std::chrono::steady_clock::now()));
            }
            connection.send(ok("", "thanks"));
        }};
        const auto answer = [&] {
            auto one = proxy.connect(
                absolute_request("POST",
                                 "http://127.0.0.1:" + std::to_string(origin.port()) + "/",
                                 "Connection: close\r\n" + with_length(all)));
            one.send(std::string(all - 7, 'x') + "the end");
            return one.read("POST");
        }();
        CHECK(answer.status == 200);
        server.join();
        CHECK(taken > all);
    }

    TEST_CASE("an origin that takes nothing of a body is 504 after timeouts.origin_upload") {
        world w{with_timeouts({{"origin_upload", "300ms"}})};
        auto& done = w.origin.make_gate();
        w.origin.on_head("/a", [&](origin_request&, origin_connection&) { done.wait(); });
        auto one = w.proxy.connect();
        const std::size_t length = 64 * mib;
        one.send(absolute_request("POST", w.origin.url("/a"), with_length(length)));
        std::thread sender{[&] {
            const std::string piece(mib, 'x');
            for (std::size_t sent = 0; sent < length && one.send(piece); sent += piece.size()) {
            }
        }};
        const auto head = one.read_head("POST");
        CHECK(head.status == 504);
        CHECK(head.get("Proxy-Status").find("connection_write_timeout") != std::string::npos);
        done.open();
        one.connection().close_both_ways();
        sender.join();
    }

    TEST_CASE("the body is out and the origin silent: 504 after timeouts.origin_head") {
        world w{with_timeouts({{"origin_head", "250ms"}})};
        auto& done = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection&) { done.wait(); });
        auto one = w.proxy.connect();
        const auto answer = one.ask(absolute_request("POST", w.origin.url("/a"), "", "hello"));
        CHECK(answer.status == 504);
        CHECK(answer.get("Proxy-Status").find("connection_read_timeout") != std::string::npos);
        done.open();
    }

    TEST_CASE("102 Processing begins the wait for the answer anew, a bounded number of times") {
        world w{with_timeouts({{"origin_head", "3s"}})};
        auto& never = w.origin.make_gate();
        w.origin.on("/slow", [&](origin_request&, origin_connection& connection) {
            for (int i = 0; i < 5; ++i) {
                (void)never.wait(std::chrono::milliseconds{700});
                connection.send("HTTP/1.1 102 Processing\r\n\r\n");
            }
            connection.send(ok("", "done"));
        });
        w.origin.on("/endless", [&](origin_request&, origin_connection& connection) {
            while (connection.goes_on() && connection.send("HTTP/1.1 102 Processing\r\n\r\n")) {
                (void)never.wait(std::chrono::milliseconds{10});
            }
        });
        auto one = w.proxy.connect();
        const auto slow = one.ask(absolute_request("POST", w.origin.url("/slow"), "", "hello"));
        CHECK(slow.status == 200);
        CHECK(slow.interim.size() == 5);
        CHECK(one.ask(absolute_request("POST", w.origin.url("/endless"), "", "x")).status == 502);
    }

    TEST_CASE("a client that waits for 100 Continue is not late while the origin thinks") {
        world w{with_timeouts({{"client_body", "2500ms"}})};
        auto& never = w.origin.make_gate();
        w.origin.on_head("/a", [&](origin_request& request, origin_connection& connection) {
            (void)never.wait(std::chrono::milliseconds{3'000});
            connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            connection.read_body(request);
            echo_length(request, connection);
        });
        auto one = w.proxy.connect(absolute_request(
            "POST", w.origin.url("/a"), "Expect: 100-continue\r\nContent-Length: 5\r\n"));
        CHECK(one.read_one_head().status == 100);
        one.send("hello");
        const auto answer = one.read("POST");
        CHECK(answer.status == 200);
        CHECK(answer.body == "5");
    }

    TEST_CASE("a client that was told to continue, and does not, is 408") {
        world w{with_timeouts({{"client_body", "200ms"}})};
        w.origin.on_head("/a", [&](origin_request& request, origin_connection& connection) {
            connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            connection.read_body(request);
        });
        auto one = w.proxy.connect(absolute_request(
            "POST", w.origin.url("/a"), "Expect: 100-continue\r\nContent-Length: 5\r\n"));
        CHECK(one.read_one_head().status == 100);
        CHECK(one.read("POST").status == 408);
    }

    TEST_CASE("an origin that accepts early and reads on gets the whole body") {
        for (const bool closes : {false, true}) {
            CAPTURE(closes);
            std::string got;
            std::atomic<bool> whole{false};
            world w{basic_settings()};
            auto& answered = w.origin.make_gate();
            w.origin.on_head("/early", [&](origin_request& request, origin_connection& connection) {
                connection.send(ok(closes ? "Connection: close\r\n" : "", "soon"));
                if (closes) {
                    connection.finish_sending();
                }
                answered.wait();
                connection.read_body(request);
                got = request.body;
                whole = request.body_complete;
                if (closes) {
                    connection.close();
                }
            });
            w.origin.on("/b", ok("", "next"));
            const auto body = patterned(3 * mib);
            auto one = w.proxy.connect(
                absolute_request("POST", w.origin.url("/early"), with_length(body.size())));
            one.send(body.substr(0, 1000));
            const auto early = one.read("POST");
            CHECK(early.status == 200);
            CHECK(early.body == "soon");
            answered.open();
            REQUIRE(one.send(body.substr(1000)));
            CHECK(eventually([&] { return whole.load(); }));
            CHECK(got == body);
            // The client's connection goes on behind the body; the origin's is not trusted again.
            CHECK(one.ask(w.request("/b")).body == "next");
            CHECK(w.origin.requests("/b").at(0).connection != 0);
            // Its line is written when the request is over, not when the answer was.
            const auto line = w.proxy.logged("/early");
            REQUIRE(line.is_object());
            CHECK(line["status"] == 200);
            CHECK(line["bytes_in"].get<std::size_t>() > body.size());
        }
    }

    TEST_CASE(
        "behind an early head the origin's time for its body begins when it has the request's") {
        using clock = std::chrono::steady_clock;
        for (const bool answers : {true, false}) {
            CAPTURE(answers);
            const std::chrono::milliseconds as_long_as{answers ? 6'000 : 2'000};
            taken_bytes taken;
            world w{with_timeouts({{"origin_body", answers ? "5s" : "1s"}})};
            const std::string piece(kib, 'x');
            constexpr std::size_t pieces = 64;
            auto& done = w.origin.make_gate();
            w.origin.on_head("/a", [&](origin_request&, origin_connection& connection) {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                taken.read(connection, pieces * kib);
                if (answers) {
                    connection.send(chunk("thanks") + chunk(""));
                } else {
                    done.wait();
                }
            });
            auto one = w.proxy.connect(
                absolute_request("POST", w.origin.url("/a"), with_length(pieces * kib)));
            const auto began = clock::now();
            for (std::size_t i = 0; i < pieces; ++i) {
                REQUIRE(one.send(piece));
                REQUIRE(taken.reach((i + 1) * kib));
                std::this_thread::sleep_until(began + as_long_as * (i + 1) / pieces);
            }
            const auto answer = one.read("POST");
            CHECK(answer.status == 200);
            CHECK(answer.body == (answers ? "thanks" : ""));
            CHECK(answer.end == (answers ? ending::complete : ending::cut_short));
            done.open();
        }
    }

    TEST_CASE("an early answer that ends with the connection is ended, and the body goes on") {
        // An HTTP/1.0 client sees the end of such an answer by the end alone.
        std::atomic<bool> whole{false};
        world w{basic_settings()};
        w.origin.on_head("/early", [&](origin_request& request, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                            chunk("soon") + chunk(""));
            connection.read_body(request);
            whole = request.body_complete;
        });
        auto one = w.proxy.connect("POST " + w.origin.url("/early") +
                                   " HTTP/1.0\r\nContent-Length: 100000\r\n\r\n");
        one.send(std::string(1000, 'x'));
        const auto early = one.read("POST");
        CHECK(early.complete());
        CHECK(early.body == "soon");
        one.send(std::string(99'000, 'x'));
        CHECK(eventually([&] { return whole.load(); }));
    }

    TEST_CASE("a client that reads nothing until all is sent has its early answer") {
        world w{with_timeouts({{"client_body", "3s"}})};
        taken_bytes taken;
        constexpr std::size_t length = 40 * mib;
        const auto large = patterned(20 * mib);
        w.origin.on_head("/early", [&](origin_request&, origin_connection& connection) {
            std::thread reads{[&] { taken.read(connection, length); }};
            connection.send(ok("", large));
            reads.join();
        });
        auto one = w.proxy.connect(
            absolute_request("POST", w.origin.url("/early"), with_length(length)));
        using clock = std::chrono::steady_clock;
        const auto began = clock::now();
        const std::string piece(mib, 'x');
        for (std::size_t sent = 0; sent < length; sent += piece.size()) {
            REQUIRE(one.send(piece));
            std::this_thread::sleep_until(began + std::chrono::milliseconds{100} * (sent / mib));
        }
        const auto early = one.read("POST");
        CHECK(early.status == 200);
        CHECK(early.body == large);
    }

    TEST_CASE("behind an early answer, who stops taking or sending ends the upload") {
        for (const bool origin_stalls : {true, false}) {
            CAPTURE(origin_stalls);
            // Its client sends nothing before it has the answer.
            world w{with_timeouts(origin_stalls ? json{{"origin_upload", "300ms"}}
                                                : json{{"client_body", "3s"}})};
            auto& done = w.origin.make_gate();
            w.origin.on_head("/early", [&](origin_request& request, origin_connection& connection) {
                connection.send(ok("", "soon"));
                if (origin_stalls) {
                    done.wait();
                } else {
                    connection.read_body(request);
                }
                connection.close();
            });
            auto one = w.proxy.connect();
            const std::size_t length = 64 * mib;
            one.send(absolute_request("POST", w.origin.url("/early"), with_length(length)));
            CHECK(one.read("POST").body == "soon");
            if (origin_stalls) {
                const std::string piece(mib, 'x');
                for (std::size_t sent = 0; sent < length && one.send(piece); sent += piece.size()) {
                }
            }
            CHECK(one.is_closed_by_proxy());
            done.open();
            CHECK(eventually([&] { return w.origin.open_connections() == 0; }));
        }
    }

}  // TEST_SUITE
