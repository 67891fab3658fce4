#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/fuse_filter.hpp"

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/fuse_filter") {
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
}

}  // namespace reprise::alternatives
