#include "proxy/net/tls.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <doctest/doctest.h>

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

// Servers that a client of ours must not take, and none of which may hold it up.

namespace reprise::proxy::net::test::of_bad_servers_test {
namespace {

using namespace std::chrono_literals;
using tests::made_certificate;
using tests::tls_peer;

/// The failure to connect to b.test, whose server does this.
failure met(std::function<void(int socket)> server,
            std::chrono::milliseconds within = test_patience) {
    tls_bench bench;
    const int far = bench.far_socket();
    bench.on_thread([far, &server] { server(far); });
    auto made = bench.connected({"b.test"}, trust_of_the_test(), within);
    bench.join_running();
    REQUIRE(made.has_error());
    return made.error();
}

std::function<void(int)> shows(const made_certificate& identity,
                               const tls_peer::server_wishes& wanted) {
    return [=](int socket) {
        auto peer = tls_peer::server(socket, identity, wanted);
        if (peer.shake_hands()) {
            static_cast<void>(peer.read_to_end());
        }
    };
}

/// What a good server of b.test answers the ClientHello that has come here.
std::string first_answer(int socket, int newest) {
    const auto identity = identity_for(known_authority().issue("DNS:b.test"));
    const auto ssl = identity->begin();
    SSL_set_max_proto_version(ssl.get(), newest);
    BIO* const in = BIO_new(BIO_s_mem());
    BIO* const out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), in, out);
    char block[4096];
    pollfd readable{socket, POLLIN, 0};
    while (BIO_pending(out) == 0 && ::poll(&readable, 1, 20'000) == 1) {
        const auto got = ::recv(socket, block, sizeof block, 0);
        if (got <= 0) {
            break;
        }
        BIO_write(in, block, static_cast<int>(got));
        static_cast<void>(SSL_do_handshake(ssl.get()));
    }
    std::string answer(static_cast<std::size_t>(BIO_pending(out)), '\0');
    BIO_read(out, answer.data(), static_cast<int>(answer.size()));
    return answer;
}

void send_part(int socket, const std::string& of, double part) {
    const auto bytes = static_cast<std::size_t>(static_cast<double>(of.size()) * part);
    static_cast<void>(::send(socket, of.data(), bytes, MSG_NOSIGNAL));
}

/// Until the other side has gone.
void wait_for_end(int socket) {
    char block[4096];
    pollfd readable{socket, POLLIN, 0};
    while (::poll(&readable, 1, 20'000) == 1 && ::recv(socket, block, sizeof block, 0) > 0) {
    }
}

}  // namespace

TEST_SUITE_BEGIN("net/bad_servers");

TEST_CASE("certificates of weak keys and weak signatures are not taken") {
    struct weak {
        const char* what;
        tests::certificate_wishes wanted;
        const char* why;
    };
    const weak all[] = {
        {"RSA of 1024 bits", {.rsa_bits = 1024}, "EE certificate key too weak"},
        {"SHA-1", {.sha1 = true}, "CA signature digest algorithm too weak"},
    };
    for (const auto& one : all) {
        const auto shown = known_authority().issue_as("DNS:b.test", one.wanted);
        for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
            CAPTURE(one.what);
            CAPTURE(version);
            const auto end = met(shows(shown, {.newest = version, .weak = true}));
            CHECK(end.code == failure_code::tls_certificate);
            CHECK(end.detail == std::string{"the certificate of b.test: "} + one.why);
        }
    }
}

TEST_CASE("RSA of 2048 bits is taken") {
    tls_bench bench;
    auto peer = tls_peer::server(bench.far_socket(),
                                 known_authority().issue_as("DNS:b.test", {.rsa_bits = 2048}));
    bench.on_thread([&] { static_cast<void>(peer.shake_hands()); });
    CHECK(bench.connected("b.test").has_value());
    bench.join_running();
}

TEST_CASE("a server of old versions alone is refused") {
    for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
        CAPTURE(version);
        const auto end = met(
            shows(known_authority().issue("DNS:b.test"), {.newest = version, .weak = true}));
        CHECK(end.code == failure_code::tls_failed);
        CHECK(end.detail == "TLS to b.test: tlsv1 alert protocol version");
    }
}

