#include "tests/unit/net/pool_bench.hpp"

#include <deque>
#include <memory>
#include <random>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;
using namespace std::chrono_literals;

namespace {

awaitable<void> acquire_into(pool_bench& bench,
                             bool fresh_only,
                             steady_time until,
                             std::optional<attempt<origin_lease>>& result) {
    const origin_address to{"127.0.0.1", bench.port, false};
    auto got = co_await bench.pool.acquire(to, fresh_only, until);
    result.emplace(std::move(got));
}

awaitable<void> acquire_as(pool_bench& bench,
                           share_holder holder,
                           steady_time until,
                           std::deque<std::pair<share_holder, attempt<origin_lease>>>& served) {
    const origin_address to{"127.0.0.1", bench.port};
    auto got = co_await bench.pool.acquire(to, false, until, holder);
    served.emplace_back(holder, std::move(got));
}

/// Until the kernel has brought what the origin did to our side.
void await_readable(test_loop& loop, byte_stream& stream) {
    loop.run_until([&] { return stream.look() != stream_look::nothing; });
}

}  // namespace

TEST_SUITE_BEGIN("net/origin_pool");

TEST_CASE("a connection given back serves the next, the last used first") {
    pool_bench bench;
    auto first = bench.lease();
    auto second = bench.lease();
    CHECK(!first.reused());
    CHECK(first.endpoint() == "127.0.0.1:" + std::to_string(bench.port));
    const auto second_port = port_of(second);
    first.give_back();
    second.give_back();
    CHECK(!second);
    CHECK(bench.idle() == 2);
    const auto again = bench.pool.try_acquire({"127.0.0.1", bench.port, false});
    REQUIRE(again);
    auto& same = const_cast<origin_lease&>(again);
    CHECK(again.reused());
    CHECK(port_of(same) == second_port);
    CHECK(bench.pool.figures().dials == 2);
    CHECK(bench.pool.figures().opened == 2);
    CHECK(bench.pool.figures().reuses == 1);
    CHECK(bench.open() == 2);
}

TEST_CASE("a lease destroyed closes its connection") {
    pool_bench bench;
    {
        const auto lease = bench.lease();
        CHECK(bench.open() == 1);
    }
    CHECK(bench.open() == 0);
    CHECK(!bench.pool.try_acquire({"127.0.0.1", bench.port, false}));
    bench.await_accepted(1);
    CHECK(bench.finish(read_to_end(bench.accepted[0])).empty());
}

TEST_CASE("an idle connection that ended or has bytes in it is never used again") {
    pool_bench bench;
    auto lease = bench.lease();
    bench.await_accepted(1);
    auto& socket = lease.socket();
    SUBCASE("ended") {
        bench.accepted[0].close();
    }
    SUBCASE("bytes") {
        asio::write(bench.accepted[0], asio::buffer("H", 1));
    }
    await_readable(bench, socket);
    lease.give_back();
    auto next = bench.lease();
    CHECK(!next.reused());
    CHECK(bench.pool.figures().stale == 1);
    CHECK(bench.open() == 1);
}

TEST_CASE("a connection whose buffer is not empty is closed instead of kept") {
    pool_bench bench;
    auto lease = bench.lease();
    static_cast<void>(lease.buffer().prepare(16));
    lease.buffer().commit(1);
    lease.give_back();
    CHECK(bench.idle() == 0);
    CHECK(bench.open() == 0);
}

