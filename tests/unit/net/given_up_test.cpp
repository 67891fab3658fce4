#include "proxy/net/coroutine.hpp"
#include "proxy/net/dial.hpp"
#include "tests/unit/net/addresses.hpp"
#include "tests/unit/net/pool_bench.hpp"
#include "tests/unit/net/silent_port.hpp"

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace reprise::proxy::net::test::of_given_up {

namespace {

/// Nothing here ends by itself within a test.
steady_time never() {
    return steady_now() + std::chrono::hours{1};
}

/// What somebody waits for, until it is given up.
struct awaited {
    awaited(test_loop& loop, awaitable<void> work) {
        auto on_end = [this](const std::exception_ptr&) { is_over = true; };
        begin_coroutine(loop.io, std::move(work), std::move(on_end), end.slot());
    }
    void give_up() { end.emit(asio::cancellation_type::terminal); }

    asio::cancellation_signal end;
    bool is_over = false;
};

awaitable<void> dial_into(pool_bench& bench,
                          std::string host,
                          std::uint16_t port,
                          std::optional<attempt<tcp_socket>>& result) {
    auto guard = make_guard(loopback_access());
    auto got = co_await dial(bench.names, std::move(guard), std::move(host), port, false, never());
    result.emplace(std::move(got));
}

awaitable<void> acquire_for(pool_bench& bench,
                            std::uint16_t port,
                            share_holder whom,
                            waiting& result) {
    const origin_address to{"127.0.0.1", port};
    auto got = co_await bench.pool.acquire(to, false, never(), whom);
    result.emplace(std::move(got));
}

}  // namespace

TEST_SUITE_BEGIN("net/given_up");

TEST_CASE("a dial that is given up ends with all its sockets, to one address or to several") {
    for (const std::ptrdiff_t tried : {1, 2}) {
        CAPTURE(tried);
        pool_bench bench;
        const silent_port silent{bench.io, ip("127.0.0.1")};
        const std::string at = "127.0.0.1";
        bench.server.set("slow.test", dns_type::a, {0, {at, at, at, at}});
        bench.server.set("slow.test", dns_type::aaaa, {});
        const auto unasked = descriptors();
        REQUIRE(bench.finish(bench.names.resolve("slow.test", late())).has_value());
        // Whatever asked has been closed, though one family may have been waited for in vain.
        bench.run_until([&] { return descriptors() == unasked; });
        const auto before = descriptors();
        std::optional<attempt<tcp_socket>> result;
        const auto host = tried == 1 ? at : "slow.test";
        awaited one{bench, dial_into(bench, host, silent.port(), result)};
        bench.run_until([&] { return descriptors() == before + tried; });
        REQUIRE(descriptors() == before + tried);
        CHECK_FALSE(one.is_over);
        one.give_up();
        bench.run_until([&] { return one.is_over; });
        CHECK(one.is_over);
        CHECK_FALSE((result && result->has_value()));
        CHECK(descriptors() == before);
    }
}

TEST_CASE("one that is given up while its name is asked for ends too") {
    pool_bench bench;
    bench.server.be_silent();
    std::optional<attempt<tcp_socket>> result;
    awaited one{bench, dial_into(bench, "slow.test", bench.port, result)};
    bench.run_until([&] { return bench.names.asked() > 0; });
    one.give_up();
    bench.run_until([&] { return one.is_over; });
    CHECK(one.is_over);
}

TEST_CASE("whoever is given up in an origin's line leaves it") {
    pool_bench bench{{.connections = 1}};
    auto held = bench.lease();
    waiting result;
    awaited one{bench, acquire_for(bench, bench.port, {}, result)};
    bench.run_for(std::chrono::milliseconds{5});
    CHECK_FALSE(one.is_over);
    one.give_up();
    bench.run_until([&] { return one.is_over; });
    CHECK(one.is_over);
    CHECK_FALSE((result && result->has_value()));
    held.give_back();
    CHECK(bench.idle() == 1);
    CHECK(bench.lease().reused());
}

TEST_CASE("what comes free for one who is given up just then is not lost") {
    pool_bench bench{{.connections = 1, .connections_per_client = 1}};
    auto held = bench.lease();
    waiting result;
    awaited one{bench, acquire_for(bench, bench.port, client_at(1), result)};
    bench.run_for(std::chrono::milliseconds{5});
    SUBCASE("a connection") {
        held.give_back();
    }
    SUBCASE("a place for one") {
        held.close();
    }
    one.give_up();
    bench.run_until([&] { return one.is_over; });
    CHECK(one.is_over);
    result.reset();
    CHECK(bench.open() == bench.idle());
    CHECK_FALSE(bench.pool.any_used_up());
    CHECK_FALSE(bench.pool.must_wait({"127.0.0.1", bench.port}, client_at(1)));
    (void)bench.lease();
}

TEST_CASE("a dial that is given up gives its place and its share to the next, once") {
    pool_bench bench{{.connections = 1, .connections_per_client = 1}};
    const silent_port silent{bench.io, ip("127.0.0.1")};
    const origin_address to{"127.0.0.1", silent.port()};
    const auto& dials = bench.pool.figures().dials;
    waiting first, second;
    awaited one{bench, acquire_for(bench, silent.port(), client_at(1), first)};
    bench.run_until([&] { return dials == 1; });
    awaited other{bench, acquire_for(bench, silent.port(), client_at(2), second)};
    bench.run_for(std::chrono::milliseconds{5});
    CHECK(dials == 1);
    CHECK(bench.pool.is_used_up(to, client_at(1)));
    one.give_up();
    bench.run_until([&] { return one.is_over && dials == 2; });
    CHECK(one.is_over);
    CHECK(dials == 2);
    CHECK_FALSE(bench.pool.is_used_up(to, client_at(1)));
    CHECK(bench.pool.is_used_up(to, client_at(2)));
    other.give_up();
    bench.run_until([&] { return other.is_over; });
    CHECK(other.is_over);
    CHECK_FALSE(bench.pool.any_used_up());
    CHECK_FALSE(bench.pool.must_wait(to, {}));
    CHECK(bench.open() == 0);
    CHECK(bench.pool.figures().failures == 0);  // of an origin of which nothing was heard
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_given_up
