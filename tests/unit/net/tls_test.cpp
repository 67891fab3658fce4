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
    explicit accepted_bench(tls_pace pace = {}, int newest = 0)
        : peer{tls_peer::client(far_socket(),
                                {.trusted = known_authority().certificate(),
                                 .host = "a.test",
                                 .alpn = "\x08http/1.1",
                                 .newest = newest})} {
        bool shook = false;
        on_thread([&] { shook = peer.shake_hands(); });
        auto made = accepted(test_patience, pace);
        other.join();
        REQUIRE(shook);
        REQUIRE(made.has_value());
        link = made->link;
        plain.emplace(std::move(made->plain));
    }
    /// Runs the loop while the far side does this.
    void far(std::function<void()> does) {
        on_thread(std::move(does));
        join_running();
    }
    void send(std::string text) {
        const auto error = finish(write_text(*plain, std::move(text)));
        REQUIRE_FALSE(error);
    }
    void end_of_link() {
        bool ended = false;
        start(note_end(link, ended));
        run_until([&] { return ended; });
        CHECK(ended);
    }
    static awaitable<void> note_end(std::shared_ptr<tls_link> of, bool& ended) {
        co_await of->ended();
        ended = true;
    }

    tls_peer peer;
    std::shared_ptr<tls_link> link;
    std::optional<tcp_socket> plain;
};

awaitable<void> write_into(tcp_socket& socket, const std::string& text, bool& done) {
    static_cast<void>(co_await write_all(socket, asio::const_buffer{asio::buffer(text)}));
    done = true;
}

}  // namespace

TEST_SUITE_BEGIN("net/tls");

TEST_CASE("what one side says the other hears, in TLS 1.2 and in 1.3") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        accepted_bench bench{{}, version};
        CHECK(bench.peer.chosen_protocol() == "http/1.1");
        REQUIRE(bench.peer.send("question"));
        CHECK(bench.finish(read_exactly(*bench.plain, 8)) == "question");
        bench.send("answer");
        std::string heard;
        bench.far([&] { heard = bench.peer.read(6); });
        CHECK(heard == "answer");
    }
}