TEST_CASE("who was caught with surplus bytes has no connection reused, by any pool, for an hour") {
    pool_bench bench;
    const auto known = std::make_shared<distrusted_origins>();
    std::vector<std::string> kept;
    int first = 0;
    bench.pool.set_distrusted(
        known, [&](const origin_address& who, std::span<const std::string> names, bool anew) {
            CHECK(who.port == bench.port);
            kept.assign(names.begin(), names.end());
            first += anew ? 1 : 0;
        });
    const auto caught = [&] { return bench.pool.figures().surplus.load(); };
    auto lease = bench.lease();
    lease.note_kept("the first");
    bench.await_accepted(1);
    lease.give_back();
    lease = bench.lease();
    CHECK(lease.reused());
    SUBCASE("in the buffer") {
        static_cast<void>(lease.buffer().prepare(16));
        lease.buffer().commit(1);
        lease.give_back();
        CHECK(kept.empty());
    }
    SUBCASE("while idle, found before the next use") {
        lease.note_kept("a");
        lease.note_kept("b");
        asio::write(bench.accepted[0], asio::buffer("H", 1));
        await_readable(bench, lease.socket());
        lease.give_back();
        CHECK(caught() == 0);
        lease = bench.lease();
        CHECK_FALSE(lease.reused());
        lease.give_back();
        CHECK(kept == std::vector<std::string>{"a", "b"});
    }
    SUBCASE("said by who used it; the last four are told of") {
        for (const char* name : {"a", "b", "c", "d", "e"}) {
            lease.note_kept(name);
        }
        lease.note_surplus();
        lease.close();
        CHECK(kept == std::vector<std::string>{"e", "b", "c", "d"});
    }
    CHECK(caught() == 1);
    CHECK(first == 1);
    for (int i = 0; i < 2; ++i) {
        lease = bench.lease();
        CHECK_FALSE(lease.reused());
        lease.give_back();
        CHECK(bench.idle() == 0);
    }
    CHECK(known->has(distrusted_origins::name_of("127.0.0.1", bench.port, false), steady_now()));
}

TEST_CASE("who wants a fresh connection gets one, though another is idle") {
    pool_bench bench;
    bench.lease().give_back();
    auto fresh = bench.lease(true);
    CHECK(!fresh.reused());
    CHECK(bench.open() == 2);
    CHECK(bench.idle() == 1);
}

TEST_CASE("exempt and other connections to one host are kept apart") {
    pool_bench bench;
    bench.lease().give_back();
    CHECK(!bench.pool.try_acquire({"127.0.0.1", bench.port, true}));
    CHECK(!bench.pool.try_acquire({"127.0.0.2", bench.port, false}));
    CHECK(
        !bench.pool.try_acquire({"127.0.0.1", static_cast<std::uint16_t>(bench.port + 1), false}));
    CHECK(bench.pool.try_acquire({"127.0.0.1", bench.port, false}));
}

TEST_CASE("lanes to one host are kept apart, and each has the limit to itself") {
    config::origin_options one;
    one.connections = 1;
    pool_bench b{one};
    auto everybodys = b.lease();
    origin_address to{"127.0.0.1", b.port, false};
    to.lane = 1;
    auto got = b.finish(b.pool.acquire(to, false, late()));
    REQUIRE(got.has_value());
    CHECK_FALSE(got->reused());
    got->give_back();
    everybodys.give_back();
    CHECK(b.idle() == 2);
    auto again = b.finish(b.pool.acquire(to, false, late()));
    REQUIRE(again.has_value());
    CHECK(again->reused());
    b.pool.stop();
    CHECK(b.idle() == 0);
}

TEST_CASE("at the limit one waits for a connection given back, in turn") {
    pool_bench bench{{.connections = 1}};
    auto held = bench.lease();
    waiting first, second;
    bench.start(acquire_into(bench, false, late(), first));
    bench.start(acquire_into(bench, false, late(), second));
    bench.run_for(5ms);
    CHECK(!first);
    held.give_back();
    bench.run_until([&] { return first.has_value(); });
    REQUIRE((first && first->has_value()));
    CHECK((*first)->reused());
    CHECK(!second);
    (*first)->close();
    bench.run_until([&] { return second.has_value(); });
    REQUIRE((second && second->has_value()));
    CHECK(!(*second)->reused());
    CHECK(bench.open() == 1);
}

TEST_CASE("a waiter for a fresh connection takes the place of the one given back") {
    pool_bench bench{{.connections = 1}};
    auto held = bench.lease();
    waiting fresh;
    bench.start(acquire_into(bench, true, late(), fresh));
    bench.run_for(5ms);
    held.give_back();
    bench.run_until([&] { return fresh.has_value(); });
    REQUIRE((fresh && fresh->has_value()));
    CHECK(!(*fresh)->reused());
    CHECK(bench.open() == 1);
}

TEST_CASE("at the limit an idle connection makes room for a fresh one") {
    pool_bench bench{{.connections = 1}};
    bench.lease().give_back();
    const auto fresh = bench.lease(true);
    CHECK(!fresh.reused());
    CHECK(bench.open() == 1);
    CHECK(bench.idle() == 0);
}

