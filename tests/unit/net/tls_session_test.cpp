// One TLS session by itself, with the other side's OpenSSL on the same thread: each step is seen.
#include "proxy/net/tls_session.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace reprise::proxy::net::test::of_tls_session_test {
namespace {

enum class over : std::uint8_t { socket_pair, tcp };

/// A server's session and its client, on two ends of a socket that waits for nothing.
struct conversation {
    /// @param read_before  so many bytes of what the client says first are taken from the socket
    /// before there is a session, and given to it
    explicit conversation(const tls_identity_ptr& server,
                          int version = TLS1_3_VERSION,
                          std::size_t read_before = 0,
                          over what = over::socket_pair) {
        if (what == over::tcp) {
            asio::io_context io;
            auto pair = connected_pair(io);
            ends[0] = pair.theirs.release();
            ends[1] = pair.ours.release();
            prepare_listener(ends[0]);  // which sets what accepted ones inherit
        } else {
            REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
        }
        SSL_set_max_proto_version(client, version);
        SSL_set_fd(client, ends[1]);
        SSL_set_connect_state(client);
        if (read_before > 0) {
            CHECK(SSL_do_handshake(client) != 1);
            first.resize(read_before);
            const auto got = ::recv(ends[0], first.data(), first.size(), 0);
            first.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        }
        ours.emplace(server->begin(), ends[0], first);
    }
    ~conversation() {
        ours.reset();
        SSL_free(client);
        SSL_CTX_free(context);
        ::close(ends[0]);
        ::close(ends[1]);
    }
    conversation(const conversation&) = delete;
    conversation& operator=(const conversation&) = delete;

