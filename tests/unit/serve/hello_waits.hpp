#pragma once
// A client behind its CONNECT's 200, on a socket, whose hello is waited for; the far end listens on a
// loop of its own.

#include "proxy/serve/hello_wait.hpp"
#include "tests/support/tls_peer.hpp"
#include "tests/unit/net/authority_files.hpp"
#include "tests/unit/serve/socket_bench.hpp"

#include <boost/asio/post.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::serve::test::of_hello_wait {

using namespace std::chrono_literals;

inline const net::authority_files& authority() {
    static const net::authority_files one;
    return one;
}

/// Tunnels to a.test, which is this machine, are opened.
inline reprise::config::options opening(std::uint16_t port) {
    static const tests::temp_dir files;
    static const auto hosts = files.write("hosts", "127.0.0.1 a.test\n");
    auto out = fetch::test::with_memory(1000);
    reprise::config::destination loopback;
    loopback.net = reprise::config::network{net::canonical(asio::ip::make_address("127.0.0.0")),
                                            104};
    out.access.allow_destinations = {loopback};
    out.access.connect_ports = {{port, port}};
    out.dns.hosts_file = hosts;
    out.intercept = authority().wanted;
    out.intercept->ports = {port};
    return out;
}

/// What OpenSSL's clients say first.
inline std::string hello_of(const char* host, const std::string& alpn = "\x08http/1.1") {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free};
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl{SSL_new(context.get()), &SSL_free};
    REQUIRE(ssl);
    if (host != nullptr) {
        SSL_set_tlsext_host_name(ssl.get(), host);
    }
    SSL_set_alpn_protos(ssl.get(),
                        reinterpret_cast<const unsigned char*>(alpn.data()),
                        static_cast<unsigned>(alpn.size()));
    auto* out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), out);
    SSL_set_connect_state(ssl.get());
    SSL_do_handshake(ssl.get());
    char* at = nullptr;
    const auto size = BIO_get_mem_data(out, &at);
    return {at, static_cast<std::size_t>(size)};
}

/// One that takes several readings.
inline std::string long_hello() {
    std::string protocols = "\x08http/1.1";
    for (int i = 0; i < 40; ++i) {
        protocols += '\xff' + std::string(255, 'p');
    }
    return hello_of("a.test", protocols);
}

struct far_end {
    asio::io_context io{1};
    net::tcp_acceptor listening = net::listen_on_loopback(io);

    [[nodiscard]] std::uint16_t port() const { return listening.local_endpoint().port(); }
    /// @pre somebody has connected
    tcp_socket accept() { return listening.accept(); }
    [[nodiscard]] bool has_nobody() {
        error_code none;
        listening.non_blocking(true);
        const auto one = listening.accept(none);
        return none == asio::error::would_block;
    }
};

inline constexpr std::string_view established = "HTTP/1.1 200 Connection established\r\n\r\n";

/// client <-> (here  hello_wait, then a tunnel) <-> far end
struct waiting final : socket_bench, private sequel::owner {
    explicit waiting(const reprise::config::options& options)
        : socket_bench{options},
          connect{"CONNECT a.test:" + std::to_string(options.intercept->ports.front()) +
                  " HTTP/1.1\r\nHost: x\r\n\r\n"} {}
    ~waiting() {
        if (now) {
            error_code ignored;
            stream.socket().close(ignored);
            at.w.abort();
            (void)goes_on_until([this] { return how.has_value(); });
        }
        CHECK(told == begun);
        CHECK(!told_within);
    }

    /// The client is to have its 200.
    void has_asked() {
        stated asked{*this, connect};
        asked.x.book.how = outcome::tunnel;
        asked.x.book.status = 200;
        now = std::make_unique<hello_wait>(asked.x.part());
    }
    /// The client has its 200, and these bytes came with its CONNECT.
    void is_connected(std::string_view said = {}) {
        has_asked();
        if (!said.empty()) {
            comes(said);
        }
        std::vector<asio::const_buffer> parts{{established.data(), established.size()}};
        REQUIRE(stream.send_now(parts));
        REQUIRE(read(here.theirs, established.size()) == established);
    }
    /// In a turn of the loop, behind which it has no other.
    void begin_alone() {
        asio::post(at.w.io, [this] { begin_within(*now); });
        at.w.io.restart();
        for (unsigned turns = 0; turns < 1'000 && begun == 0; ++turns) {
            at.w.io.poll_one();
        }
        REQUIRE(begun == 1);
    }
    /// Nothing that the test waits for comes by this time's running out.
    void begin(std::string_view said = {}) {
        is_connected(said);
        begin_alone();
        stream.patience().expire_after(1h);
        settle();
    }
    void says(std::string_view bytes) { asio::write(here.theirs, asio::buffer(bytes)); }

    [[nodiscard]] bool is_over() {
        return goes_on_until([this] { return how.has_value(); });
    }
    [[nodiscard]] bool is_passed_on() {
        return goes_on_until([this] { return nexts == 1; });
    }
    [[nodiscard]] bool is_shaking_hands() {
        return goes_on_until([this] { return shaking_hands() == 1; });
    }
    template <class Side>
    void client_does(Side side) {
        run_beside(at.w.io, std::move(side));
    }
    /// Its side of a handshake.
    tests::tls_peer client(const std::string& trusted) {
        return tests::tls_peer::client(
            here.theirs.release(), {.trusted = trusted, .host = "a.test", .alpn = "\x08http/1.1"});
    }

    [[nodiscard]] std::uint32_t shaking_hands() const { return at.common.shaking_hands.size(); }
    [[nodiscard]] bool knows_refusal() const {
        return at.common.refusals.has_client(who.at, "a.test", steady_now());
    }
    [[nodiscard]] tunnel_hosts::listed figures() const {
        const auto all = at.common.tunnels.figures().opened;
        REQUIRE(all.size() == 1);
        CHECK(all.front().host == "a.test");
        return all.front();
    }
    [[nodiscard]] std::string why_passed_on() const {
        const auto why = figures().passed_on;
        REQUIRE(why.size() == 1);
        CHECK(why.front().second == 1);
        return std::string{why.front().first};
    }

    const std::string connect;
    std::unique_ptr<sequel> now;
    std::optional<ended> how;  ///< none: it is not over
    bool is_broken = false;    ///< and by an exception
    unsigned nexts = 0;
    unsigned begun = 0, told = 0;                         ///< each is told of once
    std::shared_ptr<int> open = std::make_shared<int>();  ///< whoever keeps it open has this too
    bool told_within = false;                             ///< begin()

private:
    // Nothing is checked where there may be no memory for that.
    void begin_within(sequel& one) {
        ++begun;
        begins_ = true;
        one.begin(*this);
        begins_ = false;
    }
    void note_told() {
        ++told;
        told_within = told_within || begins_;
    }
    void on_over(const std::exception_ptr& broken, ended came) override {
        note_told();
        is_broken = broken != nullptr;
        how = came;
        now.reset();
    }
    void on_next(std::unique_ptr<sequel> next) override {
        note_told();
        ++nexts;
        now = std::move(next);
        begin_within(*now);
    }
    void on_loop_gone() noexcept override {}
    std::shared_ptr<void> keep_open() override { return open; }

    bool begins_ = false;
};

}  // namespace reprise::proxy::serve::test::of_hello_wait
