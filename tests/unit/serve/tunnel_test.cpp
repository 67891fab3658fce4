#include "tests/unit/serve/socket_bench.hpp"

#include <string>

// A tunnel between two sockets. What its client is told before is kept by the bench's sink.

namespace reprise::proxy::serve::test::of_tunnel {

namespace {

reprise::config::options to_loopback(std::uint16_t port) {
    auto out = fetch::test::with_memory(1000);
    reprise::config::destination loopback;
    loopback.net = reprise::config::network{net::canonical(asio::ip::make_address("127.0.0.0")),
                                            104};
    out.access.allow_destinations = {loopback};
    out.access.connect_ports = {{port, port}};
    return out;
}

/// client <-> (here  tunnel) <-> far end
struct tunnelling : socket_bench {
    explicit tunnelling(std::uint16_t to) : socket_bench{to_loopback(to)}, port{to} {}

    const std::uint16_t port;

    [[nodiscard]] std::string connect() const {
        return "CONNECT 127.0.0.1:" + std::to_string(port) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    }
};

/// A far end that listens, on a loop of its own.
struct far_end {
    asio::io_context io{1};
    net::tcp_acceptor listening = net::listen_on_loopback(io);

    [[nodiscard]] std::uint16_t port() const { return listening.local_endpoint().port(); }
};

constexpr std::string_view established = "HTTP/1.1 200 Connection established\r\n\r\n";

}  // namespace

TEST_SUITE_BEGIN("serve/tunnel");

TEST_CASE("bytes go both ways behind the 200, those first that came with the request") {
    far_end far;
    tunnelling at{far.port()};
    at.comes(at.connect() + "early");
    asking one{at};
    REQUIRE(at.goes_on_until([&] { return !at.sink.sent.empty(); }));
    CHECK(at.sink.sent == established);
    auto there = far.listening.accept();
    CHECK(at.read(there, 5) == "early");
    asio::write(at.here.theirs, asio::buffer("more", 4));
    CHECK(at.read(there, 4) == "more");
    asio::write(there, asio::buffer("answer", 6));
    CHECK(at.read(at.here.theirs, 6) == "answer");
    error_code ignored;
    there.shutdown(tcp_socket::shutdown_send, ignored);
    at.here.theirs.shutdown(tcp_socket::shutdown_send, ignored);
    REQUIRE(at.goes_on_until([&] { return one.how.has_value(); }));
    CHECK(one.how == ended::close);
    CHECK(!at.stream.reply_under_way());
    one.close();
    CHECK(at.counted(outcome::tunnel) == 1);
    CHECK(at.at.w.counts.bytes_to_origins.read() == 9);
    CHECK(at.at.w.counts.bytes_from_origins.read() == 6);
}

TEST_CASE("a far end that breaks off is a reset to the client, not an end") {
    far_end far;
    tunnelling at{far.port()};
    at.comes(at.connect());
    asking one{at};
    REQUIRE(at.goes_on_until([&] { return !at.sink.sent.empty(); }));
    auto there = far.listening.accept();
    asio::write(there, asio::buffer("half", 4));
    CHECK(at.read(at.here.theirs, 4) == "half");
    there.set_option(asio::socket_base::linger{true, 0});
    there.close();
    REQUIRE(at.goes_on_until([&] { return one.how.has_value(); }));
    CHECK(one.how == ended::close);
    CHECK(at.stream.reply_under_way());  // and so closing it is a reset
}

TEST_CASE("a port of this proxy's own is no far end") {
    far_end far;
    tunnelling at{far.port()};
    at.at.common.own_ports = {far.port()};
    at.comes(at.connect() + "early");
    asking one{at};
    REQUIRE(at.goes_on_until([&] { return one.how.has_value(); }));
    CHECK(at.said().status == 403);
    CHECK(at.said().body.find("is a listener of this proxy") != std::string::npos);
}

TEST_CASE("where nobody listens the client is told so, and its connection ends") {
    asio::io_context io{1};
    const net::closed_port nobody{io};
    tunnelling at{nobody.port};
    at.comes(at.connect());
    asking one{at};
    REQUIRE(at.goes_on_until([&] { return one.how.has_value(); }));
    CHECK(at.said().status == 502);
    CHECK(one.how == ended::close);
    one.close();
    CHECK(at.counted(outcome::error) == 1);
}

TEST_CASE("a client that has left when the 200 is to go has no tunnel") {
    far_end far;
    tunnelling at{far.port()};
    at.sink.takes(0);
    at.comes(at.connect());
    asking one{at};
    auto there = far.listening.accept();
    REQUIRE(at.goes_on_until([&] { return at.sink.sends > 0; }));
    at.sink.leaves();
    REQUIRE(at.goes_on_until([&] { return one.how.has_value(); }));
    CHECK(one.how == ended::gone);
    CHECK(at.read(there, 1).empty());  // it is closed
    one.close();
    CHECK(at.counted(outcome::client_gone) == 1);
    CHECK(at.counted(outcome::tunnel) == 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_tunnel
