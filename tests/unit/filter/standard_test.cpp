#include "filter/indices.hpp"
#include "filter/standard.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace reprise::filter {

using test::found;
using test::nth_key;

namespace {

standard_bloom bits_filled(bloom_size size, std::uint64_t family, std::uint64_t keys) {
    return test::filled(standard_bloom{size}, family, keys);
}

}  // namespace

TEST_SUITE("filter/standard") {
    TEST_CASE("a key's bits are the first places of its indices") {
        constexpr bloom_size size{777, 9};
        standard_bloom filter{size};
        std::vector<std::uint64_t> expected(words_for(size.bits));
        for (std::uint64_t i = 0; i < 5; ++i) {
            filter.insert(nth_key(1, i));
            indices at{nth_key(1, i), size.bits};
            for (unsigned probe = 0; probe < size.probes; ++probe) {
                const auto place = at.next();
                expected[place / 64] |= std::uint64_t{1} << (place % 64);
            }
        }
        CHECK(std::vector(filter.words().begin(), filter.words().end()) == expected);
    }

    TEST_CASE("the measured rate is the predicted one") {
        // Budget: asking is binomial; the filter itself is one of many, whose rate varies by
        // probes / (bits on) * sigma(bits on), below one percent here. 4.5 sigma of both.
        struct shape {
            bloom_size size;
            std::uint64_t keys;
        };
        for (const auto& [size, keys] : {shape{{8'192, 4}, 1'000},
                                         shape{{10'000, 7}, 1'000},
                                         shape{{95'851, 7}, 10'000},
                                         shape{{143'776, 10}, 10'000},
                                         shape{{50'000, 1}, 5'000}}) {
            CAPTURE(size.bits);
            CAPTURE(size.probes);
            double measured = 0;
            constexpr std::uint64_t filters = 4;
            constexpr std::uint64_t asked = 100'000;
            for (std::uint64_t family = 1; family <= filters; ++family) {
                measured += static_cast<double>(
                    found(bits_filled(size, family, keys), family + 100, asked));
            }
            const auto predicted = exact_rate(size, keys) * filters * asked;
            const auto load = static_cast<double>(keys * size.probes) /
                              static_cast<double>(size.bits);
            const auto off = std::exp(-load);
            const auto fill_sigma = std::sqrt(off * (1 - (1 + load) * off) /
                                              static_cast<double>(size.bits));
            const auto of_filters = predicted * size.probes * fill_sigma / (1 - off) /
                                    std::sqrt(filters);
            CHECK(std::abs(measured - predicted) <
                  4.5 * std::hypot(std::sqrt(predicted), of_filters));
        }
    }

    TEST_CASE("a filter knows its own rate from its own bits") {
        constexpr bloom_size size{10'000, 7};
        const auto filter = bits_filled(size, 1, 1'000);
        CHECK(filter.false_positive_rate() ==
              std::pow(static_cast<double>(filter.bits_on()) / 10'000, 7));
        CHECK(filter.false_positive_rate() ==
              doctest::Approx(exact_rate(size, 1'000)).epsilon(0.1));
        CHECK(filter.bytes() == 157 * 8);
    }

    TEST_CASE("an intersection has the common keys, and no bit that either lacks") {
        constexpr bloom_size size{20'000, 6};
        auto a = bits_filled(size, 1, 1'000);
        auto b = bits_filled(size, 2, 1'000);
        for (std::uint64_t i = 0; i < 500; ++i) {
            a.insert(nth_key(3, i));
            b.insert(nth_key(3, i));
        }
        auto both = a;
        REQUIRE(both.intersect(b).has_value());
        CHECK(found(both, 3, 500) == 500);
        for (std::size_t i = 0; i < both.words().size(); ++i) {
            CHECK(both.words()[i] == (a.words()[i] & b.words()[i]));
        }
        CHECK(both.false_positive_rate() < a.false_positive_rate());
        CHECK(both.false_positive_rate() > bits_filled(size, 3, 500).false_positive_rate());
    }

    TEST_CASE("a filter made of another's words answers like it; bits past the end are put off") {
        constexpr bloom_size size{1'001, 4};
        const auto from = bits_filled(size, 1, 100);
        std::vector<std::uint64_t> words(from.words().begin(), from.words().end());
        CHECK(standard_bloom{size, words} == from);
        words.back() |= ~std::uint64_t{0} << (1'001 % 64);
        CHECK(standard_bloom{size, words} == from);
    }
}

}  // namespace reprise::filter
