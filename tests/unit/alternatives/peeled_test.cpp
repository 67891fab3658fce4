// xor_filter, fuse_filter and the peeling that both are made by.

#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/fuse_filter.hpp"
#include "tools/alternatives/xor_filter.hpp"

#include <array>

namespace reprise::alternatives {

using namespace test;

namespace {

template <class Filter>
void check_built(const Filter& filter, const std::vector<key_hash>& keys) {
    CHECK(false_negatives(filter, keys) == 0);
    check_rate(filter, filter.rate());
}

constexpr auto whole_range = std::array<std::uint64_t, 9>{
    0, 1, 2, 3, 10, 100, 1'000, 9'999, 50'000};

}  // namespace

TEST_SUITE("alternatives/xor_filter") {
    TEST_CASE("every key it was made from is found, however many there are") {
        for (const auto count : whole_range) {
            CAPTURE(count);
            const auto keys = keys_of(1, count);
            const auto filter = xor_filter::build(keys, 8);
            REQUIRE(filter);
            CHECK(false_negatives(*filter, keys) == 0);
        }
    }

    TEST_CASE("the measured rate is 2^-bits") {
        const auto keys = keys_of(1, 30'000);
        for (const unsigned bits : {1, 4, 8, 13}) {
            CAPTURE(bits);
            const auto filter = xor_filter::build(keys, bits);
            REQUIRE(filter);
            check_built(*filter, keys);
        }
        CHECK(!xor_filter::build({}, 32)->may_contain(nth_key(1, 1)));
    }

    TEST_CASE("it takes 1.23 slots a key, and nearly always the first seed") {
        const auto filter = xor_filter::build(keys_of(1, 50'000), 8);
        REQUIRE(filter);
        CHECK(static_cast<double>(filter->wire_bits()) / (8 * 50'000) ==
              doctest::Approx(1.23).epsilon(0.002));
        unsigned seeds = 0;
        for (std::uint64_t family = 0; family < 50; ++family) {
            seeds += xor_filter::build(keys_of(family, 2'000), 8)->seeds_tried();
        }
        CHECK(seeds < 60);
    }

    TEST_CASE("duplicates count once") {
        auto keys = keys_of(1, 1'000);
        const auto once = xor_filter::build(keys, 8);
        keys.insert(keys.end(), keys.begin(), keys.end());
        const auto twice = xor_filter::build(keys, 8);
        REQUIRE(once);
        REQUIRE(twice);
        CHECK(twice->bytes() == once->bytes());
        CHECK(false_negatives(*twice, keys) == 0);
    }

    TEST_CASE("without a seed to try there is no filter") {
        CHECK(!xor_filter::build(keys_of(1, 10), 8, 0));
    }
}

TEST_SUITE("alternatives/fuse_filter") {
    TEST_CASE("every key it was made from is found, however many there are") {
        for (const unsigned arity : {3, 4}) {
            for (const auto count : whole_range) {
                CAPTURE(arity);
                CAPTURE(count);
                const auto keys = keys_of(1, count);
                const auto filter = fuse_filter::build(keys, 8, arity);
                REQUIRE(filter);
                CHECK(false_negatives(*filter, keys) == 0);
            }
        }
    }

    TEST_CASE("the measured rate is 2^-bits") {
        const auto keys = keys_of(1, 30'000);
        for (const unsigned arity : {3, 4}) {
            for (const unsigned bits : {1, 7, 13}) {
                CAPTURE(arity);
                CAPTURE(bits);
                const auto filter = fuse_filter::build(keys, bits, arity);
                REQUIRE(filter);
                check_built(*filter, keys);
            }
        }
    }

    TEST_CASE("it takes fewer slots a key than the xor filter, the fewer with four") {
        const auto slots = [](unsigned arity) {
            const auto filter = fuse_filter::build(keys_of(1, 200'000), 8, arity);
            REQUIRE(filter);
            CHECK(filter->seeds_tried() < 5);
            return static_cast<double>(filter->wire_bits()) / (8 * 200'000);
        };
        CHECK(slots(3) < 1.18);
        CHECK(slots(4) < 1.14);
    }

    TEST_CASE("keys that the first seed does not peel are tried with others") {
        unsigned most = 0;
        for (std::uint64_t family = 0; family < 300; ++family) {
            const auto keys = keys_of(family, 200);
            const auto filter = fuse_filter::build(keys, 8, 4);
            REQUIRE(filter);
            CHECK(false_negatives(*filter, keys) == 0);
            most = std::max(most, filter->seeds_tried());
        }
        CHECK(most > 1);
    }

    TEST_CASE("duplicates count once") {
        auto keys = keys_of(1, 1'000);
        const auto once = fuse_filter::build(keys, 8);
        keys.insert(keys.end(), keys.begin(), keys.end());
        const auto twice = fuse_filter::build(keys, 8);
        REQUIRE(once);
        REQUIRE(twice);
        CHECK(twice->bytes() == once->bytes());
        CHECK(false_negatives(*twice, keys) == 0);
    }
}

TEST_SUITE("alternatives/peeling") {
    TEST_CASE("hashes that are all in the same slots cannot be peeled, and the slots stay zero") {
        cells slots{4, 8};
        const std::array<std::uint64_t, 2> hashes{1, 2};
        const auto places = [](std::uint64_t) {
            return peel_places{.slot = {0, 1, 2}, .count = 3};
        };
        CHECK(!peel(hashes, places, slots));
        CHECK(slots == cells{4, 8});
        CHECK(peel(std::span{hashes}.first(1), places, slots));
        CHECK((slots.get(0) ^ slots.get(1) ^ slots.get(2)) == fingerprint_of(1, 8));
    }

    TEST_CASE("equal hashes cannot be peeled") {
        cells slots{100, 8};
        const std::array<std::uint64_t, 2> hashes{7, 7};
        CHECK(!peel(
            hashes,
            [](std::uint64_t hash) {
                return peel_places{.slot = {hash, 50, 90}, .count = 3};
            },
            slots));
    }
}

}  // namespace reprise::alternatives
