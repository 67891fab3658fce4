// How idle connections end that are more than may be kept.

#include "tests/unit/net/pool_bench.hpp"

#include <cstddef>
#include <string>

namespace reprise::proxy::net::test::of_idle_surplus {

using namespace std::chrono_literals;

namespace {

/// What the far side reads of its end.
awaitable<error_code> end_of(tcp_socket& from) {
    char byte = 0;
    const auto into = asio::buffer(&byte, 1);
    const auto [error, got] = co_await from.async_read_some(into, use_tuple);
    co_return error;
}

}  // namespace

TEST_SUITE("net/idle_surplus") {
    TEST_CASE("one that was answered is reset, so that its port is free again") {
        pool_bench bench{{.connections = 4, .idle = 1, .idle_timeout = 10s}};
        auto first = bench.lease();
        bench.await_accepted(1);
        auto second = bench.lease();
        bench.await_accepted(2);
        first.give_back();
        second.give_back();
        CHECK(bench.idle() == 1);
        CHECK(bench.finish(end_of(bench.accepted[0])) == asio::error::connection_reset);
    }

    TEST_CASE("one whose time is over ends quietly") {
        pool_bench bench{{.connections = 4, .idle = 1, .idle_timeout = 1ms}};
        auto only = bench.lease();
        bench.await_accepted(1);
        only.give_back();
        bench.run_until([&] { return bench.idle() == 0; });
        CHECK(bench.finish(end_of(bench.accepted[0])) == asio::error::eof);
    }

    TEST_CASE("what is on its way on one arrives before its end") {
        pool_bench bench{{.connections = 4, .idle = 1}};
        auto first = bench.lease();
        bench.await_accepted(1);
        auto second = bench.lease();
        bench.await_accepted(2);
        const std::string block(64u << 10, 'x');
        std::size_t sent = 0;
        for (std::size_t took = 1; took > 0; sent += took) {
            error_code error;
            took = first.socket().try_write(asio::buffer(block), error);
            REQUIRE_FALSE(error);
        }
        REQUIRE(first.socket().not_acknowledged() > 0);
        first.give_back();
        second.give_back();
        CHECK(bench.idle() == 1);
        CHECK(bench.finish(read_to_end(bench.accepted[0])).size() == sent);
    }
}

}  // namespace reprise::proxy::net::test::of_idle_surplus
