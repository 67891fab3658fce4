#include "tests/unit/alternatives/peeled.hpp"
#include "tools/alternatives/fuse_filter.hpp"

namespace reprise::alternatives {

using namespace test;

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

}  // namespace reprise::alternatives