TEST_CASE("a chain of 100 KB ends the handshake, one of 40 KB does not") {
    const auto filler =
        known_authority().issue_as("DNS:x.test", {.comment_bytes = 9'700}).certificate;
    const auto shown_with = [&](int certificates) {
        auto shown = known_authority().issue("DNS:b.test");
        for (int i = 0; i < certificates; ++i) {
            shown.certificate += filler;
        }
        return shown;
    };
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        const auto end = met(shows(shown_with(10), {.newest = version}));
        CHECK(end.code == failure_code::tls_certificate);
        CHECK(end.detail == "TLS to b.test: excessive message size");

        tls_bench bench;
        auto peer = tls_peer::server(bench.far_socket(), shown_with(4), {.newest = version});
        bench.on_thread([&] { static_cast<void>(peer.shake_hands()); });
        CHECK(bench.connected("b.test").has_value());
        bench.join_running();
    }
}

TEST_CASE("garbage in place of TLS is named, and awaited no further") {
    struct garbage {
        std::string bytes;
        const char* why;
    };
    const garbage all[] = {
        {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "wrong version number"},
        {std::string(4096, '\0'), "wrong version number"},
        {pattern(70'000), "wrong version number"},
        // A record that is one by its head; an alert of nothing known.
        {std::string("\x16\x03\x03\x40\x00", 5) + std::string(16 << 10, 'x'), "unexpected message"},
        {std::string("\x15\x03\x03\x00\x02\x02\x28", 7), "sslv3 alert handshake failure"},
        {std::string("\x17\x03\x03\x00\x05hello", 10), "unexpected message"},
    };
    for (const auto& one : all) {
        CAPTURE(one.bytes.substr(0, 5));
        const auto end = met([&](int socket) {
            static_cast<void>(
                ::send(socket, one.bytes.data(), one.bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
            wait_for_end(socket);  // it stays, and says nothing more
            ::close(socket);
        });
        CHECK(end.code == failure_code::tls_failed);
        CHECK(end.detail == std::string{"TLS to b.test: "} + one.why);
    }
}

TEST_CASE("a server that is silent from any moment on is left at the deadline") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        for (const double part : {0.0, 0.05, 0.5, 0.99}) {
            CAPTURE(version);
            CAPTURE(part);
            const auto end = met(
                [&](int socket) {
                    send_part(socket, first_answer(socket, version), part);
                    wait_for_end(socket);
                    ::close(socket);
                },
                100ms);
            CHECK(end.code == failure_code::connect_timeout);
            CHECK(end.detail == "TLS to b.test: no handshake in time");
        }
    }
}

TEST_CASE("a handshake that is cut in the middle has failed") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        for (const bool reset : {false, true}) {
            for (const double part : {0.0, 0.05, 0.5, 0.99}) {
                CAPTURE(version);
                CAPTURE(reset);
                CAPTURE(part);
                const auto end = met([&](int socket) {
                    send_part(socket, first_answer(socket, version), part);
                    if (reset) {
                        const linger at_once{1, 0};
                        ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
                    } else {
                        ::shutdown(socket, SHUT_WR);
                        wait_for_end(socket);
                    }
                    ::close(socket);
                });
                CHECK(end.code == failure_code::tls_failed);
                CHECK(end.detail == (reset ? "TLS to b.test: the connection ended"
                                           : "TLS to b.test: unexpected eof while reading"));
            }
        }
    }
}

TEST_CASE("a server that drips its answer is left at the deadline") {
    const auto end = met(
        [](int socket) {
            const auto answer = first_answer(socket, TLS1_3_VERSION);
            // It is never whole, however long our side has no turn.
            for (std::size_t i = 0; i + 1 < answer.size(); ++i) {
                if (::send(socket, &answer[i], 1, MSG_NOSIGNAL) != 1) {
                    break;
                }
                std::this_thread::sleep_for(1ms);
            }
            wait_for_end(socket);
            ::close(socket);
        },
        100ms);
    CHECK(end.code == failure_code::connect_timeout);
    CHECK(end.detail == "TLS to b.test: no handshake in time");
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_bad_servers_test
