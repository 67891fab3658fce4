#include "proxy/net/client_hello.hpp"
#include "proxy/net/tls.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <openssl/ssl.h>
#include <sys/socket.h>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;
using namespace std::chrono_literals;
using tests::tls_end;
using tests::tls_peer;

namespace {

/// A listener's side that is past the handshake; the far side is `peer`, and its thread is free.
struct accepted_bench : tls_bench {
    explicit accepted_bench(int newest = 0)
        : peer{tls_peer::client(far_socket(),
                                {.trusted = known_authority().certificate(),
                                 .host = "a.test",
                                 .alpn = "\x08http/1.1",
                                 .newest = newest})} {
        bool shook = false;
        on_thread([&] { shook = peer.shake_hands(); });
        auto made = accepted();
        other.join();
        REQUIRE(shook);
        REQUIRE(made.has_value());
        stream.emplace(std::move(*made));
    }
    /// Runs the loop while the far side does this.
    void far(std::function<void()> does) {
        on_thread(std::move(does));
        join_running();
    }
    void send(std::string text) {
        const auto error = finish(write_text(*stream, std::move(text)));
        REQUIRE_FALSE(error);
    }
    tls_peer peer;
    std::optional<byte_stream> stream;
};

awaitable<std::string> read_one(tcp_socket& socket) {
    char byte = 0;
    const auto [error, count] = co_await socket.async_read_some(asio::buffer(&byte, 1), use_tuple);
    co_return std::string(count, byte);
}

}  // namespace

TEST_SUITE_BEGIN("net/tls");

TEST_CASE("what one side says the other hears, in TLS 1.2 and in 1.3") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        accepted_bench bench{version};
        CHECK(bench.peer.chosen_protocol() == "http/1.1");
        REQUIRE(bench.peer.send("question"));
        CHECK(bench.finish(read_exactly(*bench.stream, 8)) == "question");
        bench.send("answer");
        std::string heard;
        bench.far([&] { heard = bench.peer.read(6); });
        CHECK(heard == "answer");
    }
}

TEST_CASE("a hello that was read to look at it is answered as if it had not been") {
    tls_bench bench;
    auto peer = tls_peer::client(
        bench.far_socket(),
        {.trusted = known_authority().certificate(), .host = "a.test", .alpn = "\x08http/1.1"});
    bool shook = false;
    std::string heard;
    bench.on_thread([&] {
        shook = peer.shake_hands() && peer.send("question");
        heard = peer.read(6);
    });
    std::string first;
    client_hello_reader reader;
    while (reader.read(first) == client_hello_reader::state::more) {
        const auto byte = bench.finish(read_one(bench.pair.ours));
        REQUIRE(byte.size() == 1);
        first += byte;
    }
    CHECK(reader.hello().host == "a.test");
    auto made = bench.finish(accept_tls(std::move(bench.pair.ours),
                                        identity_for(known_authority().issue("DNS:a.test")),
                                        bench.timer,
                                        steady_now() + test_patience,
                                        first));
    REQUIRE(made.has_value());
    CHECK(made->protocol() == "http/1.1");
    CHECK(bench.finish(read_exactly(*made, 8)) == "question");
    CHECK_FALSE(bench.finish(write_text(*made, "answer")));
    bench.join_running();
    CHECK(shook);
    CHECK(heard == "answer");
}

TEST_CASE("what was read before and is no TLS ends the handshake") {
    tls_bench bench;
    const auto made = bench.finish(accept_tls(std::move(bench.pair.ours),
                                              identity_for(known_authority().issue("DNS:a.test")),
                                              bench.timer,
                                              steady_now() + test_patience,
                                              "GET / HTTP/1.1\r\n\r\n"));
    REQUIRE(made.has_error());
    CHECK(made.error().code == failure_code::tls_failed);
}

