#include "tests/unit/alternatives/peeled.hpp"
#include "tools/alternatives/xor_filter.hpp"

namespace reprise::alternatives {

using namespace test;

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

}  // namespace reprise::alternatives
