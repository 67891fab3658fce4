#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/xor_filter.hpp"

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/xor_filter") {
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

    TEST_CASE("without a seed to try there is no filter") {
        CHECK(!xor_filter::build(keys_of(1, 10), 8, 0));
    }
}

}  // namespace reprise::alternatives