TEST_CASE("a connection that dies in the hands of a waiter is dialled anew") {
    pool_bench bench{{.connections = 1}};
    auto held = bench.lease();
    bench.await_accepted(1);
    waiting next;
    bench.start(acquire_into(bench, false, late(), next));
    bench.run_for(5ms);
    bench.accepted[0].close();
    await_readable(bench, held.socket());
    held.give_back();
    bench.run_until([&] { return next.has_value(); });
    REQUIRE((next && next->has_value()));
    CHECK(!(*next)->reused());
    CHECK(bench.open() == 1);
}

TEST_CASE("waiting at the limit ends with the deadline, and the place in line with it") {
    pool_bench bench{{.connections = 1}};
    auto held = bench.lease();
    const auto late_one = bench.get(false, steady_now() + 20ms);
    REQUIRE(late_one.has_error());
    CHECK(late_one.error().code == failure_code::origin_connection_limit);
    held.give_back();
    CHECK(bench.idle() == 1);
    CHECK(bench.lease().reused());
}

TEST_CASE("a dial that fails leaves its place to the next") {
    pool_bench bench{{.connections = 1}};
    bench.origin.close();
    for (int i = 0; i < 3; ++i) {
        const auto got = bench.get(false, late());
        REQUIRE(got.has_error());
        CHECK(got.error().code == failure_code::connect_refused);
    }
    CHECK(bench.pool.figures().failures == 3);
    CHECK(bench.pool.figures().opened == 0);
    CHECK(bench.open() == 0);
}

TEST_CASE("a higher limit lets those in who wait") {
    pool_bench bench{{.connections = 1}};
    const auto held = bench.lease();
    waiting next;
    bench.start(acquire_into(bench, false, late(), next));
    bench.run_for(5ms);
    bench.pool.set_options({.connections = 2});
    bench.run_until([&] { return next.has_value(); });
    REQUIRE((next && next->has_value()));
    CHECK(bench.open() == 2);
}

TEST_CASE("one client has at most its share, and what it waits for is its own") {
    pool_bench bench{{.connections = 8, .connections_per_client = 2}};
    std::deque<std::pair<share_holder, attempt<origin_lease>>> served;
    for (int i = 0; i < 3; ++i) {
        bench.start(acquire_as(bench, client_at(1), late(), served));
    }
    bench.run_until([&] { return served.size() == 2; });
    CHECK(bench.open() == 2);
    const origin_address to{"127.0.0.1", bench.port};
    CHECK(bench.pool.any_used_up());
    CHECK(bench.pool.is_used_up(to, client_at(1)));
    CHECK_FALSE(bench.pool.is_used_up(to, client_at(2)));
    CHECK_FALSE(bench.pool.is_used_up(to, {}));

    SUBCASE("another client, and who is no one client, need not wait") {
        bench.start(acquire_as(bench, client_at(2), late(), served));
        for (int i = 0; i < 4; ++i) {
            bench.start(acquire_as(bench, {}, late(), served));
        }
        bench.run_until([&] { return served.size() == 7; });
        CHECK(served.size() == 7);
        CHECK(bench.open() == 7);
    }
    SUBCASE("one of its own that is given back is the next one's") {
        served[0].second->give_back();
        bench.run_until([&] { return served.size() == 3; });
        REQUIRE(served.size() == 3);
        REQUIRE(served[2].second.has_value());
        CHECK(served[2].second->reused());
        CHECK(bench.open() == 2);
    }
    SUBCASE("one of its own that is closed makes room for the next") {
        served[0].second->close();
        bench.run_until([&] { return served.size() == 3; });
        REQUIRE(served.size() == 3);
        CHECK(served[2].second.has_value());
        CHECK(bench.open() == 2);
    }
    SUBCASE("a larger share lets in who waits") {
        bench.pool.set_options({.connections = 8, .connections_per_client = 3});
        bench.run_until([&] { return served.size() == 3; });
        CHECK(served.size() == 3);
        CHECK(bench.pool.is_used_up(to, client_at(1)));
    }
    SUBCASE("stopping fails who waits") {
        bench.pool.stop();
        bench.run_until([&] { return served.size() == 3; });
        REQUIRE(served.size() == 3);
        REQUIRE(served[2].second.has_error());
        CHECK(served[2].second.error().code == failure_code::draining);
    }
    SUBCASE("an idle connection is not for who has its share") {
        bench.start(acquire_as(bench, client_at(2), late(), served));
        bench.run_until([&] { return served.size() == 3; });
        served[2].second->give_back();
        CHECK(bench.idle() == 1);
        CHECK_FALSE(bench.pool.try_acquire(to, client_at(1)));
        CHECK(bench.pool.try_acquire(to, client_at(2)));
    }
}

