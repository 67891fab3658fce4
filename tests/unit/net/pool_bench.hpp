#pragma once
// A pool of connections, and an origin for it.

#include "proxy/net/origin_pool.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace reprise::proxy::net {

inline config::access_options loopback_access() {
    config::access_options access;
    access.allow_destinations = {
        {"", config::network{canonical(asio::ip::address_v4::loopback()), 128}, {}}};
    return access;
}

/// As a client: `last` is the end of its address.
inline share_holder client_at(unsigned char last) {
    return canonical(asio::ip::address_v4{{192, 0, 2, last}});
}

inline std::uint16_t port_of(origin_lease& lease) {
    error_code gone;
    return lease.socket().local_endpoint(gone).port();
}

using waiting = std::optional<attempt<origin_lease>>;

inline awaitable<void> acquire_into(origin_pool& pool, origin_address to, waiting& result) {
    auto got = co_await pool.acquire(to, false, late());
    result.emplace(std::move(got));
}

/// A pool, and an origin that accepts and says nothing.
struct pool_bench : test_loop {
    explicit pool_bench(config::origin_options wanted = {},
                        std::chrono::seconds longest = std::chrono::hours{1})
        : names{timer, keeping(asking(server), longest)},
          origin(listen_on_loopback(io)),
          port(origin.local_endpoint().port()),
          pool(timer, names, make_guard(loopback_access()), wanted) {
        accept();
    }

    static config::dns_options keeping(config::dns_options of, std::chrono::seconds longest) {
        of.max_ttl = longest;
        return of;
    }

    void accept() {
        origin.async_accept([this](const error_code& error, tcp_socket socket) {
            if (!error) {
                accepted.push_back(std::move(socket));
                accept();
            }
        });
    }

    /// What is this owner's alone; 0: anybody's.
    [[nodiscard]] origin_address owned_by(std::uint64_t owner) const {
        origin_address to{"127.0.0.1", port};
        to.owner = owner;
        return to;
    }
    attempt<origin_lease> get(bool fresh_only = false, std::optional<steady_time> until = {}) {
        return finish(pool.acquire({"127.0.0.1", port, false}, fresh_only, until.value_or(late())));
    }
    origin_lease lease(bool fresh_only = false) {
        auto got = get(fresh_only);
        REQUIRE(got.has_value());
        return std::move(*got);
    }
    /// A connection with TLS is asked for, and its far side shakes hands on a thread of its own.
    /// `while_dialled` happens before there is a connection.
    std::unique_ptr<tests::tls_peer> shake_hands_with(
        const tests::made_certificate& shown,
        waiting& result,
        const tests::tls_peer::server_wishes& wanted = {},
        const std::function<void()>& while_dialled = {}) {
        const auto had = accepted.size();
        const auto dials = pool.figures().dials.load();
        server.set_v4("a.test", "127.0.0.1");
        const origin_address to{while_dialled ? "a.test" : "127.0.0.1", port, false, true};
        start(acquire_into(pool, to, result));
        if (while_dialled) {
            run_until([&] { return pool.figures().dials > dials; });  // its name is looked up
            REQUIRE(accepted.size() == had);
            while_dialled();
        }
        await_accepted(had + 1);
        auto peer = std::make_unique<tests::tls_peer>(
            tests::tls_peer::server(accepted.back().release(), shown, wanted));
        std::thread far{[&] { static_cast<void>(peer->shake_hands()); }};
        run_until([&] { return result.has_value(); });
        far.join();
        return peer;
    }
    /// Until the origin has accepted so many, so that what it does is seen by the pool.
    void await_accepted(std::size_t count) {
        run_until([&] { return accepted.size() >= count; });
        REQUIRE(accepted.size() == count);
    }
    std::uint64_t open() const { return pool.figures().open; }
    std::uint64_t idle() const { return pool.figures().idle; }

    fake_dns server;
    resolver names;
    tcp_acceptor origin;
    std::uint16_t port;
    std::deque<tcp_socket> accepted;
    origin_pool pool;
};

}  // namespace reprise::proxy::net
