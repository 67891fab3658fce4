#include "filter/scalable.hpp"
#include "filter/sizing.hpp"
#include "filter/split_block.hpp"
#include "filter/standard.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <new>

namespace reprise::filter {

using test::nth_key;

namespace {

split_block_bloom split_block_for(std::uint64_t keys, double rate) {
    return split_block_bloom{split_blocks_for(keys, rate)};
}

standard_bloom standard_for(std::uint64_t keys, double rate) {
    return standard_bloom{classic_size(keys, rate)};
}

template <class Filter>
double measured_rate(const Filter& filter, std::uint64_t asked) {
    return static_cast<double>(test::found(filter, 2, asked)) / static_cast<double>(asked);
}

}  // namespace

TEST_SUITE("filter/scalable") {
    TEST_CASE("no key is missed while it grows, and repeats take no room") {
        scalable_filter<split_block_bloom> filter{{.first_keys = 10, .rate = 0.01},
                                                  split_block_for};
        for (std::uint64_t i = 0; i < 5'000; ++i) {
            filter.insert(nth_key(1, i));
            CHECK(filter.may_contain(nth_key(1, i / 2)));
        }
        std::uint64_t missed = 0;
        const auto bytes = filter.bytes();
        const auto keys = filter.keys();
        for (std::uint64_t i = 0; i < 5'000; ++i) {
            missed += filter.insert_and_test(nth_key(1, i)) ? 0 : 1;
        }
        CHECK(missed == 0);
        CHECK(filter.bytes() == bytes);
        CHECK(filter.keys() == keys);
        // 10 * (2^9 - 1) = 5,110: nine filters, were no key mistaken for one that came before.
        CHECK(filter.filters() == 9);
        CHECK(filter.keys() > 4'900);
    }

    TEST_CASE("the whole row errs at most with the rate asked for, however long it is") {
        constexpr std::uint64_t asked = 200'000;
        for (const double tightening : {0.5, 0.85}) {
            CAPTURE(tightening);
            const scalable_growth growth{
                .first_keys = 1'000, .rate = 0.01, .growth = 2, .tightening = tightening};
            scalable_filter<standard_bloom> filter{growth, standard_for};
            for (std::uint64_t i = 0; i < 127'000; ++i) {
                filter.insert(nth_key(1, i));
            }
            REQUIRE(filter.filters() == 7);
            const auto rate = measured_rate(filter, asked);
            CHECK(rate < growth.rate);
            // Full but for the last, it errs as the formula says: five sigma, and 15 % for the
            // small filters at its beginning, whose own rates vary.
            const auto predicted = scalable_compound_rate(growth, 7);
            CHECK(std::abs(rate - predicted) < 5 * std::sqrt(predicted / asked) + 0.15 * predicted);
        }
    }

    TEST_CASE("the compound rate of any number of filters is below the rate of the whole") {
        for (const double tightening : {0.1, 0.5, 0.85, 0.99}) {
            const scalable_growth growth{.rate = 0.01, .tightening = tightening};
            CHECK(scalable_compound_rate(growth, 0) == 0);
            CHECK(scalable_compound_rate(growth, 1) ==
                  doctest::Approx(0.01 * (1 - tightening)).epsilon(1e-9));
            double last = 0;
            for (std::size_t filters = 1; filters <= 60; ++filters) {
                const auto rate = scalable_compound_rate(growth, filters);
                CHECK(rate >= last);
                CHECK(rate < growth.rate);
                last = rate;
            }
        }
    }

    TEST_CASE("filters grow as the settings say") {
        const scalable_growth growth{.first_keys = 1'000, .growth = 4};
        CHECK(scalable_keys(growth, 0) == 1'000);
        CHECK(scalable_keys(growth, 3) == 64'000);
        CHECK(scalable_keys(growth, 100) == std::uint64_t{1} << 52);
        CHECK(scalable_keys({.first_keys = 10, .growth = 1}, 50) == 10);
        CHECK(scalable_rate({.rate = 0.01, .tightening = 0.5}, 2) == 0.00125);
    }

    TEST_CASE("what it costs beside one filter of the right size is less than 2.4 times the bits") {
        // Just after a filter was added is the worst: the last one is empty.
        for (const double tightening : {0.5, 0.8, 0.9}) {
            CAPTURE(tightening);
            const scalable_growth growth{.first_keys = 1'000, .tightening = tightening};
            double bits = 0;
            std::uint64_t keys = 0;
            for (std::size_t i = 0; i < 8; ++i) {
                const auto room = scalable_keys(growth, i);
                bits += static_cast<double>(classic_size(room, scalable_rate(growth, i)).bits);
                keys += room;
            }
            const auto one = static_cast<double>(classic_size(keys, growth.rate).bits);
            CHECK(bits / one > 1);
            CHECK(bits / one < 2.4);
        }
    }

    TEST_CASE("when no memory is left for another filter, nothing has changed") {
        bool full = false;
        scalable_filter<split_block_bloom> filter{{.first_keys = 3},
                                                  [&](std::uint64_t keys, double rate) {
                                                      if (full) {
                                                          throw std::bad_alloc{};
                                                      }
                                                      return split_block_for(keys, rate);
                                                  }};
        for (std::uint64_t i = 0; i < 3; ++i) {
            filter.insert(nth_key(1, i));
        }
        full = true;
        CHECK_THROWS_AS(filter.insert(nth_key(1, 3)), std::bad_alloc);
        CHECK(filter.keys() == 3);
        CHECK(filter.filters() == 1);
        full = false;
        filter.insert(nth_key(1, 3));
        CHECK(filter.filters() == 2);
        for (std::uint64_t i = 0; i < 4; ++i) {
            CHECK(filter.may_contain(nth_key(1, i)));
        }
    }

    TEST_CASE("clear begins again with one filter") {
        scalable_filter<split_block_bloom> filter{{.first_keys = 10}, split_block_for};
        for (std::uint64_t i = 0; i < 1'000; ++i) {
            filter.insert(nth_key(1, i));
        }
        filter.clear();
        CHECK(filter.filters() == 1);
        CHECK(filter.keys() == 0);
        CHECK_FALSE(filter.may_contain(nth_key(1, 0)));
        for (std::uint64_t i = 0; i < 11; ++i) {
            filter.insert(nth_key(1, i));
        }
        CHECK(filter.filters() == 2);
    }
}

}  // namespace reprise::filter
