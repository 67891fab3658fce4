#include "filter/bit_changes.hpp"
#include "filter/counting.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

std::uint64_t bits_that_differ(const standard_bloom& a, const standard_bloom& b) {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < a.words().size(); ++i) {
        out += static_cast<unsigned>(std::popcount(a.words()[i] ^ b.words()[i]));
    }
    return out;
}

}  // namespace

TEST_SUITE("filter/bit_changes") {
    TEST_CASE("a bit that went on and off again has not changed") {
        bit_changes bits{{1'000, 5}};
        bits.turn(7);
        bits.turn(900);
        CHECK(bits.changed() == 2);
        bits.turn(7);
        CHECK(bits.changed() == 1);
        CHECK(bits.publish().bits_on() == 1);
        CHECK(bits.changed() == 0);
        bits.turn(900);
        CHECK(bits.changed() == 1);
        bits.turn(900);
        CHECK(bits.changed() == 0);
    }

    TEST_CASE(
        "what follows a counting filter is its snapshot, and counts what publishing changes") {
        constexpr bloom_size size{4'001, 4};
        std::mt19937_64 random{11};
        counting_bloom filter{size};
        bit_changes bits{size};
        standard_bloom published{size};
        std::vector<bool> inside(500);
        const auto turn = [&](std::uint64_t place) { bits.turn(place); };
        for (int step = 0; step < 4'000; ++step) {
            const auto which = random() % inside.size();
            if (inside[which]) {
                CHECK(filter.erase(nth_key(1, which), turn));
            } else {
                filter.insert(nth_key(1, which), turn);
            }
            inside[which] = !inside[which];
            if (step % 97 == 0) {
                const auto now = filter.snapshot();
                CHECK(bits.changed() == bits_that_differ(now, published));
                if (step % 194 == 0) {
                    published = bits.publish();
                    CHECK(published == now);
                }
            }
        }
    }

    TEST_CASE("bits taken from a filter that is not empty are all unpublished") {
        standard_bloom now{{500, 3}};
        now.insert(nth_key(1, 1));
        bit_changes bits{now};
        CHECK(bits.changed() == now.bits_on());
        CHECK(bits.publish() == now);
        CHECK(bits.bytes() == 2 * now.bytes());
    }
}

}  // namespace reprise::filter
