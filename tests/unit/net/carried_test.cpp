#include "proxy/net/carried.hpp"
#include "tests/unit/net/loop.hpp"

#include <boost/asio/steady_timer.hpp>

#include <array>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

namespace reprise::proxy::net::test::of_carried {
namespace {

/// A connection whose kernel holds a few KiB on each side.
socket_pair narrow_pair(asio::io_context& io) {
    tcp_acceptor acceptor{io};
    acceptor.open(tcp::v4());
    acceptor.set_option(tcp_acceptor::receive_buffer_size{4096});
    acceptor.bind({asio::ip::address_v4::loopback(), 0});
    acceptor.listen(1);
    tcp_socket ours{io};
    ours.open(tcp::v4());
    ours.set_option(tcp_socket::send_buffer_size{4096});
    ours.connect(acceptor.local_endpoint());
    auto theirs = acceptor.accept();
    prepare_socket(ours);
    prepare_socket(theirs);
    return {std::move(ours), std::move(theirs)};
}

struct carried_bench : test_loop {
    explicit carried_bench(std::chrono::milliseconds patience = carried_write_patience,
                           std::shared_ptr<void> held = nullptr)
        : pair{narrow_pair(io)},
          outer{pair.ours.native_handle()} {
        auto made = carry(byte_stream{std::move(pair.ours)}, timer, patience, std::move(held));
        REQUIRE(made.has_value());
        near = std::move(*made);
    }
    /// Whatever can go on without time passing goes on.
    void settle() {
        io.restart();
        while (io.poll_one() > 0) {
        }
    }
    /// Nothing opens a descriptor meanwhile.
    [[nodiscard]] bool outer_is_closed() const { return ::fcntl(outer, F_GETFD) < 0; }

    socket_pair pair;
    const int outer;  // our descriptor of the outer connection
    tcp_socket near{io};
};

/// Reads 256 bytes every 5 ms, and no faster, whatever the machine: 16 KiB take 320 ms.
struct slow_reader {
    std::size_t got = 0;
    std::optional<error_code> end{};

    awaitable<void> read(tcp_socket& from) {
        asio::steady_timer next{from.get_executor()};
        std::array<char, 256> block{};
        for (;;) {
            const auto room = asio::buffer(block);
            const auto [error, count] = co_await from.async_read_some(room, use_tuple);
            got += count;
            if (error) {
                end = error;
                co_return;
            }
            next.expires_after(5ms);
            static_cast<void>(co_await next.async_wait(use_tuple));
        }
    }
};

}  // namespace

TEST_SUITE_BEGIN("net/carried");

TEST_CASE("an end of the outer connection is the near end's, after its bytes") {
    carried_bench bench;
    REQUIRE_FALSE(bench.finish(write_text(bench.pair.theirs, "the last")));
    bench.pair.theirs.close();
    CHECK(bench.finish(read_to_end(bench.near)) == "the last");
}

TEST_CASE("that the near end sends nothing more is passed on, and what comes inwards goes on") {
    carried_bench bench;
    REQUIRE_FALSE(bench.finish(write_text(bench.near, "the last")));
    bench.near.shutdown(tcp_socket::shutdown_send);
    CHECK(bench.finish(read_to_end(bench.pair.theirs)) == "the last");
    const auto upload = pattern(300'000);
    bench.start([](tcp_socket& far, std::string text) -> awaitable<void> {
        CHECK_FALSE(co_await write_text(far, std::move(text)));
    }(bench.pair.theirs, upload));
    CHECK(bench.finish(read_exactly(bench.near, upload.size())) == upload);
    CHECK_FALSE(bench.outer_is_closed());
    // A silent peer is not waited for.
    bench.near.close();
    bench.run_until([&] { return bench.outer_is_closed(); });
    CHECK(bench.outer_is_closed());
}

TEST_CASE("a near end that is closed ends the outer connection, after its bytes") {
    carried_bench bench;
    REQUIRE_FALSE(bench.finish(write_text(bench.near, "the last")));
    bench.near.close();
    CHECK(bench.finish(read_to_end(bench.pair.theirs)) == "the last");
    bench.run_until([&] { return bench.outer_is_closed(); });
    CHECK(bench.outer_is_closed());
}

TEST_CASE("who takes something in each period is not given up, however long a piece takes") {
    carried_bench bench{240ms};
    const auto text = pattern(100'000);
    bench.start([](tcp_socket& near, std::string all) -> awaitable<void> {
        static_cast<void>(co_await write_text(near, std::move(all)));
        near.shutdown(tcp_socket::shutdown_send);
    }(bench.near, text));
    slow_reader far;
    bench.start(far.read(bench.pair.theirs));
    bench.run_until([&] { return far.end.has_value(); });
    REQUIRE(far.end);
    CHECK(*far.end == asio::error::eof);
    CHECK(far.got == text.size());
}

TEST_CASE("what is left behind a closed near end has one period in all") {
    carried_bench bench{240ms};  // what is left takes longer, and each byte of it is progress
    bench.start([](tcp_socket& near) -> awaitable<void> {
        static_cast<void>(co_await write_text(near, pattern(1'000'000)));
    }(bench.near));
    bench.settle();  // as much as goes has gone
    bench.near.close();
    slow_reader far;
    bench.start(far.read(bench.pair.theirs));
    bench.run_until([&] { return far.end.has_value(); });
    REQUIRE(far.end);
    CHECK(*far.end == asio::error::connection_reset);
    CHECK(bench.outer_is_closed());
}

TEST_CASE("what is to last as long as the outer connection does, and goes with it") {
    auto token = std::make_shared<int>();
    const std::weak_ptr<int> held = token;
    carried_bench bench{carried_write_patience, std::move(token)};
    bench.start([](tcp_socket& near) -> awaitable<void> {
        static_cast<void>(co_await write_text(near, pattern(1'000'000)));
    }(bench.near));
    bench.settle();  // as much as goes has gone
    bench.near.close();
    bench.settle();
    CHECK_FALSE(bench.outer_is_closed());
    CHECK_FALSE(held.expired());
    bench.start([](tcp_socket& far) -> awaitable<void> {
        static_cast<void>(co_await read_to_end(far));
    }(bench.pair.theirs));
    bench.run_until([&] { return held.expired(); });
    CHECK(held.expired());
    CHECK(bench.outer_is_closed());
}

TEST_CASE("little lies unsent in the outer connection and between the ends") {
    carried_bench bench;
    int most = 0;
    ::socklen_t size = sizeof most;
    REQUIRE(::getsockopt(bench.outer, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, &size) == 0);
    CHECK(most == 16 << 10);
    std::size_t taken = 0;
    error_code full;
    const auto block = pattern(4096);
    while (!full) {
        taken += bench.near.write_some(asio::buffer(block), full);
    }
    CHECK(full == asio::error::would_block);
    CHECK(taken <= 48 << 10);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_carried