TEST_CASE("waiting for one's own share ends with the deadline, and says so") {
    pool_bench bench{{.connections = 8, .connections_per_client = 1}};
    std::deque<std::pair<share_holder, attempt<origin_lease>>> served;
    bench.start(acquire_as(bench, client_at(1), late(), served));
    bench.run_until([&] { return served.size() == 1; });
    bench.start(acquire_as(bench, client_at(1), steady_now() + 20ms, served));
    bench.run_until([&] { return served.size() == 2; });
    REQUIRE(served.size() == 2);
    REQUIRE(served[1].second.has_error());
    CHECK(served[1].second.error().code == failure_code::client_share_used);
    served[0].second->give_back();
    CHECK_FALSE(bench.pool.any_used_up());
    CHECK(bench.idle() == 1);
    bench.start(acquire_as(bench, client_at(1), late(), served));
    bench.run_until([&] { return served.size() == 3; });
    REQUIRE(served.size() == 3);
    CHECK(served[2].second.has_value());
}

TEST_CASE("clients that wait have their turns one after the other") {
    pool_bench bench{{.connections = 1, .connections_per_client = 1}};
    std::deque<std::pair<share_holder, attempt<origin_lease>>> served;
    auto held = bench.lease();
    for (int i = 0; i < 3; ++i) {
        bench.start(acquire_as(bench, client_at(1), late(), served));
    }
    bench.start(acquire_as(bench, client_at(2), late(), served));
    for (int i = 0; i < 2; ++i) {
        bench.start(acquire_as(bench, {}, late(), served));  // of many clients: each has its turn
    }
    bench.run_for(5ms);
    held.give_back();
    std::vector<share_holder> order;
    for (std::size_t i = 0; i < 6; ++i) {
        bench.run_until([&] { return served.size() > i; });
        REQUIRE(served.size() == i + 1);
        REQUIRE(served[i].second.has_value());
        order.push_back(served[i].first);
        i % 2 == 0 ? served[i].second->give_back() : served[i].second->close();
    }
    CHECK(order == std::vector<share_holder>{
                       client_at(1), client_at(2), {}, {}, client_at(1), client_at(1)});
}

TEST_CASE("whatever clients do, the pool knows in the end that nothing is in use") {
    std::mt19937 random{7};
    const auto below = [&](unsigned most) { return static_cast<unsigned>(random() % most); };
    for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        random.seed(seed);
        pool_bench bench{{.connections = 3, .connections_per_client = 2, .idle = 2}};
        std::deque<std::pair<share_holder, attempt<origin_lease>>> served;
        unsigned begun = 0;
        const auto let_go = [&] {
            if (served.empty()) {
                return;
            }
            auto one = std::move(served.front());
            served.pop_front();
            if (one.second.has_value() && below(2) == 0) {
                one.second->give_back();
            }
        };
        unsigned ended = 0;
        for (int step = 0; step < 60; ++step) {
            const auto had = served.size();
            switch (below(4)) {
            case 0:
            case 1: {
                const auto who = static_cast<unsigned char>(below(3));
                const auto until = below(4) == 0 ? steady_now() + 1ms : late();
                bench.start(
                    acquire_as(bench, who == 0 ? share_holder{} : client_at(who), until, served));
                ++begun;
                break;
            }
            case 2:
                ended += had > 0 ? 1 : 0;
                let_go();
                break;
            default:
                bench.pool.set_options({.connections = 1 + below(4),
                                        .connections_per_client = 1 + below(3),
                                        .idle = below(3)});
            }
            bench.run_for(1ms);
        }
        while (ended < begun) {
            bench.run_until([&] { return !served.empty(); });
            REQUIRE_FALSE(served.empty());
            ++ended;
            let_go();
        }
        CHECK(bench.open() == bench.idle());
        CHECK_FALSE(bench.pool.any_used_up());
        bench.pool.set_options({.connections = 2, .connections_per_client = 2});
        for (int i = 0; i < 2; ++i) {
            bench.start(acquire_as(bench, client_at(1), late(), served));
        }
        bench.run_until([&] { return served.size() == 2; });
        CHECK(served.size() == 2);
    }
}

