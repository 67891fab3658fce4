#include "proxy/net/accepted.hpp"
#include "proxy/net/byte_stream.hpp"
#include "tests/unit/net/loop.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

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
    /// The next one, which the kernel may have for its client a moment before it has it for us.
    std::optional<accepted> accept(error_code& error) {
        pollfd there{socket.native_handle(), POLLIN, 0};
        REQUIRE(::poll(&there, 1, 20'000) == 1);
        return accept_now(socket, error);
    }
};

/// Until bytes, or the end, have come.
void arrive(byte_stream& at) {
    const auto give_up = late();
    while (at.look() == stream_look::nothing && steady_now() < give_up) {
    }
}

// In all loops of this process, as the kernel tells it.
std::size_t watched_descriptors() {
    std::size_t count = 0;
    for (const auto& one : std::filesystem::directory_iterator{"/proc/self/fdinfo"}) {
        std::ifstream in{one.path()};
        for (std::string line; std::getline(in, line);) {
            count += line.starts_with("tfd:") ? 1 : 0;
        }
    }
    return count;
}

TEST_SUITE_BEGIN("net/accepted");

TEST_CASE("connections come in their order, with their clients, and then none") {
    listener at;
    error_code error;
    CHECK(!accept_now(at.socket, error));
    CHECK(!error);
    auto first = at.connect();
    auto second = at.connect();
    const auto one = at.accept(error);
    const auto two = at.accept(error);
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
    auto one = at.accept(error);
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
    auto one = at.accept(error);
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
    auto two = at.accept(error);
    REQUIRE(two);
    byte_stream other{std::move(two->socket)};
    asio::write(next, asio::buffer("again", 5));
    CHECK(at.loop.finish(read_exactly(other, 5)) == "again");
}

TEST_CASE("the loop is told of a connection when somebody waits for it, and no sooner") {
    listener at;
    auto client = at.connect();
    const auto before = watched_descriptors();
    error_code error;
    auto one = at.accept(error);
    REQUIRE(one);
    byte_stream stream{std::move(one->socket)};
    asio::write(client, asio::buffer("hello", 5));
    char room[10];
    arrive(stream);
    CHECK(stream.try_read(asio::buffer(room), error) == 5);
    CHECK(stream.try_write(asio::buffer("world!", 6), error) == 6);
    CHECK(stream.try_read(asio::buffer(room), error) == 0);
    CHECK(!error);
    CHECK(watched_descriptors() == before);
    SUBCASE("a wait for bytes") {
        std::optional<error_code> told;
        stream.wait_readable([&](error_code how) { told = how; });
        CHECK(watched_descriptors() == before + 1);
        stream.wait_readable([&](error_code) {});  // of one that is watched
        CHECK(watched_descriptors() == before + 1);
        asio::write(client, asio::buffer("again", 5));
        at.loop.run_until([&] { return told.has_value(); });
        CHECK(!*told);
        CHECK(stream.try_read(asio::buffer(room), error) == 5);
    }
    SUBCASE("a wait for room") {
        std::optional<error_code> told;
        stream.wait_writable([&](error_code how) { told = how; });
        CHECK(watched_descriptors() == before + 1);
        at.loop.run_until([&] { return told.has_value(); });
        CHECK(!*told);
    }
    SUBCASE("none: it is closed, and its client hears of it") {
        stream.close(error);
        CHECK(!error);
        char last[10];
        CHECK(asio::read(client, asio::buffer(last), error) == 6);
        CHECK(error == asio::error::eof);
        CHECK(watched_descriptors() == before);
    }
    SUBCASE("none: it is cancelled, and moved") {
        stream.cancel(error);
        CHECK(!error);
        byte_stream other{std::move(stream)};
        other = byte_stream{other.take_socket()};
        CHECK(watched_descriptors() == before);
        asio::write(client, asio::buffer("again", 5));
        CHECK(at.loop.finish(read_exactly(other, 5)) == "again");
        CHECK(watched_descriptors() == before + 1);
    }
}

TEST_CASE("what came before the first wait is told, the end too") {
    struct noting final : read_wait::waiter {
        std::vector<error_code> told;
        void on_readable(error_code over) override { told.push_back(over); }
        void on_loop_gone() noexcept override {}
    };
    for (const bool just_seen : {false, true}) {
        CAPTURE(just_seen);
        listener at;
        auto client = at.connect();
        error_code error;
        auto one = at.accept(error);
        REQUIRE(one);
        byte_stream stream{std::move(one->socket)};
        noting noted;
        read_wait wait{at.loop.io, noted};
        char room[10];
        CHECK(stream.try_read(asio::buffer(room), error) == 0);
        asio::write(client, asio::buffer("hello", 5));
        stream.wait_readable(wait, just_seen);
        at.loop.run_until([&] { return noted.told.size() == 1; });
        CHECK(stream.try_read(asio::buffer(room), error) == 5);
        client.shutdown(tcp_socket::shutdown_send);
        stream.wait_readable(wait, just_seen);
        at.loop.run_until([&] { return noted.told.size() == 2; });
        CHECK(stream.try_read(asio::buffer(room), error) == 0);
        CHECK(error == asio::error::eof);
    }
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
