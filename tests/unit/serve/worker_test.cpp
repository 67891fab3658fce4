#include "tests/unit/serve/socket_bench.hpp"

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

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_worker
