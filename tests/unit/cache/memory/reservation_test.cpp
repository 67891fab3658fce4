// Room that is promised to bodies on their way: it counts in the budget, and leaves some for the next.

#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/memory/reservation.hpp"
#include "tests/unit/cache/memory/neighbours.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::test::of_reservation {

TEST_SUITE_BEGIN("cache/memory/reservation");

TEST_CASE("a reservation counts in the budget and is given back") {
    const auto charge = charge_of_neighbour();
    memory_tier store{100 * charge};
    for (std::uint64_t n = 0; n < 100; ++n) {
        put_neighbour(store, n);
    }
    {
        auto room = store.reserve();
        CHECK(store.figures().reserved == 0);
        REQUIRE(room.grow_to(10 * charge));
        CHECK(store.figures().reserved == 10 * charge);
        CHECK(store.figures().objects == 90);
        REQUIRE(room.grow_to(5 * charge));  // never shrinks
        CHECK(store.figures().reserved == 10 * charge);
        REQUIRE(room.grow_to(20 * charge));
        CHECK(store.figures().objects == 80);

        auto moved = std::move(room);
        CHECK(store.figures().reserved == 20 * charge);
        CHECK(!room.grow_to(1));  // NOLINT(bugprone-use-after-move): a reservation of nothing
        auto other = store.reserve();
        REQUIRE(other.grow_to(charge));
        other = std::move(moved);
        CHECK(store.figures().reserved == 20 * charge);
    }
    CHECK(store.figures().reserved == 0);
    CHECK(store.figures().objects == 79);
}

TEST_CASE("at most a quarter of the capacity is ever promised") {
    memory_tier store{1'000'000};
    auto one = store.reserve();
    auto two = store.reserve();
    CHECK(!one.grow_to(250'001));
    CHECK(store.figures().reserved == 0);
    CHECK(one.grow_to(199'999));
    CHECK(!two.grow_to(50'001));
    CHECK(two.could_grow_to(40'000));
    CHECK(!two.could_grow_to(40'004));
    CHECK(two.grow_to(40'000));
    CHECK(!one.grow_to(200'001));
    CHECK(store.figures().reserved == 239'999);
    one.reset();
    CHECK(two.grow_to(200'000));
    two.reset();
    two.reset();
    CHECK(store.figures().reserved == 0);
    CHECK(!one.grow_to(~std::uint64_t{0}));
    CHECK(store.figures().reserved == 0);
}

TEST_CASE("however many take all that they can get, a small body finds room") {
    memory_tier store{64u << 20};
    std::deque<reservation> greedy;
    for (int i = 0; i < 256; ++i) {
        greedy.push_back(store.reserve());
    }
    // Each a little more in its turn, until none of them gets any more.
    std::vector<std::uint64_t> has(greedy.size());
    for (bool any = true; any;) {
        any = false;
        for (std::size_t i = 0; i < greedy.size(); ++i) {
            const bool grew = greedy[i].grow_to(has[i] + 4096);
            has[i] += grew ? 4096 : 0;
            any = any || grew;
        }
    }
    CHECK(std::accumulate(has.begin(), has.end(), std::uint64_t{0}) == store.figures().reserved);
    auto small = store.reserve();
    CHECK(small.grow_to(8 << 10));
    greedy.resize(9);
    auto larger = store.reserve();
    CHECK(larger.grow_to(1 << 20));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_reservation
