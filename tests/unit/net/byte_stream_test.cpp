#include "tests/unit/net/byte_stream_bench.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;
using namespace std::chrono_literals;

namespace {

/// A client of one handshake that may bring a session, and takes the one that it is given.
struct returning_client {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_SESSION* session = nullptr;

    ~returning_client() {
        SSL_SESSION_free(session);
        SSL_CTX_free(context);
    }
    /// Whether the handshake with it was short.
    bool visits(const tls_identity_ptr& server, int version) {
        tls_bench bench;
        bool resumed = false;
        const int far = bench.far_socket();
        ::fcntl(far, F_SETFL, ::fcntl(far, F_GETFL) & ~O_NONBLOCK);
        bench.on_thread([&] {
            auto* const ssl = SSL_new(context);
            SSL_set_max_proto_version(ssl, version);
            SSL_set_fd(ssl, far);
            if (session != nullptr) {
                SSL_set_session(ssl, session);
            }
            char byte = 0;
            if (SSL_connect(ssl) == 1 && SSL_read(ssl, &byte, 1) == 1) {
                resumed = SSL_session_reused(ssl) == 1;
                SSL_SESSION_free(session);
                session = SSL_get1_session(ssl);
            }
            SSL_shutdown(ssl);
            SSL_free(ssl);
        });
        auto stream = bench.finish(shaken(bench.pair.ours, server, bench.timer));
        error_code error;
        REQUIRE(stream.try_write(asio::buffer("x", 1), error) == 1);
        bench.join_running();
        ::close(far);
        return resumed;
    }
};

}  // namespace

TEST_SUITE_BEGIN("net/byte_stream");

