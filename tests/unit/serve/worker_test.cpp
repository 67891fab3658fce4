#include "tests/unit/serve/socket_bench.hpp"

#include <new>

namespace reprise::proxy::serve::test::of_worker {

namespace {

// A worker, and an origin of this machine that says nothing.
struct beside_origin : socket_bench {
    beside_origin() : socket_bench{fetch::test::with_memory(1u << 20)} {}

    net::tcp_acceptor origin = net::listen_on_loopback(at.w.io);
    net::origin_address there{"127.0.0.1", origin.local_endpoint().port()};

    attempt<net::origin_lease> connects() {
        std::optional<attempt<net::origin_lease>> got;
        asio::co_spawn(
            at.w.io,
            net::test_loop::put_into(at.w.origins.acquire(there, false, net::late()), got),
            [](const std::exception_ptr& thrown) {
                if (thrown) {
                    std::rethrow_exception(thrown);
                }
            });
        REQUIRE(goes_on_until([&] { return got.has_value(); }));
        return std::move(*got);
    }
};

/// One of the worker's clients, for whom nothing succeeds.
struct failing_client final : thread::client_connection {
    explicit failing_client(thread::worker& w) { insert_before(w.connections); }
    void fail() {
        ++times;
        throw std::bad_alloc{};
    }
    void end_if_idle() override { fail(); }
    void abort() override { fail(); }
    void look_at_client() override { fail(); }
    int times = 0;
};

}  // namespace

TEST_SUITE_BEGIN("serve/worker");

TEST_CASE("new settings say where connections lead, and how many there are, from then on") {
    beside_origin on;
    auto& w = on.at.w;
    const auto refused = on.connects();
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == failure_code::destination_refused);
    auto options = w.current->options;
    config::network loopback;
    loopback.address = net::canonical(asio::ip::address_v4::loopback());
    options.access.allow_destinations = {{"", loopback, {}}};
    w.adopt(thread::make_settings(options));
    const auto one = on.connects();
    REQUIRE(one.has_value());
    CHECK_FALSE(w.origins.must_wait(on.there, {}));
    options.origins.connections = 1;
    w.adopt(thread::make_settings(options));
    CHECK(w.origins.must_wait(on.there, {}));
}

TEST_CASE("what fails for one client is done for the others, and for what stands behind them") {
    beside_origin on;
    auto& w = on.at.w;
    failing_client one{w}, other{w};
    SUBCASE("as they are looked at") {
        w.watched = 1;
        CHECK_THROWS_AS(w.watch_clients(), std::bad_alloc);
        CHECK(w.watch.armed());
        w.watched = 0;
    }
    SUBCASE("as idle ones are ended") {
        CHECK_THROWS_AS(w.drain(), std::bad_alloc);
    }
    SUBCASE("as all is ended") {
        CHECK_THROWS_AS(w.abort(), std::bad_alloc);
        CHECK(w.timer.stopped());
    }
    CHECK(one.times == 1);
    CHECK(other.times == 1);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_worker
