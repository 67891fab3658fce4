#include "proxy/base/sanitized.hpp"
#include "proxy/net/dial.hpp"
#include "tests/unit/net/addresses.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/silent_port.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <sys/resource.h>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;
using namespace std::chrono_literals;

namespace {

/// A loop, a name server, a resolver and a guard that lets loopback pass.
struct dial_bench : test_loop {
    fake_dns server;
    resolver names{timer, asking(server)};
    std::shared_ptr<const destination_guard> guard = loopback_allowed();

    static std::shared_ptr<const destination_guard> loopback_allowed() {
        config::access_options access;
        access.allow_destinations = {{"", config::network{canonical(ip("127.0.0.0")), 104}, {}},
                                     {"", config::network{canonical(ip("::1")), 128}, {}}};
        return make_guard(access);
    }

    attempt<tcp_socket> to(const std::string& host,
                           std::uint16_t port,
                           bool exempt = false,
                           std::optional<steady_time> until = {}) {
        return finish(dial(names, guard, host, port, exempt, until.value_or(late())));
    }
};

/// One port, answering at 127.0.0.1 and silent at 127.0.0.9. A port that is free at the one address
/// need not be at the other, so several are tried; the first is the one that everybody uses.
struct half_silent_port {
    explicit half_silent_port(asio::io_context& io) {
        for (int attempt = 0; attempt < 20 && !silent; ++attempt) {
            answering.emplace(io, tcp::endpoint{asio::ip::address_v4::loopback(), 0});
            try {
                silent.emplace(io, ip("127.0.0.9"), answering->local_endpoint().port());
            } catch (const boost::system::system_error&) {  // somebody has it there
            }
        }
    }
    std::optional<silent_port> silent;
    std::optional<tcp_acceptor> answering;
};

}  // namespace

TEST_SUITE_BEGIN("net/dial");

TEST_CASE("families take turns, IPv6 first, each in its own order") {
    const std::vector mixed{ip("192.0.2.1"), ip("192.0.2.2"), ip("192.0.2.3"), ip("2001:db8::1")};
    const std::vector expected{
        ip("2001:db8::1"), ip("192.0.2.1"), ip("192.0.2.2"), ip("192.0.2.3")};
    CHECK(interleaved(mixed) == expected);
    CHECK(interleaved({}).empty());
    const std::vector six{ip("2001:db8::2"), ip("2001:db8::1")};
    CHECK(interleaved(six) == six);
}

TEST_CASE("a name and a numeric address are connected to") {
    dial_bench bench;
    auto origin = listen_on_loopback(bench.io);
    bench.server.set_v4("origin.test", "127.0.0.1");
    const auto port = origin.local_endpoint().port();
    for (const auto* host : {"origin.test", "127.0.0.1"}) {
        CAPTURE(host);
        auto socket = bench.to(host, port);
        REQUIRE(socket.has_value());
        auto accepted = origin.accept();
        CHECK(socket->remote_endpoint() == origin.local_endpoint());
        CHECK(socket->non_blocking());
        tcp::no_delay nagle;
        socket->get_option(nagle);
        CHECK(nagle.value());
    }
}

TEST_CASE("the guard judges the address that a name leads to") {
    dial_bench bench;
    auto origin = listen_on_loopback(bench.io);
    const auto port = origin.local_endpoint().port();
    bench.guard = make_guard({});
    bench.server.set_v4("rebind.test", "127.0.0.1");
    auto refused = bench.to("rebind.test", port);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == failure_code::destination_refused);
    CHECK(refused.error().detail.find("127.0.0.1") != std::string::npos);
    CHECK(refused.error().detail.find("access.allow_destinations") != std::string::npos);
    CHECK(bench.to("rebind.test", port, true).has_value());
}

TEST_CASE("a name is connected to at the addresses that the guard allows only") {
    dial_bench bench;
    auto origin = listen_on_loopback(bench.io);
    config::access_options access;
    access.allow_destinations = {{"", config::network{canonical(ip("127.0.0.1")), 128}, {}}};
    bench.guard = make_guard(access);
    bench.server.set("mixed.test", dns_type::a, {0, {"127.0.0.2", "127.0.0.1"}});
    bench.server.set("mixed.test", dns_type::aaaa, {0, {"::1"}});
    const auto socket = bench.to("mixed.test", origin.local_endpoint().port());
    REQUIRE(socket.has_value());
    CHECK(socket->remote_endpoint().address() == ip("127.0.0.1"));
}

TEST_CASE("nobody listening is a refusal, of one address and of all") {
    dial_bench bench;
    const closed_port closed{bench.io};
    bench.server.set("many.test", dns_type::a, {0, {"127.0.0.1", "127.0.0.2"}});
    bench.server.set("many.test", dns_type::aaaa, {});
    for (const auto* host : {"127.0.0.1", "many.test"}) {
        CAPTURE(host);
        const auto socket = bench.to(host, closed.port);
        REQUIRE(socket.has_error());
        CHECK(socket.error().code == failure_code::connect_refused);
    }
}