TEST_CASE("no more than the limit stays idle, the longest unused going first") {
    pool_bench bench{{.connections = 4, .idle = 1}};
    auto first = bench.lease();
    auto second = bench.lease();
    const auto second_port = port_of(second);
    first.give_back();
    second.give_back();
    CHECK(bench.idle() == 1);
    CHECK(bench.open() == 1);
    auto again = bench.lease();
    CHECK(port_of(again) == second_port);
}

TEST_CASE("what the settings name is looked up on everybody's behalf") {
    pool_bench bench;
    std::deque<std::optional<attempt<resolved>>> asked;
    const auto ask = [](resolver& names,
                        std::string host,
                        share_holder by,
                        std::optional<attempt<resolved>>& into) -> awaitable<void> {
        auto got = co_await names.resolve(std::move(host), late(), by);
        into.emplace(std::move(got));
    };
    for (std::size_t i = 0; i < resolver::most_questions_of_one; ++i) {
        const auto name = "silent" + std::to_string(i) + ".test";
        bench.server.set(name, tests::dns_type::a, {.silent = true});
        bench.server.set(name, tests::dns_type::aaaa, {.silent = true});
        bench.start(ask(bench.names, name, client_at(1), asked.emplace_back()));
    }
    for (const auto* host : {"a.test", "b.test"}) {
        bench.server.set_v4(host, "127.0.0.1");
    }
    const auto get = [&](const char* host, bool exempt) {
        return bench.finish(
            bench.pool.acquire({host, bench.port, exempt}, false, late(), client_at(1)));
    };
    const auto refused = get("a.test", false);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == failure_code::client_share_used);
    // So many at once, and the server's socket would take no more.
    const auto last = "silent" + std::to_string(resolver::most_questions_of_one - 1) + ".test";
    bench.run_until([&] { return bench.server.asked(last, tests::dns_type::a) > 0; });
    const auto named = get("b.test", true);
    CAPTURE((named ? "" : named.error().detail));
    CHECK(named.has_value());
    bench.names.stop();
}

TEST_CASE("an idle connection is closed when it has been unused for too long") {
    pool_bench bench{{.idle_timeout = 30ms}};
    bench.lease().give_back();
    CHECK(bench.idle() == 1);
    bench.run_until([&] { return bench.idle() == 0; });
    CHECK(bench.open() == 0);
}

TEST_CASE(
    "a connection in steady use is dialled anew when an answer of name servers would be too old") {
    pool_bench bench{{.idle_timeout = 10s}, 1s};
    const auto since = steady_now();
    auto first = bench.lease();
    const auto port = port_of(first);
    first.give_back();
    auto used = port;
    while (used == port && steady_now() - since < 60s) {
        auto again = bench.lease();
        used = port_of(again);
        again.give_back();
    }
    CHECK(used != port);
    CHECK(bench.pool.figures().dials == 2);
    CHECK(steady_now() - since >= 1s);
}

TEST_CASE("an idle connection is judged by the guard of the day") {
    pool_bench bench;
    bench.lease().give_back();
    bench.pool.set_guard(make_guard(loopback_access()));
    bench.lease().give_back();
    CHECK(bench.pool.figures().dials == 1);
    bench.pool.set_guard(make_guard({}));
    CHECK(!bench.pool.try_acquire({"127.0.0.1", bench.port, false}));
    const auto refused = bench.get();
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == failure_code::destination_refused);
}

TEST_CASE("stopping closes what is idle, fails who waits, and keeps nothing given back") {
    pool_bench bench{{.connections = 2}};
    auto held = bench.lease();
    auto other = bench.lease();
    waiting next;
    bench.start(acquire_into(bench, false, late(), next));
    bench.run_for(5ms);
    bench.pool.stop();
    bench.run_until([&] { return next.has_value(); });
    REQUIRE(next);
    REQUIRE(next->has_error());
    CHECK(next->error().code == failure_code::draining);
    held.give_back();
    other.close();
    CHECK(bench.open() == 0);
    CHECK(bench.get().has_error());
}

TEST_CASE("a lease may outlive its pool, and a loop die with who waits in line") {
    origin_lease survivor;
    {
        auto bench = std::make_unique<pool_bench>(config::origin_options{.connections = 1});
        survivor = bench->lease();
        static waiting never;
        bench->start(acquire_into(*bench, false, late(), never));
        bench->run_for(5ms);
        // A socket can't outlive its io_context, so the lease gives it up while that lives.
        bench->pool.stop();
        survivor.close();
    }
    CHECK(!survivor);
}

TEST_SUITE_END();