TEST_CASE("what one side says the other hears, plain and encrypted, in pieces of any size") {
    for (const int newest : {0, TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(newest);
        stream_bench bench{newest != 0, newest};
        CHECK(bench.stream->protocol() == (newest != 0 ? "http/1.1" : ""));
        REQUIRE(bench.say("question"));
        CHECK(bench.read(8) == "question");
        const auto large = pattern(20'000);
        const auto larger = pattern(70'000);
        const std::array<asio::const_buffer, 6> parts{asio::buffer(""),
                                                      asio::const_buffer{},
                                                      asio::const_buffer{asio::buffer(large)},
                                                      asio::buffer("ab", 2),
                                                      asio::const_buffer{asio::buffer(larger)},
                                                      asio::buffer("c", 1)};
        const auto all = std::string(1, '\0') + large + "ab" + larger + "c";
        error_code error;
        const auto sent = bench.stream->try_write(parts, error);
        REQUIRE_FALSE(error);
        bool over = false;
        bench.start(
            stream_bench::write_all_of(*bench.stream, std::string_view{all}.substr(sent), over));
        CHECK(bench.hear(all.size()) == all);
        bench.run_until([&] { return over; });
        CHECK(over);
    }
}

TEST_CASE("a look while somebody reads leaves the bytes to the reader") {
    for (const bool tls : {false, true}) {
        CAPTURE(tls);
        stream_bench bench{tls};
        std::string got(4, '\0');
        bool over = false;
        bench.start(stream_bench::read_bytes(*bench.stream, got, over));
        bench.run_for(5ms);  // it waits for the socket
        CHECK(bench.stream->look() == stream_look::nothing);
        REQUIRE(bench.say("body"));
        pollfd there{bench.stream->native_handle(), POLLIN, 0};
        REQUIRE(::poll(&there, 1, 10'000) == 1);
        CHECK(bench.stream->look() == stream_look::bytes);
        bench.run_until([&] { return over; });
        REQUIRE(over);
        CHECK(got == "body");
    }
}

TEST_CASE("a read that is cancelled may end after its stream") {
    for (const bool tls : {false, true}) {
        CAPTURE(tls);
        stream_bench bench{tls};
        auto stream = std::make_unique<byte_stream>(std::move(*bench.stream));
        char block[10];
        error_code how;
        stream->async_read_some(asio::buffer(block),
                                [&](error_code error, std::size_t) { how = error; });
        bench.run_for(5ms);
        error_code ignored;
        stream->cancel(ignored);
        stream.reset();
        bench.run_until([&] { return how.failed(); });
        CHECK(how == asio::error::operation_aborted);
    }
}

TEST_CASE("whoever changes keys without pause has a thread for a moment only") {
    stream_bench bench{true, TLS1_3_VERSION};
    bench.on_thread([&] {
        for (int i = 0; i < 4'000; ++i) {
            CHECK(bench.peer->change_key());
        }
        CHECK(bench.peer->send("data"));
    });
    const auto queued = [&] {
        int bytes = 0;
        REQUIRE(::ioctl(bench.stream->native_handle(), FIONREAD, &bytes) == 0);
        return bytes;
    };
    REQUIRE(tests::eventually([&] { return queued() > 90'000; }));
    char block[100];
    error_code error;
    CHECK(bench.stream->try_read(asio::buffer(block), error) == 0);
    CHECK_FALSE(error);
    CHECK(queued() > 0);
    CHECK(bench.read(4) == "data");
    bench.join_running();
}

TEST_CASE("the pieces of a small answer are one record") {
    stream_bench bench{true, TLS1_3_VERSION};
    const std::array<asio::const_buffer, 3> parts{
        asio::buffer("head", 4), asio::buffer("fields", 6), asio::buffer("body", 4)};
    error_code error;
    CHECK(bench.stream->try_write(parts, error) == 14);
    std::string heard;
    CHECK(bench.peer->read_some(heard) == tls_end::data);  // OpenSSL gives out one record at a time
    CHECK(heard == "headfieldsbody");
}

TEST_CASE("megabytes pass both ways") {
    for (const bool tls : {false, true}) {
        CAPTURE(tls);
        stream_bench bench{tls};
        const auto up = pattern(5u << 20);
        bool over = false;
        bench.start(stream_bench::write_all_of(*bench.stream, up, over));
        CHECK(bench.hear(up.size()) == up);
        bench.run_until([&] { return over; });
        CHECK(over);
        bench.on_thread([&] { bench.say(up); });
        CHECK(bench.read(up.size()) == up);
        bench.join_running();
    }
}

TEST_CASE("a connection that is cut at any byte gives out what was whole, and then is a reset") {
    std::size_t whole = 1;
    for (std::size_t cut = 0; cut <= whole; ++cut) {
        CAPTURE(cut);
        stream_bench bench{true, TLS1_3_VERSION, true};
        REQUIRE(bench.say("first"));
        const auto first = bench.between->take();
        REQUIRE(bench.say("second"));
        const auto second = bench.between->take();
        bench.far_ends();
        const auto all = first + second + bench.between->take();
        whole = all.size();
        bench.between->pass(std::string_view{all}.substr(0, cut));
        bench.between->cut();
        const auto got = bench.read_until_end();
        const bool both = cut >= first.size() + second.size();
        CHECK(got.bytes == (both ? "firstsecond" : cut >= first.size() ? "first" : ""));
        CHECK(got.end == (cut == whole ? error_code{asio::error::eof}
                                       : error_code{asio::error::connection_reset}));
    }
}

TEST_CASE("a peer that sends one byte at a time is heard, by who reads one byte at a time too") {
    for (const std::size_t most : {std::size_t{1}, std::size_t{4096}}) {
        CAPTURE(most);
        stream_bench bench{true, TLS1_2_VERSION, true};
        REQUIRE(bench.say("first"));
        REQUIRE(bench.say("second"));
        bench.far_ends();
        const auto all = bench.between->take();
        read_result got;
        bool over = false;
        bench.start(stream_bench::read_all(*bench.stream, got, over, most));
        for (const char byte : all) {
            bench.between->pass({&byte, 1});
            bench.run_for(0ms);
            bench.run_for(0ms);
        }
        bench.run_until([&] { return over; });
        CHECK(got.bytes == "firstsecond");
        CHECK(got.end == asio::error::eof);
    }
}

TEST_CASE("several records that came at once are given out without waiting for more") {
    stream_bench bench{true, TLS1_3_VERSION, true};
    REQUIRE(bench.say("first"));
    REQUIRE(bench.say("second"));
    bench.between->pass(bench.between->take());
    CHECK(bench.read(3) == "fir");
    bool ready = false;
    bench.start([](byte_stream& of, bool& done) -> awaitable<void> {
        co_await of.wait_readable(use_tuple);
        done = true;
    }(*bench.stream, ready));
    bench.run_until([&] { return ready; });
    CHECK(bench.stream->look() == stream_look::bytes);
    CHECK(bench.read(8) == "stsecond");
    CHECK(bench.stream->look() == stream_look::nothing);
}

TEST_CASE("the end of one direction leaves the other, whoever ends first") {
    for (const bool tls : {false, true}) {
        for (const bool we_first : {false, true}) {
            CAPTURE(tls);
            CAPTURE(we_first);
            stream_bench bench{tls};
            error_code error;
            if (we_first) {
                CHECK(bench.stream->try_end(error));
                REQUIRE(bench.say("thanks"));
                bench.far_ends();
                const auto got = bench.read_until_end();
                CHECK(got.bytes == "thanks");
                CHECK(got.end == asio::error::eof);
                CHECK(bench.far_end() == tls_end::closed);
                continue;
            }
            REQUIRE(bench.say("that is all"));
            bench.far_ends();
            const auto got = bench.read_until_end();
            CHECK(got.bytes == "that is all");
            CHECK(got.end == asio::error::eof);
            CHECK(bench.stream->look() == stream_look::end);
            CHECK(bench.stream->try_write(asio::buffer("answer", 6), error) == 6);
            bench.stream.reset();
            CHECK(bench.hear(6) == "answer");
            CHECK(bench.far_end() == tls_end::closed);
        }
    }
}

TEST_CASE("a reset is one, after the bytes before it") {
    for (const bool tls : {false, true}) {
        CAPTURE(tls);
        stream_bench bench{tls};
        REQUIRE(bench.say("half of it"));
        CHECK(bench.read(4) == "half");
        bench.far_resets();
        if (tls) {
            const auto got = bench.read_until_end();
            CHECK(got.bytes == " of it");
            CHECK(got.end == asio::error::connection_reset);
        } else {
            CHECK(bench.read_until_end().end == asio::error::connection_reset);
        }
        error_code error;
        static_cast<void>(bench.stream->try_write(asio::buffer("x", 1), error));
        CHECK(error);
    }
}

TEST_CASE("what is broken off does not look whole") {
    for (const bool tls : {false, true}) {
        CAPTURE(tls);
        stream_bench bench{tls};
        error_code error;
        REQUIRE(bench.stream->try_write(asio::buffer("half of it", 10), error) == 10);
        CHECK(bench.hear(10) == "half of it");
        bench.stream->reset();
        CHECK_FALSE(bench.stream->is_open());
        CHECK(bench.far_end() == tls_end::truncated);
    }
}

TEST_CASE("who closes in the middle of a write breaks off") {
    stream_bench bench{true};
    const auto text = pattern(16u << 20);
    error_code error;
    std::size_t sent = 0;
    while (bench.held() == 0 && sent + 16'384 < text.size()) {
        sent += bench.stream->try_write(asio::buffer(text.data() + sent, 16'384), error);
        REQUIRE_FALSE(error);
    }
    REQUIRE(bench.held() > 0);
    bench.stream.reset();
    CHECK(bench.far_end() == tls_end::truncated);
}

TEST_CASE("a client that asks to renegotiate is not obeyed, and may go on") {
    stream_bench bench{true, TLS1_2_VERSION};
    bool asked = true;
    bench.on_thread([&] {
        bench.peer->read_for(200ms);
        asked = bench.peer->renegotiate();
    });
    read_result got;
    bool over = false;
    bench.start(stream_bench::read_all(*bench.stream, got, over, 4096));
    bench.join_running();
    CHECK_FALSE(asked);
    CHECK(got.bytes.empty());
    bench.peer.reset();
    bench.run_until([&] { return over; });
    CHECK(over);
}

TEST_CASE("what a reader who is stuck makes us hold is bounded, and comes whole when he goes on") {
    stream_bench bench{true};
    const auto text = pattern(64u << 20);
    std::size_t sent = 0;
    std::uint64_t most = 0;
    for (unsigned in_vain = 0; in_vain < 20;) {
        error_code error;
        const auto count = bench.stream->try_write(
            asio::buffer(text.data() + sent, text.size() - sent), error);
        REQUIRE_FALSE(error);
        sent += count;
        in_vain = count == 0 ? in_vain + 1 : 0;
        most = std::max(most, bench.held());
        bench.run_for(1ms);
    }
    CHECK(sent < (32u << 20));
    CHECK(most <= 80u << 10);
    bool over = false;
    const auto rest = std::string_view{text}.substr(sent, 1u << 20);
    bench.start(stream_bench::write_all_of(*bench.stream, rest, over));
    const auto heard = bench.hear(sent + rest.size());
    bench.run_until([&] { return over; });
    CHECK(over);
    CHECK(heard == std::string_view{text}.substr(0, sent + rest.size()));
    CHECK(bench.held() == 0);
}

TEST_CASE("what one connection could not send no other one does") {
    stream_bench gone{true};
    gone.far_resets();
    const auto text = pattern(50'000);
    error_code error;
    gone.run_until([&] {
        static_cast<void>(gone.stream->try_write(asio::buffer(text), error));
        return error.failed();
    });
    CHECK(error);
    stream_bench next{true};
    CHECK(next.stream->try_write(asio::buffer("hello", 5), error) == 5);
    CHECK(next.hear(5) == "hello");
}

TEST_CASE("closing and cancelling end what waits") {
    for (const bool tls : {false, true}) {
        for (const bool closes : {false, true}) {
            CAPTURE(tls);
            CAPTURE(closes);
            stream_bench bench{tls};
            read_result got;
            bool over = false;
            bench.start(stream_bench::read_all(*bench.stream, got, over, 100));
            bench.run_for(5ms);
            CHECK_FALSE(over);
            error_code ignored;
            if (closes) {
                bench.stream->close(ignored);
            } else {
                bench.stream->cancel(ignored);
            }
            bench.run_until([&] { return over; });
            CHECK(got.end == asio::error::operation_aborted);
        }
    }
}

TEST_CASE("a returning client resumes with another context of the same certificate, and no other") {
    const auto made = known_authority().issue("DNS:a.test");
    const auto one = identity_for(made);
    const auto same = identity_for(made);
    const auto another = identity_for(known_authority().issue("DNS:a.test"));
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        returning_client client;
        CHECK_FALSE(client.visits(one, version));
        CHECK(client.visits(same, version));
        bool elsewhere = false;
        std::thread{[&] { elsewhere = client.visits(one, version); }}.join();
        CHECK(elsewhere);
        CHECK_FALSE(client.visits(another, version));
    }
}

TEST_SUITE_END();