TEST_CASE("a record that was tampered with is a reset") {
    accepted_bench bench;
    const std::string forged("\x17\x03\x03\x00\x20"
                             "0123456789abcdef0123456789abcdef",
                             37);
    REQUIRE(::send(bench.peer.socket(), forged.data(), forged.size(), MSG_NOSIGNAL) == 37);
    const auto got = bench.finish(read_until_end(*bench.stream));
    CHECK(got.bytes.empty());
    CHECK(got.end == asio::error::connection_reset);
}

TEST_CASE("a stream that is not read holds its sender up") {
    accepted_bench bench;
    const auto text = pattern(64 << 10);
    std::atomic<std::size_t> sent{0};
    std::atomic<bool> held{false};
    const int far = bench.peer.socket();
    timeval brief{};
    brief.tv_usec = 200'000;
    ::setsockopt(far, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief);
    bench.far([&] {
        while (sent < (64u << 20)) {
            if (!bench.peer.send(text)) {
                held = true;
                return;
            }
            sent += text.size();
        }
    });
    CHECK(held.load());
}

TEST_CASE("a client that offers other protocols alone is refused") {
    tls_bench bench;
    auto peer = tls_peer::client(bench.far_socket(), {.alpn = "\x02h2"});
    bool shook = true;
    bench.on_thread([&] { shook = peer.shake_hands(); });
    const auto made = bench.accepted();
    bench.join_running();
    REQUIRE(made.has_error());
    CHECK(made.error().code == failure_code::tls_failed);
    CHECK_FALSE(shook);
}

TEST_CASE("TLS 1.1 is refused") {
    tls_bench bench;
    auto peer = tls_peer::client(bench.far_socket(), {.newest = TLS1_1_VERSION, .weak = true});
    bool shook = true;
    bench.on_thread([&] { shook = peer.shake_hands(); });
    const auto made = bench.accepted();
    bench.join_running();
    REQUIRE(made.has_error());
    CHECK(made.error().detail == "unsupported protocol");
    CHECK_FALSE(shook);
}