TEST_CASE("megabytes pass both ways at once") {
    accepted_bench bench;
    const auto up = tls_pattern(6u << 20);
    const auto down = tls_pattern((5u << 20) + 77);
    bool sent = false;
    std::string heard;
    bench.start(write_into(*bench.plain, down, sent));
    // One connection of OpenSSL's is one thread's: it sends and reads in turn.
    bench.on_thread([&] {
        std::string_view rest{up};
        while (!rest.empty()) {
            const auto piece = rest.substr(0, 50'000);
            if (!bench.peer.send(piece)) {
                return;
            }
            rest.remove_prefix(piece.size());
            heard += bench.peer.read(std::min<std::size_t>(40'000, down.size() - heard.size()));
        }
        heard += bench.peer.read(down.size() - heard.size());
    });
    const auto got = bench.finish(read_exactly(*bench.plain, up.size()));
    CHECK(got == up);
    bench.join_running();
    CHECK(heard == down);
    CHECK(sent);
}

TEST_CASE("a close_notify is the end of one direction, and the other goes on") {
    accepted_bench bench;
    REQUIRE(bench.peer.send("all I have to say"));
    bench.peer.finish_sending();
    const auto got = bench.finish(read_until_end(*bench.plain));
    CHECK(got.bytes == "all I have to say");
    CHECK(got.end == asio::error::eof);
    bench.send("and here is the answer");
    bench.plain.reset();
    tls_peer::rest heard;
    bench.far([&] { heard = bench.peer.read_to_end(); });
    CHECK(heard.bytes == "and here is the answer");
    CHECK(heard.end == tls_end::closed);
    bench.end_of_link();
}

TEST_CASE("the plain end's FIN is a close_notify, and the other direction goes on") {
    accepted_bench bench;
    bench.send("that is all");
    bench.plain->shutdown(tcp_socket::shutdown_send);
    tls_peer::rest heard;
    bench.far([&] {
        heard = bench.peer.read_to_end();
        bench.peer.send("thanks");
        bench.peer.finish_sending();
    });
    CHECK(heard.bytes == "that is all");
    CHECK(heard.end == tls_end::closed);
    const auto got = bench.finish(read_until_end(*bench.plain));
    CHECK(got.bytes == "thanks");
    CHECK(got.end == asio::error::eof);
    bench.end_of_link();
}

TEST_CASE("an end without close_notify is a reset, after the bytes before it") {
    for (const bool reset : {false, true}) {
        CAPTURE(reset);
        accepted_bench bench;
        REQUIRE(bench.peer.send("half of it"));
        CHECK(bench.finish(read_exactly(*bench.plain, 4)) == "half");
        if (reset) {
            REQUIRE(bench.plain->available() == 6);  // the reset does not overtake what was sent
            bench.peer.reset();
        } else {
            bench.peer.truncate();
        }
        bench.end_of_link();
        const auto got = bench.finish(read_until_end(*bench.plain));
        CHECK(got.bytes == " of it");
        CHECK(got.end == asio::error::connection_reset);
    }
}

TEST_CASE("an end without close_notify is a reset for whoever waits for bytes") {
    accepted_bench bench;
    bench.on_thread([&] { bench.peer.truncate(); });
    const auto got = bench.finish(read_until_end(*bench.plain));
    CHECK(got.end == asio::error::connection_reset);
}

TEST_CASE("a record that was tampered with is a reset") {
    accepted_bench bench;
    const std::string forged("\x17\x03\x03\x00\x20"
                             "0123456789abcdef0123456789abcdef",
                             37);
    REQUIRE(::send(bench.peer.socket(), forged.data(), forged.size(), MSG_NOSIGNAL) == 37);
    const auto got = bench.finish(read_until_end(*bench.plain));
    CHECK(got.bytes.empty());
    CHECK(got.end == asio::error::connection_reset);
    bench.end_of_link();
}

TEST_CASE("closing the plain end sends what was written, and then close_notify") {
    accepted_bench bench;
    const auto text = tls_pattern(90'000);
    bench.send(text);
    bench.plain.reset();
    tls_peer::rest heard;
    bench.far([&] { heard = bench.peer.read_to_end(); });
    CHECK(heard.bytes == text);
    CHECK(heard.end == tls_end::closed);
    bench.end_of_link();
}

TEST_CASE("what is broken off does not look whole") {
    accepted_bench bench;
    bench.send("half of it");
    std::string first;
    bench.far([&] { first = bench.peer.read(10); });
    CHECK(first == "half of it");
    bench.link->break_off();
    bench.plain.reset();
    tls_end end{};
    bench.far([&] { end = bench.peer.read_to_end().end; });
    CHECK(end == tls_end::truncated);
    bench.end_of_link();
}

TEST_CASE("a side that does not read is not written to without bound") {
    accepted_bench bench;
    std::size_t written = 0;
    const auto block = tls_pattern(64 << 10);
    // Until nothing has been taken for a while: the kernel's buffers on the way are all there is.
    unsigned idle = 0;
    while (idle < 20 && written < (64u << 20)) {
        error_code error;
        const auto count = try_write(*bench.plain, asio::buffer(block), error);
        REQUIRE_FALSE(error);
        written += count;
        idle = count == 0 ? idle + 1 : 0;
        bench.run_for(2ms);
    }
    CHECK(written < (32u << 20));
    std::string heard;
    bench.far([&] { heard = bench.peer.read(written); });
    CHECK(heard.size() == written);
    CHECK(heard.substr(0, block.size()) == block);
}

TEST_CASE("a plain end that is not read holds its sender up") {
    accepted_bench bench;
    const auto text = tls_pattern(64 << 10);
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

TEST_CASE("who does not take what he is sent is broken off") {
    accepted_bench bench{{.bytes_per_second = 1000, .timeout = 50ms}};
    bool done = false;
    const auto text = tls_pattern(32u << 20);
    bench.start(write_into(*bench.plain, text, done));
    bench.end_of_link();
    bench.run_until([&] { return done; });
    CHECK(done);
}

TEST_CASE("stopping the thread's deadlines ends a link that waits") {
    accepted_bench bench;
    bench.run_for(10ms);
    bench.timer.stop();
    bench.end_of_link();
    tls_end end{};
    bench.far([&] { end = bench.peer.read_to_end().end; });
    CHECK(end == tls_end::truncated);
}

TEST_CASE("a link whose loop is gone leaves nothing behind") {
    std::optional<accepted_bench> bench{std::in_place};
    std::weak_ptr<tls_link> link = bench->link;
    bench->run_for(10ms);
    bench.reset();
    CHECK(link.expired());
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
            static_cast<void>(co_await write_all(far, asio::const_buffer{asio::buffer(bytes)}));
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
        std::move(bench.pair.ours), nullptr, "b.test", tls_pace{}, bench.timer, steady_now() + 1s));
    REQUIRE(made.has_error());
    CHECK(made.error().code == failure_code::internal);
}

TEST_SUITE_END();
