// Connections that are one client's alone, in a pool whose limits are for all.

#include "tests/unit/net/pool_bench.hpp"

#include <deque>
#include <optional>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net/owned_connections");

TEST_CASE("who is logged in where counts to the limits of that origin, like anybody") {
    pool_bench bench{{.connections = 2, .connections_per_client = 1}};
    const owned_connections anns{bench.pool}, bobs{bench.pool};
    const auto get = [&](std::uint64_t owner, share_holder holder, steady_time until) {
        return bench.finish(bench.pool.acquire(bench.owned_by(owner), false, until, holder));
    };
    const auto wait_in_vain = [&](std::uint64_t owner, share_holder holder) {
        return get(owner, holder, steady_now() + 20ms);
    };
    auto ann = get(anns.owner(), client_at(1), late());
    REQUIRE(ann.has_value());
    for (const auto owner : {anns.owner(), bobs.owner(), std::uint64_t{0}, owner_of_one_request}) {
        CAPTURE(owner);
        CHECK(bench.pool.is_used_up(bench.owned_by(owner), client_at(1)));
        const auto more = wait_in_vain(owner, client_at(1));
        REQUIRE(more.has_error());
        CHECK(more.error().code == failure_code::client_share_used);
    }
    const auto another = get(0, client_at(2), late());
    REQUIRE(another.has_value());
    CHECK(bench.pool.must_wait(bench.owned_by(bobs.owner()), client_at(3)));
    const auto one_more = wait_in_vain(bobs.owner(), client_at(3));
    REQUIRE(one_more.has_error());
    CHECK(one_more.error().code == failure_code::origin_connection_limit);
}

TEST_CASE("what is one client's own serves nobody else, and makes room for them at the limit") {
    pool_bench bench{{.connections = 1}};
    std::optional<owned_connections> anns{std::in_place, bench.pool};
    const auto hers = bench.owned_by(anns->owner());
    const auto anybodys = bench.owned_by(0);
    const auto get = [&](const origin_address& to) {
        auto got = bench.finish(bench.pool.acquire(to, false, late()));
        REQUIRE(got.has_value());
        return std::move(*got);
    };
    get(hers).give_back();
    CHECK_FALSE(bench.pool.try_acquire(anybodys));
    CHECK(get(hers).reused());  // closed here, and not given back
    get(hers).give_back();
    auto held = get(anybodys);  // in the place of hers
    CHECK_FALSE(held.reused());
    CHECK(bench.open() == 1);
    waiting she;
    bench.start(acquire_into(bench.pool, hers, she));
    bench.run_for(5ms);
    held.give_back();  // the place is hers now, and the connection is not
    bench.run_until([&] { return she.has_value(); });
    REQUIRE((she && she->has_value()));
    CHECK_FALSE((*she)->reused());
    CHECK(bench.open() == 1);
    (*she)->give_back();
    CHECK(bench.idle() == 1);
    anns.reset();
    CHECK(bench.idle() == 0);
    CHECK(bench.open() == 0);
}

TEST_CASE("nothing is kept for an owner that has gone, or of one request") {
    pool_bench bench;
    std::optional<owned_connections> anns{std::in_place, bench.pool};
    for (const auto owner : {anns->owner(), owner_of_one_request}) {
        CAPTURE(owner);
        const auto to = bench.owned_by(owner);
        auto got = bench.finish(bench.pool.acquire(to, false, late()));
        REQUIRE(got.has_value());
        anns.reset();
        got->give_back();
        CHECK(bench.idle() == 0);
        CHECK(bench.open() == 0);
    }
}

TEST_CASE("one client keeps no more for itself than it may use at once") {
    pool_bench bench{{.connections_per_client = 2, .idle = 1}};
    std::deque<owned_connections> logins;
    for (int i = 0; i < 4; ++i) {
        const auto& one = logins.emplace_back(bench.pool);
        const auto to = bench.owned_by(one.owner());
        auto got = bench.finish(bench.pool.acquire(to, false, late(), client_at(i < 3 ? 1 : 2)));
        REQUIRE(got.has_value());
        got->give_back();
    }
    CHECK(bench.idle() == 3);
    const auto first = bench.owned_by(logins.front().owner());
    CHECK_FALSE(bench.pool.try_acquire(first, client_at(1)));
    bench.lease().give_back();
    CHECK(bench.idle() == 4);
}

TEST_CASE("those who come by one that speaks for many keep what is their own each") {
    pool_bench bench{{.connections_per_client = 1, .idle = 1}};
    std::deque<owned_connections> logins;
    for (int i = 0; i < 3; ++i) {
        const auto to = bench.owned_by(logins.emplace_back(bench.pool).owner());
        auto got = bench.finish(bench.pool.acquire(to, false, late()));
        REQUIRE(got.has_value());
        got->give_back();
    }
    CHECK(bench.idle() == 3);
}

TEST_CASE("what one client keeps for itself is not among the idle ones of everybody") {
    pool_bench bench{{.idle = 1}};
    const owned_connections anns{bench.pool}, bobs{bench.pool};
    std::deque<origin_lease> held;
    for (const auto owner : {anns.owner(), bobs.owner(), std::uint64_t{0}, std::uint64_t{0}}) {
        const auto to = bench.owned_by(owner);
        auto got = bench.finish(bench.pool.acquire(to, false, late()));
        REQUIRE(got.has_value());
        held.push_back(std::move(*got));
    }
    const auto last = port_of(held.back());
    for (auto& each : held) {
        each.give_back();
    }
    CHECK(bench.idle() == 3);
    auto again = bench.lease();
    CHECK(port_of(again) == last);
    bench.pool.set_options({.idle = 0});
    const auto to = bench.owned_by(anns.owner());
    auto hers = bench.pool.try_acquire(to);
    REQUIRE(hers);
    hers.give_back();  // or nobody could ever be logged in
    CHECK(bench.pool.try_acquire(to));
}

TEST_SUITE_END();
