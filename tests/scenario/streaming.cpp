// Bodies of any length with bounded memory: nothing is held that the other side has not asked for.

#include "tests/scenario/world.hpp"
#include "tests/support/long_body.hpp"

#include <atomic>
#include <thread>

TEST_SUITE("scenario/streaming") {

    using namespace reprise::tests;

    namespace {

    constexpr std::uint64_t gib = std::uint64_t{1} << 30;

    // Shadow memory and quarantines are no growth of ours: there only a gross leak would show.
    const std::size_t slack = sanitized ? 512 * mib : 0;

    void send_with_length(origin_connection& connection, const long_body& body) {
        connection.send(raw_head("200 OK",
                                 "Cache-Control: max-age=60\r\nContent-Length: " +
                                     std::to_string(body.size()) + "\r\n"));
        for (std::uint64_t at = 0; at < body.size();) {
            const auto piece = body.piece(at, mib);
            if (!connection.send(piece)) {
                return;
            }
            at += piece.size();
        }
    }

    void send_in_chunks(origin_connection& connection, const long_body& body) {
        connection.send(
            raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n"));
        for (std::uint64_t at = 0; at < body.size();) {
            const auto piece = body.piece(at, 100'000);
            if (!connection.send(chunk(piece))) {
                return;
            }
            at += piece.size();
        }
        connection.send(chunk(""));
    }

    }  // namespace

    TEST_CASE("a body of two GiB passes with less than 64 MiB of growth") {
        const long_body body{sanitized ? gib / 4 : 2 * gib};
        world w;
        w.origin.on("/warm", ok("", "warm"));
        w.origin.on("/length", [&](origin_request&, origin_connection& connection) {
            send_with_length(connection, body);
        });
        w.origin.on("/chunked", [&](origin_request&, origin_connection& connection) {
            send_in_chunks(connection, body);
        });
        CHECK(w.get("/warm").body == "warm");
        for (const std::string path : {"/length", "/chunked"}) {
            CAPTURE(path);
            w.proxy.forget_peak();
            const auto before = w.proxy.resident_bytes();
            auto one = w.proxy.connect(w.request(path));
            long_body_check check{body};
            const auto answer = one.read("GET", [&](std::string_view bytes) { check.feed(bytes); });
            CHECK(answer.complete());
            CHECK(check.is_whole());
            CHECK(w.proxy.peak_resident_bytes() < before + 64 * mib + slack);
            if (answer.framed_by == framing::length) {  // else nobody knew at the head
                CHECK_FALSE(cache_status_of(answer).stored);
            }
        }
    }

    TEST_CASE("an upload of any length passes with little memory") {
        const long_body body{sanitized ? gib / 8 : gib};
        std::atomic<bool> right{false};
        world w;
        w.origin.on_head("/up", [&](origin_request& request, origin_connection& connection) {
            long_body_check check{body};
            auto reader = body_of_request(request.fields);
            std::string wire;
            std::string bytes;
            while (!reader.is_complete() && connection.read_some(wire) == read_end::data) {
                reader.feed(wire, bytes);
                check.feed(bytes);
                bytes.clear();
            }
            right = check.is_whole() && reader.is_complete();
            connection.send(ok("", "done"));
            connection.close();
        });
        for (const bool chunked : {false, true}) {
            CAPTURE(chunked);
            right = false;
            w.proxy.forget_peak();
            const auto before = w.proxy.resident_bytes();
            auto one = w.proxy.connect(absolute_request(
                "PUT",
                w.origin.url("/up"),
                chunked ? "Transfer-Encoding: chunked\r\n"
                        : "Content-Length: " + std::to_string(body.size()) + "\r\n"));
            for (std::uint64_t at = 0; at < body.size();) {
                const auto piece = body.piece(at, mib);
                REQUIRE(one.send(chunked ? chunk(piece) : std::string{piece}));
                at += piece.size();
            }
            if (chunked) {
                one.send(chunk(""));
            }
            CHECK(one.read("PUT").body == "done");
            CHECK(right);
            CHECK(w.proxy.peak_resident_bytes() < before + 64 * mib + slack);
        }
    }

    TEST_CASE("an origin is read no faster than its client reads") {
        const long_body body{96 * mib};
        std::atomic<std::size_t> sent_before_stall{0};
        world w;
        auto& stalled = w.origin.make_gate();
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", "Content-Length: " + std::to_string(body.size()) + "\r\n"));
            std::uint64_t at = 0;
            while (at < body.size()) {
                const auto piece = body.piece(at, mib);
                const auto sent = connection.send_until_stalled(piece, 2 * a_moment);
                at += sent;
                if (sent < piece.size()) {
                    break;
                }
            }
            sent_before_stall = static_cast<std::size_t>(at);
            stalled.open();
            go.wait();
            while (at < body.size()) {
                const auto piece = body.piece(at, mib);
                if (!connection.send(piece)) {
                    return;
                }
                at += piece.size();
            }
        });
        w.proxy.forget_peak();
        const auto before = w.proxy.resident_bytes();
        auto one = w.proxy.connect();
        one.connection().shrink_receive_buffer(64 << 10);
        one.send(w.request("/a"));
        REQUIRE(stalled.wait(3 * patience));
        CHECK(sent_before_stall < 48 * mib);  // the kernel's buffers on both ways count in
        CHECK(w.proxy.peak_resident_bytes() < before + 32 * mib + slack);
        go.open();
        long_body_check check{body};
        CHECK(one.read("GET", [&](std::string_view bytes) { check.feed(bytes); }).complete());
        CHECK(check.is_whole());
    }

    TEST_CASE("a client is read no faster than its origin reads") {
        const long_body body{96 * mib};
        world w;
        auto& go = w.origin.make_gate();
        w.origin.on_head("/a", [&](origin_request& request, origin_connection& connection) {
            go.wait(3 * patience);
            connection.read_body(request);
            connection.send(ok("", request.body_complete ? "whole" : "cut"));
        });
        w.proxy.forget_peak();
        const auto before = w.proxy.resident_bytes();
        auto one = w.proxy.connect(absolute_request(
            "POST", w.origin.url("/a"), "Content-Length: " + std::to_string(body.size()) + "\r\n"));
        std::uint64_t at = 0;
        while (at < body.size()) {
            const auto piece = body.piece(at, mib);
            const auto sent = one.connection().send_until_stalled(piece, 2 * a_moment);
            at += sent;
            if (sent < piece.size()) {
                break;
            }
        }
        CHECK(at < 48 * mib);
        CHECK(w.proxy.peak_resident_bytes() < before + 32 * mib + slack);
        go.open();
        while (at < body.size()) {
            const auto piece = body.piece(at, mib);
            REQUIRE(one.send(piece));
            at += piece.size();
        }
        CHECK(one.read("POST").body == "whole");
    }

    TEST_CASE("a client that stops reading is dropped after timeouts.client_body") {
        auto settings = storing_settings();
        settings["timeouts"]["client_body"] = "1s";
        const long_body body{96 * mib};
        std::atomic<bool> ended{false};
        world w{settings};
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            send_with_length(connection, body);
            ended = true;
        });
        auto one = w.proxy.connect();
        one.connection().shrink_receive_buffer(64 << 10);
        one.send(w.request("/a"));
        REQUIRE(one.read_head().status == 200);
        CHECK(eventually([&] { return ended.load(); }));
        const auto rest = one.read_to_end();
        CHECK(rest.end != read_end::timed_out);
        CHECK(rest.bytes.size() < body.size());
    }

}  // TEST_SUITE
