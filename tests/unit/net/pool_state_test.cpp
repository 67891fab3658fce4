// The books of an origin_pool where memory is short: no slot and no waiter is lost.

#include "proxy/net/pool_state.hpp"
#include "tests/unit/net/memory_ends.hpp"
#include "tests/unit/net/pool_bench.hpp"

#include <new>

namespace reprise::proxy::net::test::of_pool_state {
namespace {

using detail::pool_waiter;

/// The books of a pool for an origin that has one connection, which one client uses.
struct used_up : test_loop {
    used_up() {
        group.open = 1;
        state.charge(share);
    }

    fake_dns server;
    resolver names{timer, asking(server)};
    detail::pool_state state{timer,
                             names,
                             make_guard(loopback_access()),
                             {.connections = 1, .connections_per_client = 1}};
    detail::pool_group& group = state.group_for({"192.0.2.1", 80});
    detail::pool_share* share = state.share_of(group, client_at(1));
};

}  // namespace

TEST_SUITE("net/pool_state") {

    TEST_CASE("who has no memory to wait leaves no trace in the line") {
        used_up books;
        auto* const another = books.state.share_of(books.group, client_at(2));
        bool refused = true;
        for (unsigned still = 0; refused; ++still) {
            CAPTURE(still);
            REQUIRE(still < 10);
            {
                const memory_ends now{still};
                try {
                    const pool_waiter me{books.state, books.group, another, 0, books.timer, false};
                    refused = false;
                } catch (const std::bad_alloc&) {
                    refused = true;
                }
            }
            CHECK(books.group.waiting == 0);
            CHECK(another->waiting.alone());
            CHECK(books.group.line.alone());
        }
    }

    TEST_CASE("a slot is given to the next in line, whose turn comes with it, without memory") {
        used_up books;
        const pool_waiter next{books.state, books.group, books.share, 0, books.timer, false};
        CHECK(books.group.line.alone());  // its client may have no more yet
        bool refused = false;
        {
            const memory_ends now;
            try {
                books.state.discharge(books.group, books.share);
                books.state.release_slot(books.group);
            } catch (const std::bad_alloc&) {
                refused = true;
            }
        }
        CHECK_FALSE(refused);
        CHECK(next.has == pool_waiter::handed::slot);
        CHECK(books.share->in_use == 1);
        CHECK(books.group.open == 1);
        CHECK(books.group.waiting == 0);
    }

    TEST_CASE("who waits for a slot is woken whatever memory there is") {
        pool_bench bench{{.connections = 1}};
        auto held = bench.lease();
        waiting next;
        bench.start(acquire_into(bench.pool, {"127.0.0.1", bench.port}, next));
        bench.run_for(std::chrono::milliseconds{5});
        REQUIRE(!next);
        {
            const memory_ends now;
            held.close();  // noexcept
        }
        bench.run_until([&] { return next.has_value(); });
        REQUIRE((next && next->has_value()));
        CHECK_FALSE((*next)->reused());
        CHECK(bench.open() == 1);
    }

    TEST_CASE(
        "a connection that can't be kept for want of memory is closed, and its slot is free") {
        pool_bench bench{{.connections = 1}};
        auto held = bench.lease();
        bool refused = false;
        {
            const memory_ends now;
            try {
                held.give_back();
            } catch (const std::bad_alloc&) {
                refused = true;
            }
        }
        CHECK_FALSE(refused);
        CHECK(bench.idle() == 0);
        CHECK(bench.open() == 0);
        held = bench.lease();
        CHECK_FALSE(held.reused());
        held.give_back();
        CHECK(bench.idle() == 1);
    }

    TEST_CASE("a listener that has no memory costs no slot") {
        pool_bench bench{{.connections = 1}};
        const auto known = std::make_shared<distrusted_origins>();
        bench.pool.set_distrusted(known,
                                  [](const origin_address&, std::span<const std::string>, bool) {
                                      throw std::bad_alloc{};
                                  });
        auto held = bench.lease();
        static_cast<void>(held.buffer().prepare(16));
        held.buffer().commit(1);  // bytes behind its answer
        CHECK_NOTHROW(held.give_back());
        CHECK(bench.pool.figures().surplus == 1);
        CHECK(bench.open() == 0);
        CHECK(bench.lease());
        CHECK(known->any());
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::net::test::of_pool_state