TEST_CASE("an address that fails gives way to the next at once") {
    dial_bench bench;
    auto origin = listen_on_loopback(bench.io);  // on 127.0.0.1 only
    // So many that a delay behind each would be longer than any machine is away.
    std::vector<std::string> addresses;
    for (int last = 2; last < 27; ++last) {
        addresses.push_back("127.0.0." + std::to_string(last));
    }
    addresses.emplace_back("127.0.0.1");
    bench.server.set("some.test", dns_type::a, {0, addresses});
    bench.server.set("some.test", dns_type::aaaa, {0, {"::1"}});
    const auto start = steady_now();
    const auto socket = bench.to("some.test", origin.local_endpoint().port());
    REQUIRE(socket.has_value());
    CHECK(socket->remote_endpoint().address() == ip("127.0.0.1"));
    CHECK(steady_now() - start < 26 * 250ms);  // with a delay behind each
}

TEST_CASE("an address that is silent is raced by the next") {
    dial_bench bench;
    const half_silent_port port{bench.io};
    REQUIRE(port.silent.has_value());
    bench.server.set("slow.test", dns_type::a, {0, {"127.0.0.9", "127.0.0.1"}});
    bench.server.set("slow.test", dns_type::aaaa, {});
    const auto socket = bench.to("slow.test", port.silent->port());
    REQUIRE(socket.has_value());
    CHECK(socket->remote_endpoint().address() == ip("127.0.0.1"));
}

TEST_CASE(
    "of a name with many silent addresses a few are tried at a time, and the last is reached") {
    dial_bench bench;
    const half_silent_port port{bench.io};
    REQUIRE(port.silent.has_value());
    std::deque<silent_port> silent;
    std::vector<std::string> addresses;
    for (int last = 20; silent.size() < 14 && last < 60; ++last) {
        const auto at = "127.0.0." + std::to_string(last);
        try {
            silent.emplace_back(bench.io, ip(at.c_str()), port.silent->port());
            addresses.push_back(at);
        } catch (const boost::system::system_error&) {  // somebody has it there
        }
    }
    REQUIRE(addresses.size() == 14);
    addresses.emplace_back("127.0.0.1");
    bench.server.set("slow.test", dns_type::a, {0, addresses});
    bench.server.set("slow.test", dns_type::aaaa, {});
    const auto before = descriptors();
    std::ptrdiff_t most = 0;
    deadline look{bench.timer, [&] {
                      most = std::max(most, descriptors() - before);
                      look.expire_after(50ms);
                  }};
    look.expire_after(50ms);
    const auto socket = bench.to("slow.test", port.silent->port(), false, steady_now() + 60s);
    look.clear();
    REQUIRE(socket.has_value());
    CHECK(socket->remote_endpoint().address() == ip("127.0.0.1"));
    CHECK(most >= 4);
    CHECK(most <= 8 + 4);  // and what asks the name server
}

TEST_CASE("silence until the deadline is a timeout") {
    dial_bench bench;
    const silent_port silent{bench.io, ip("127.0.0.1")};
    bench.server.set("slow.test", dns_type::a, {0, {"127.0.0.1", "127.0.0.1"}});
    bench.server.set("slow.test", dns_type::aaaa, {});
    // The name is known: the time is the connection's alone.
    REQUIRE(bench.finish(bench.names.resolve("slow.test", late())).has_value());
    for (const auto* host : {"127.0.0.1", "slow.test"}) {
        CAPTURE(host);
        const auto socket = bench.to(host, silent.port(), false, steady_now() + 100ms);
        REQUIRE(socket.has_error());
        CHECK(socket.error().code == failure_code::connect_timeout);
    }
}

namespace {

/// While it lives there is no descriptor for this process; those that are open stay.
class no_descriptors {
public:
    no_descriptors() {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        auto none = before_;
        none.rlim_cur = 0;
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    }
    ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    no_descriptors(const no_descriptors&) = delete;
    no_descriptors& operator=(const no_descriptors&) = delete;

private:
    rlimit before_{};
};

}  // namespace

// UBSan asks through a pipe whether memory may be read.
TEST_CASE(
    "without a descriptor nobody knows whether it can be reached, by one address or by several" *
    doctest::skip(heap_is_watched)) {
    dial_bench bench;
    const closed_port closed{bench.io};
    bench.server.set("many.test", dns_type::a, {0, {"127.0.0.1", "127.0.0.2"}});
    bench.server.set("many.test", dns_type::aaaa, {});
    for (const auto* host : {"127.0.0.1", "many.test"}) {
        CAPTURE(host);
        REQUIRE(bench.to(host, closed.port).has_error());  // the name is known now
        std::optional<attempt<tcp_socket>> got;
        {
            const no_descriptors now;
            got.emplace(bench.to(host, closed.port));
        }
        REQUIRE(got->has_error());
        CHECK(got->error().code == failure_code::out_of_memory);
    }
}

