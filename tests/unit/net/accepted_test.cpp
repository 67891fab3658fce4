#include "proxy/net/accepted.hpp"
#include "proxy/net/byte_stream.hpp"
#include "tests/unit/net/loop.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>

namespace reprise::proxy::net::test::of_accepted_test {

struct listener {
    test_loop loop;
    tcp_socket socket{loop.io};

    listener() {
        socket.open(tcp::v4());
        socket.bind({asio::ip::address_v4::loopback(), 0});
        socket.non_blocking(true);
        prepare_listener(socket.native_handle());
        REQUIRE(::listen(socket.native_handle(), 16) == 0);
    }
    tcp_socket connect() {
        tcp_socket one{loop.io};
        one.connect(socket.local_endpoint());
        return one;
    }
};

TEST_SUITE_BEGIN("net/accepted");

TEST_CASE("connections come in their order, with their clients, and then none") {
    listener at;
    error_code error;
    CHECK(!accept_now(at.socket, error));
    CHECK(!error);
    auto first = at.connect();
    auto second = at.connect();
    const auto one = accept_now(at.socket, error);
    const auto two = accept_now(at.socket, error);
    REQUIRE(one);
    REQUIRE(two);
    CHECK(one->from == first.local_endpoint());
    CHECK(two->from == second.local_endpoint());
    CHECK(!accept_now(at.socket, error));
    CHECK(!error);
}

TEST_CASE("what is accepted does not block, delays nothing and is not inherited by a child") {
    listener at;
    auto client = at.connect();
    error_code error;
    auto one = accept_now(at.socket, error);
    REQUIRE(one);
    CHECK(one->socket.non_blocking());
    const int descriptor = one->socket.native_handle();
    CHECK((::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    tcp::no_delay at_once;
    one->socket.get_option(at_once);
    CHECK(at_once.value());
}

TEST_CASE("Asio waits for it, and closing it ends the wait") {
    listener at;
    auto client = at.connect();
    error_code error;
    auto one = accept_now(at.socket, error);
    REQUIRE(one);
    byte_stream stream{std::move(one->socket)};
    asio::write(client, asio::buffer("hello", 5));
    CHECK(at.loop.finish(read_exactly(stream, 5)) == "hello");
    std::optional<error_code> ended;
    stream.wait_readable([&](error_code how) { ended = how; });
    stream.close(error);
    at.loop.run_until([&] { return ended.has_value(); });
    CHECK(*ended == asio::error::operation_aborted);
    // The number is free for the next, of whom nothing is known from the last.
    auto next = at.connect();
    auto two = accept_now(at.socket, error);
    REQUIRE(two);
    byte_stream other{std::move(two->socket)};
    asio::write(next, asio::buffer("again", 5));
    CHECK(at.loop.finish(read_exactly(other, 5)) == "again");
}

TEST_CASE("a socket that does not listen says so") {
    test_loop loop;
    tcp_socket deaf{loop.io};
    deaf.open(tcp::v4());
    deaf.non_blocking(true);
    error_code error;
    CHECK(!accept_now(deaf, error));
    CHECK(error == boost::system::errc::invalid_argument);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_accepted_test
