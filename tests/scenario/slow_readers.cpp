// Clients that read slowly and steadily, faster than limits.body_rate: what they have acknowledged
// is their progress, not what the kernel takes for them.

#include "tests/scenario/world.hpp"
#include "tests/support/long_body.hpp"
#include "tests/support/tls_client.hpp"

#include <functional>
#include <memory>
#include <string>
#include <thread>

TEST_SUITE("scenario/slow_readers") {

    using namespace reprise::tests;

    namespace {

    using std::chrono::steady_clock;

    // The kernel takes some megabytes at once, and no more until a third of them has gone: at this
    // pace that takes several times timeouts.client_body.
    constexpr std::size_t a_step = 64 << 10;
    constexpr std::chrono::milliseconds step_time{400};
    const auto slowly = std::chrono::seconds{sanitized ? 14 : 10};

    // Beyond a step, and a machine that holds up the reader for two seconds.
    const char* const a_while = sanitized ? "4s" : "3s";

    // A kernel with more room than this joins what it receives to one piece of half a megabyte,
    // frees none of it before all has been read, and acknowledges nothing for these seconds.
    constexpr int small_room = 64 << 10;

    json with_little_patience(json settings = basic_settings()) {
        settings["timeouts"]["client_body"] = a_while;
        settings["limits"]["body_rate"] = "1KiB";
        return settings;
    }

    void send_all(origin_connection& connection, const long_body& body) {
        connection.send(
            raw_head("200 OK", "Content-Length: " + std::to_string(body.size()) + "\r\n"));
        for (std::uint64_t at = 0; at < body.size();) {
            const auto piece = body.piece(at, mib);
            if (!connection.send(piece, 6 * patience)) {
                return;
            }
            at += piece.size();
        }
    }

    /// `read(most)` at the pace above for a while.
    void read_slowly(const std::function<bool(std::size_t)>& read) {
        const auto until = steady_clock::now() + slowly;
        while (steady_clock::now() < until && read(a_step)) {
            std::this_thread::sleep_for(step_time);
        }
    }

    }  // namespace

    TEST_CASE("a body read slowly and steadily ends whole") {
        const long_body body{16 * mib};
        world w{with_little_patience()};
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            send_all(connection, body);
        });
        client slow{w.proxy.port()};
        slow.connection().shrink_receive_buffer(small_room);
        slow.send(w.request("/a"));
        auto answer = slow.read_head();
        long_body_check check{body};
        read_slowly([&](std::size_t most) {
            slow.read_body(answer, most);
            check.feed(answer.body);
            answer.body.clear();
            return answer.end == ending::none;
        });
        while (answer.end == ending::none) {
            slow.read_body(answer, mib);
            check.feed(answer.body);
            answer.body.clear();
        }
        CHECK(answer.complete());
        CHECK(check.is_whole());
    }

    TEST_CASE("and over TLS, where the outer connection counts") {
        const long_body body{16 * mib};
        const temp_dir files;
        const test_authority authority;
        const auto made = authority.issue("IP:127.0.0.1");
        auto settings = with_little_patience();
        settings["listeners"] = json::array({tls_listener(files, made)});
        world w{settings};
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            send_all(connection, body);
        });
        tls_peer::wishes wanted;
        wanted.trusted = authority.certificate();
        auto plain = stream::connect(w.proxy.port());
        plain.shrink_receive_buffer(small_room);
        auto slow = tls_peer::client(plain.release(), wanted);
        REQUIRE(slow.shake_hands());
        slow.send(w.request("/a"));
        std::string head;
        while (head.find("\r\n\r\n") == std::string::npos) {
            REQUIRE(slow.read_some(head, 1) == tls_end::data);
        }
        CHECK(head.starts_with("HTTP/1.1 200 "));
        long_body_check check{body};
        std::string bytes;
        read_slowly([&](std::size_t most) {
            bool more = true;
            while (more && bytes.size() < most) {
                more = slow.read_some(bytes, most) == tls_end::data;
            }
            check.feed(bytes);
            bytes.clear();
            return more;
        });
        while (check.is_right() && !check.is_whole() && slow.read_some(bytes) == tls_end::data) {
            check.feed(bytes);
            bytes.clear();
        }
        CHECK(check.is_whole());
    }

    TEST_CASE("a tunnel is not quiet while what was sent into it is being read") {
        const long_body body{16 * mib};
        acceptor server;
        auto settings = basic_settings();
        settings["timeouts"]["tunnel_idle"] = a_while;
        settings["access"]["connect_ports"] = json::array({server.port()});
        const proxy_process proxy{settings};
        client slow{proxy.port()};
        slow.connection().shrink_receive_buffer(small_room);
        const auto to = "127.0.0.1:" + std::to_string(server.port());
        slow.send("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n");
        auto far = server.accept(patience);
        REQUIRE(slow.read_head("CONNECT").status == 200);
        std::thread sender{[&] {
            for (std::uint64_t at = 0; at < body.size();) {
                const auto piece = body.piece(at, mib);
                if (!far.send(piece, 6 * patience)) {
                    return;
                }
                at += piece.size();
            }
        }};
        long_body_check check{body};
        const auto read = [&](std::size_t most) {
            std::string bytes;
            const auto end = slow.connection().read_some(bytes, patience, most);
            check.feed(bytes);
            return end == read_end::data;
        };
        read_slowly(read);
        while (check.is_right() && !check.is_whole() && read(mib)) {
        }
        sender.join();
        CHECK(check.is_whole());
    }

    TEST_CASE("a reader below limits.body_rate goes all the same") {
        const long_body body{48 * mib};
        auto settings = with_little_patience();
        settings["limits"]["body_rate"] = "100MiB";
        settings["timeouts"]["client_body"] = "500ms";
        world w{settings};
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            send_all(connection, body);
        });
        client slow{w.proxy.port()};
        slow.connection().shrink_receive_buffer(small_room);
        slow.send(w.request("/a"));
        auto answer = slow.read_head();
        while (answer.end == ending::none) {
            slow.read_body(answer, a_step);
            answer.body.clear();
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
        }
        CHECK(answer.end == ending::cut_short);
        CHECK(answer.was_reset);
    }

}  // TEST_SUITE