TEST_CASE("that all local ports are in use is our own lack, that no address leads there is none") {
    const auto said = make_error_code(boost::system::errc::address_not_available);
    CHECK(nothing_left(said, {ip("127.0.0.1"), 80}));
    // Where the system says the same of a socket that takes no port of those, it is the address.
    CHECK_FALSE(nothing_left(said, {ip("255.255.255.255"), 80}));
    CHECK_FALSE(nothing_left(asio::error::host_unreachable, {ip("127.0.0.1"), 80}));
    CHECK_FALSE(nothing_left(asio::error::connection_refused, {ip("127.0.0.1"), 80}));
    CHECK(nothing_left(asio::error::no_descriptors, {ip("127.0.0.1"), 80}));
}

TEST_CASE("a family that is late is connected to where the other's addresses lead nowhere") {
    dial_bench bench;
    auto origin = listen_on_loopback(bench.io);
    const auto port = origin.local_endpoint().port();
    constexpr auto later_than_anybody_waits = 600ms;
    bench.server.set(
        "late.test", dns_type::a, {0, {"127.0.0.1"}, 60, false, later_than_anybody_waits});
    SUBCASE("nobody listens there") {
        bench.server.set("late.test", dns_type::aaaa, {0, {"::1"}});
    }
    SUBCASE("the guard lets nobody through to them") {
        bench.server.set("late.test", dns_type::aaaa, {0, {"fe80::1"}});
    }
    SUBCASE("a server knows of no such name in that family") {
        constexpr int no_such_name = 3;
        bench.server.set("late.test", dns_type::aaaa, {no_such_name});
    }
    const auto socket = bench.to("late.test", port);
    REQUIRE(socket.has_value());
    CHECK(socket->remote_endpoint() == origin.local_endpoint());
    CHECK(bench.names.asked() == 1);
}

TEST_CASE("a family that is late is connected to where the other's addresses are silent") {
    dial_bench bench;
    auto origin = listen_on_loopback(bench.io);
    const auto port = origin.local_endpoint().port();
    std::optional<silent_port> silent;
    try {
        silent.emplace(bench.io, ip("::1"), port);
    } catch (const boost::system::system_error&) {
        MESSAGE("no IPv6 here, or somebody has the port there");
        return;
    }
    bench.server.set("late.test", dns_type::a, {0, {"127.0.0.1"}, 60, false, 600ms});
    bench.server.set("late.test", dns_type::aaaa, {0, {"::1"}});
    const auto socket = bench.to("late.test", port, false, steady_now() + 5s);
    REQUIRE(socket.has_value());
    CHECK(socket->remote_endpoint() == origin.local_endpoint());
}

TEST_CASE("where there is no other family silence until the deadline is a timeout still") {
    dial_bench bench;
    const silent_port silent{bench.io, ip("127.0.0.1")};
    bench.server.set("slow.test", dns_type::a, {0, {"127.0.0.1"}});
    bench.server.set("slow.test", dns_type::aaaa, {.rcode = 2, .addresses = {}});
    const auto until = steady_now() + 400ms;
    const auto socket = bench.to("slow.test", silent.port(), false, until);
    REQUIRE(socket.has_error());
    CHECK(socket.error().code == failure_code::connect_timeout);
    CHECK(steady_now() >= until);
}

TEST_CASE("where no family can be connected to, the one that refused is named") {
    dial_bench bench;
    const closed_port closed{bench.io};
    bench.server.set("late.test", dns_type::a, {0, {"127.0.0.1"}});
    bench.server.set("late.test", dns_type::aaaa, {0, {"fe80::1"}, 60, false, 600ms});
    const auto socket = bench.to("late.test", closed.port);
    REQUIRE(socket.has_error());
    CHECK(socket.error().code == failure_code::connect_refused);
}

TEST_CASE("a name that does not exist is the resolver's error") {
    dial_bench bench;
    const auto socket = bench.to("missing.test", 80);
    REQUIRE(socket.has_error());
    CHECK(socket.error().code == failure_code::dns_not_found);
}

namespace {
awaitable<void> dial_and_forget(dial_bench& bench, std::string host, std::uint16_t port) {
    static_cast<void>(
        co_await dial(bench.names, bench.guard, std::move(host), port, false, late()));
}
}  // namespace

TEST_CASE("a loop may be destroyed with connections under way") {
    dial_bench bench;
    const silent_port silent{bench.io, ip("127.0.0.1")};
    bench.server.set("slow.test", dns_type::a, {0, {"127.0.0.1", "127.0.0.1"}});
    bench.server.set("slow.test", dns_type::aaaa, {});
    bench.start(dial_and_forget(bench, "slow.test", silent.port()));
    bench.start(dial_and_forget(bench, "127.0.0.1", silent.port()));
    bench.run_for(50ms);
}

TEST_SUITE_END();
