#include "filter/partitioned.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace reprise::filter {

using test::found;
using test::nth_key;

namespace {

partitioned_bloom partitions_filled(bloom_size size, std::uint64_t family, std::uint64_t keys) {
    return test::filled(partitioned_bloom{size}, family, keys);
}

}  // namespace

TEST_SUITE("filter/partitioned") {
    TEST_CASE("a key sets one bit in each partition") {
        for (std::uint64_t i = 0; i < 200; ++i) {
            const auto filter = partitions_filled({9 * 37, 9}, i, 1);
            CHECK(filter.bits_on() == 9);
            for (unsigned partition = 0; partition < 9; ++partition) {
                CHECK(filter.bits_on(partition) == 1);
            }
        }
    }

    TEST_CASE("keys that share one word of their hashes are told apart") {
        // By three more places in 256 each, or by four: one in 16 million pairs is not.
        for (std::uint64_t i = 1; i < 200; ++i) {
            partitioned_bloom same_low{{4 * 256, 4}};
            same_low.insert({.low = 5, .high = 2});
            CHECK(!same_low.may_contain({.low = 5, .high = 2 + 2 * i}));
            partitioned_bloom same_high{{4 * 256, 4}};
            same_high.insert({.low = 5, .high = 2});
            CHECK(!same_high.may_contain({.low = 5 + i, .high = 2}));
        }
    }

    TEST_CASE("the measured rate is the predicted one, in small filters too") {
        // Budget: many filters, so that the spread of their fills is measured with the rest: 4.5
        // times the sigma of the mean of their counts.
        struct shape {
            bloom_size size;
            std::uint64_t keys;
        };
        for (const auto& [size, keys] : {shape{{60, 3}, 10},
                                         shape{{100, 5}, 8},
                                         shape{{700, 7}, 70},
                                         shape{{9'604, 7}, 1'000}}) {
            CAPTURE(size.bits);
            constexpr std::uint64_t filters = 200;
            constexpr std::uint64_t asked = 1'000;
            double sum = 0;
            double squares = 0;
            for (std::uint64_t family = 1; family <= filters; ++family) {
                const auto rate = static_cast<double>(found(partitions_filled(size, family, keys),
                                                            family + 10'000,
                                                            asked)) /
                                  asked;
                sum += rate;
                squares += rate * rate;
            }
            const auto mean = sum / filters;
            const auto sigma = std::sqrt((squares / filters - mean * mean) / filters);
            const auto predicted = partitioned_rate(size, static_cast<double>(keys));
            CHECK(std::abs(mean - predicted) < 4.5 * sigma);
        }
    }

    TEST_CASE("a filter knows its own rate from its own bits") {
        constexpr bloom_size size{9'600, 6};
        const auto filter = partitions_filled(size, 1, 1'000);
        std::uint64_t on = 0;
        double rate = 1;
        for (unsigned partition = 0; partition < 6; ++partition) {
            on += filter.bits_on(partition);
            rate *= static_cast<double>(filter.bits_on(partition)) / 1'600;
        }
        CHECK(on == filter.bits_on());
        CHECK(filter.false_positive_rate() == doctest::Approx(rate));
        CHECK(rate == doctest::Approx(partitioned_rate(size, 1'000)).epsilon(0.1));
        CHECK(filter.bytes() == 1'200);
    }
}

}  // namespace reprise::filter