    /// One turn of each side; true: both are done.
    bool turn() {
        const bool far = SSL_do_handshake(client) == 1;
        near = near || ours->shake_hands() == tls_session::handshake::done;
        return far && near;
    }
    void shake_hands() {
        for (const auto give_up = late(); steady_now() < give_up;) {
            if (turn()) {
                return;
            }
        }
        FAIL("no handshake");
    }
    void say(std::string_view text) {
        const asio::const_buffer part{text.data(), text.size()};
        error_code error;
        CHECK(ours->write({&part, 1}, error) == text.size());
        CHECK_FALSE(error);
    }
    /// Until so much ciphertext, and where it is said the end, stands in our socket.
    void await_arrival(int bytes, bool end = false) {
        for (int there = -1; there < bytes;) {
            REQUIRE(::ioctl(ends[0], FIONREAD, &there) == 0);
        }
        pollfd one{ends[0], POLLRDHUP, 0};
        REQUIRE((!end || ::poll(&one, 1, 10'000) == 1));
    }
    std::string hear() {
        char block[1024];
        const int got = SSL_read(client, block, sizeof block);
        return {block, static_cast<std::size_t>(got > 0 ? got : 0)};
    }

    int ends[2] = {-1, -1};
    std::string first;
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL* client = SSL_new(context);
    std::optional<tls_session> ours;
    bool near = false;
};

tls_identity_ptr some_identity() {
    return identity_for(known_authority().issue("DNS:a.test"));
}

}  // namespace

TEST_SUITE_BEGIN("net/tls_session");

TEST_CASE("after a handshake neither half of the key exchange is left") {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CAPTURE(version);
        conversation one{some_identity(), version};
        one.shake_hands();
        for (const bool own : {true, false}) {
            CAPTURE(own);
            EVP_PKEY* key = nullptr;
            const bool there = (own ? SSL_get_tmp_key(one.ours->ssl(), &key)
                                    : SSL_get_peer_tmp_key(one.ours->ssl(), &key)) == 1;
            unsigned char* encoded = nullptr;
            CHECK((!there || EVP_PKEY_get1_encoded_public_key(key, &encoded) == 0));
            OPENSSL_free(encoded);
            EVP_PKEY_free(key);
        }
        one.say("hello");
        CHECK(one.hear() == "hello");
    }
}

TEST_CASE("behind a handshake of TLS 1.3 a server's half has no session of its own, and goes on") {
    const auto server = some_identity();
    conversation one{server};
    conversation other{server};
    one.shake_hands();
    other.shake_hands();
    const auto* const kept = SSL_get_session(one.ours->ssl());
    CHECK(kept == SSL_get_session(other.ours->ssl()));
    CHECK(SSL_SESSION_get_master_key(kept, nullptr, 0) == 0);
    CHECK(SSL_get_current_cipher(one.ours->ssl()) == SSL_get_current_cipher(one.client));
    char bytes[16];
    error_code error;
    for (const char* const said : {"one", "two", "three"}) {
        // New keys both ways, and records under them.
        REQUIRE(SSL_key_update(one.client, SSL_KEY_UPDATE_REQUESTED) == 1);
        REQUIRE(SSL_write(one.client, said, 3) == 3);
        CHECK(one.ours->read(asio::buffer(bytes), error) == 3);
        CHECK_FALSE(error);
        CHECK(std::string_view(bytes, 3) == std::string_view{said}.substr(0, 3));
        one.say(said);
        CHECK(one.hear() == said);
        other.say(said);
        CHECK(other.hear() == said);
    }
    const std::string many(50'000, 'm');
    one.say(many);
    std::string heard;
    while (heard.size() < many.size()) {
        const auto piece = one.hear();
        REQUIRE(!piece.empty());
        heard += piece;
    }
    CHECK(heard == many);
    CHECK(SSL_shutdown(one.client) == 0);
    CHECK(one.ours->read(asio::buffer(bytes), error) == 0);
    CHECK(error == asio::error::eof);
    CHECK(one.ours->say_end(error));
    CHECK(SSL_shutdown(one.client) == 1);
    // What is no record of TLS ends the other with an alert.
    REQUIRE(::send(other.ends[1], "nonsense", 8, 0) == 8);
    CHECK(other.ours->read(asio::buffer(bytes), error) == 0);
    CHECK(error == asio::error::connection_reset);
}

TEST_CASE(
    "a server's half keeps what its session says otherwise: TLS 1.2's, and a length of records") {
    conversation old{some_identity(), TLS1_2_VERSION};
    old.shake_hands();
    CHECK(SSL_SESSION_get_master_key(SSL_get_session(old.ours->ssl()), nullptr, 0) != 0);
    conversation small{some_identity()};
    REQUIRE(SSL_set_tlsext_max_fragment_length(small.client, TLSEXT_max_fragment_length_512) == 1);
    small.shake_hands();
    small.say(std::string(1'500, 's'));
    for (int pieces = 0; pieces < 2; ++pieces) {
        CHECK(small.hear().size() == 512);
    }
    CHECK(small.hear().size() == 1'500 - 2 * 512);
}

TEST_CASE(
    "sessions of a thread share what stands between OpenSSL and a socket, and nothing mixes") {
    const auto server = some_identity();
    conversation one{server};
    conversation other{server};
    CHECK(SSL_get_rbio(one.ours->ssl()) == SSL_get_rbio(other.ours->ssl()));
    bool done[2] = {false, false};
    for (int turns = 0; turns < 10 && !(done[0] && done[1]); ++turns) {
        done[0] = one.turn();
        done[1] = other.turn();
        if (turns == 0) {
            conversation gone{server};  // leaves in the middle of its own
            CHECK_FALSE(gone.turn());
        }
    }
    REQUIRE(done[0]);
    REQUIRE(done[1]);
    one.say("one");
    other.say("other");
    CHECK(other.hear() == "other");
    CHECK(one.hear() == "one");
}

TEST_CASE("whether the socket has more is known of the last read alone") {
    const auto server = some_identity();
    conversation pair{server, TLS1_3_VERSION, 0, over::tcp};
    pair.shake_hands();
    auto& ours = *pair.ours;
    char room[6];
    error_code error;
    CHECK(ours.read(asio::buffer(room), error) == 0);
    CHECK(ours.must_wait());
    CHECK(ours.saw_all());

    constexpr int sealing = 5 + 1 + 16;  // header, type and tag of a record
    CHECK(SSL_write(pair.client, "first", 5) == 5);
    CHECK(SSL_write(pair.client, "second", 6) == 6);
    pair.await_arrival(11 + 2 * sealing);
    CHECK(ours.read(asio::buffer(room, 5), error) == 5);
    CHECK(ours.saw_all());  // by the bytes that came, and no second call
    CHECK_FALSE(ours.must_wait());
    CHECK(ours.read(asio::buffer(room, 6), error) == 6);
    CHECK(ours.must_wait());
    CHECK_FALSE(ours.saw_all());  // OpenSSL had them: something may have come to the socket since

    CHECK(SSL_write(pair.client, "third", 5) == 5);
    CHECK(::shutdown(pair.ends[1], SHUT_WR) == 0);
    pair.await_arrival(5 + sealing, true);
    CHECK(ours.read(asio::buffer(room, 5), error) == 5);
    CHECK_FALSE(ours.saw_all());  // there is an end
}

TEST_CASE("what was read of a connection before comes first, wherever it was cut") {
    const auto server = some_identity();
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        const auto hello = conversation{server, version, 1 << 14}.first.size();
        REQUIRE(hello > 100);
        for (std::size_t cut = 1; cut <= hello; cut += cut < 12 ? 1 : 13) {
            CAPTURE(version);
            CAPTURE(cut);
            conversation one{server, version, cut};
            REQUIRE(one.first.size() == cut);
            one.shake_hands();
            one.say("hello");
            CHECK(one.hear() == "hello");
            CHECK(SSL_write(one.client, "question", 8) == 8);
            char heard[32];
            error_code error;
            CHECK(one.ours->read(asio::buffer(heard), error) == 8);
            CHECK_FALSE(error);
            CHECK(one.ours->must_wait());  // the socket has been asked by now
        }
        conversation whole{server, version, hello};
        whole.shake_hands();
    }
}

TEST_SUITE_END();
}  // namespace reprise::proxy::net::test::of_tls_session_test