TEST_CASE("what is no TLS is refused at once") {
    const std::vector<std::string> none{
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        std::string(4096, '\0'),
        "\x16\x03\x01\xff\xff" + std::string(70'000, 'x'),
    };
    for (const auto& text : none) {
        CAPTURE(text.substr(0, 5));
        tls_bench bench;
        bench.start([](tcp_socket& far, std::string bytes) -> awaitable<void> {
            static_cast<void>(co_await write_text(far, std::move(bytes)));
        }(bench.pair.theirs, text));
        const auto made = bench.accepted();
        REQUIRE(made.has_error());
        CHECK(made.error().code == failure_code::tls_failed);
    }
}

TEST_CASE("a handshake that drips or stops is given up at its time") {
    tls_bench bench;
    // A hello that never becomes whole, a byte a millisecond.
    std::atomic<bool> over{false};
    const int far = bench.far_socket();
    bench.on_thread([&over, far] {
        const std::string hello = std::string("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11) +
                                  std::string(16'000, 'x');
        for (std::size_t i = 0; i < hello.size() && !over; ++i) {
            static_cast<void>(::send(far, &hello[i], 1, MSG_NOSIGNAL));
            std::this_thread::sleep_for(1ms);
        }
    });
    const auto made = bench.accepted(100ms);
    over = true;
    bench.other.join();
    ::close(far);
    REQUIRE(made.has_error());
    CHECK(made.error().detail == "no handshake in time");
}

TEST_CASE("a client of ours takes a certificate for the name that it asked for") {
    tls_bench bench;
    auto peer = tls_peer::server(bench.far_socket(), known_authority().issue("DNS:b.test"));
    bench.on_thread([&] {
        if (peer.shake_hands()) {
            peer.send("hello " + peer.read(4));
            peer.finish_sending();
        }
    });
    auto made = bench.connected("b.test");
    REQUIRE(made.has_value());
    REQUIRE_FALSE(bench.finish(write_text(*made, "here")));
    const auto got = bench.finish(read_until_end(*made));
    CHECK(got.bytes == "hello here");
    CHECK(got.end == asio::error::eof);
    bench.join_running();
    CHECK(peer.asked_for() == "b.test");
    CHECK(peer.chosen_protocol().empty());
}

TEST_CASE("a client of ours takes a certificate for the address that it asked for") {
    tls_bench bench;
    auto peer = tls_peer::server(bench.far_socket(), known_authority().issue("IP:127.0.0.1"));
    bench.on_thread([&] { static_cast<void>(peer.shake_hands()); });
    const auto made = bench.connected("127.0.0.1");
    bench.join_running();
    CHECK(made.has_value());
    CHECK(peer.asked_for().empty());
}

TEST_CASE("a certificate that is not to be trusted ends the connection and says why") {
    struct judged {
        const char* what;
        tests::made_certificate shown;
        const char* host;
        const char* why;
    };
    const tests::test_authority unknown;
    const judged all[] = {
        {"another name", known_authority().issue("DNS:c.test"), "b.test", "hostname mismatch"},
        {"another address",
         known_authority().issue("IP:127.0.0.2"),
         "127.0.0.1",
         "IP address mismatch"},
        {"a name as an address",
         known_authority().issue("DNS:127.0.0.1"),
         "127.0.0.1",
         "IP address mismatch"},
        {"expired",
         known_authority().issue("DNS:b.test", {.from = -48h, .until = -1h}),
         "b.test",
         "certificate has expired"},
        {"not yet valid",
         known_authority().issue("DNS:b.test", {.from = 1h, .until = 48h}),
         "b.test",
         "certificate is not yet valid"},
        {"self-signed", tests::self_signed("DNS:b.test"), "b.test", "self-signed certificate"},
        {"of an unknown authority",
         unknown.issue("DNS:b.test"),
         "b.test",
         "unable to get local issuer certificate"},
    };
    for (const auto& one : all) {
        CAPTURE(one.what);
        tls_bench bench;
        auto peer = tls_peer::server(bench.far_socket(), one.shown);
        bench.on_thread([&] {
            if (peer.shake_hands()) {  // with TLS 1.3 it learns of it only when it reads
                std::string none;
                static_cast<void>(peer.read_some(none));
            }
        });
        const auto made = bench.connected(one.host);
        bench.join_running();
        REQUIRE(made.has_error());
        CHECK(made.error().code == failure_code::tls_certificate);
        CHECK(made.error().detail ==
              "the certificate of " + std::string{one.host} + ": " + one.why);
    }
}

TEST_CASE("a server that speaks no TLS, says nothing, or leaves, is named") {
    {
        tls_bench bench;
        const std::string plain = "HTTP/1.1 400 Bad Request\r\n\r\n";
        REQUIRE(bench.pair.theirs.write_some(asio::buffer(plain)) == plain.size());
        const auto made = bench.connected("b.test");
        REQUIRE(made.has_error());
        CHECK(made.error().code == failure_code::tls_failed);
        CHECK(made.error().detail == "TLS to b.test: wrong version number");
    }
    {
        tls_bench bench;
        const auto made = bench.connected("b.test", 30ms);
        REQUIRE(made.has_error());
        CHECK(made.error().code == failure_code::connect_timeout);
    }
    {
        tls_bench bench;
        bench.pair.theirs.close();
        const auto made = bench.connected("b.test");
        REQUIRE(made.has_error());
        CHECK(made.error().code == failure_code::tls_failed);
    }
}

TEST_CASE("without a trust store no connection is made") {
    tls_bench bench;
    const auto made = bench.finish(connect_tls(
        std::move(bench.pair.ours), nullptr, tls_server{"b.test"}, bench.timer, steady_now() + 1s));
    REQUIRE(made.has_error());
    CHECK(made.error().code == failure_code::internal);
}

TEST_SUITE_END();
