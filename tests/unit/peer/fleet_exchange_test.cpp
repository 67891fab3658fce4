#include "filter/digest_replica.hpp"
#include "proxy/peer/fleet_exchange.hpp"
#include "proxy/peer/fleet_wire.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace reprise::proxy::peer::test::of_fleet_exchange {
namespace {

using namespace std::chrono_literals;
using filter::test::digest_of_keys;

digest_fetcher::figures_of_one held(filter::digest whole) {
    digest_fetcher::figures_of_one one;
    one.bits = whole.shape().bits;
    one.held = std::make_shared<const filter::digest_replica>(std::move(whole));
    return one;
}

}  // namespace

TEST_SUITE("peer/fleet_exchange") {
    TEST_CASE("whoever asks without end is told the same set, whose ages are no less than true") {
        fleet_exchange fleet{"a", 1};
        const steady_time begin{1h};
        fleet.note_own({}, begin);
        const auto first = fleet.told(begin);
        CHECK(fleet.told(begin + fleet_exchange::told_for - 1ms) == first);
        const auto read = decode_fleet(*first);
        REQUIRE(read.has_value());
        REQUIRE(read->size() == 1);
        CHECK(read->front().age == fleet_exchange::told_for);
        CHECK(fleet.told(begin + fleet_exchange::told_for) != first);
    }

    TEST_CASE("a sibling's size that folds to nobody's leaves out itself, and no other") {
        const auto size = filter::digest_size(2000, 0.01);
        const auto own = std::make_shared<const filter::digest>(digest_of_keys(size, 0, 1000, 1));
        std::vector<digest_fetcher::figures_of_one> siblings;
        siblings.push_back(held(digest_of_keys(size, 500, 1500, 1)));
        const auto before = distinct_keys(own, siblings);
        CHECK(before.digests == 2);
        CHECK(before.keys > 1400);
        CHECK(before.keys < 1600);
        siblings.push_back(
            held(digest_of_keys({.bits = 5 * size.bits + 64, .probes = size.probes}, 0, 10, 1)));
        siblings.push_back(
            held(digest_of_keys({.bits = 2 * size.bits, .probes = size.probes}, 1000, 2000, 1)));
        const auto after = distinct_keys(own, siblings);
        CHECK(after.digests == 3);
        CHECK(after.keys > 1850);
        CHECK(after.keys < 2150);
        CHECK(distinct_keys(nullptr, {}).digests == 0);
    }

    TEST_CASE("the digest that a gateway makes of its siblings' is no node's") {
        const auto size = filter::digest_size(2000, 0.01);
        const auto own = std::make_shared<const filter::digest>(digest_of_keys(size, 0, 1000, 1));
        std::vector<digest_fetcher::figures_of_one> siblings;
        siblings.push_back(held(digest_of_keys(size, 1000, 2000, 1)));
        siblings.back().members = siblings.back().of_site = true;
        const auto all = distinct_keys(own, siblings);
        CHECK(all.digests == 1);
        CHECK(all.keys < 1100);
    }
}

}  // namespace reprise::proxy::peer::test::of_fleet_exchange
