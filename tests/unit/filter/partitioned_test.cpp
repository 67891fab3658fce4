#include "filter/partitioned.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace reprise::filter {

using test::nth_key;

namespace {

partitioned_bloom filled(bloom_size size, std::uint64_t family, std::uint64_t keys) {
    partitioned_bloom filter{size};
    for (std::uint64_t i = 0; i < keys; ++i) {
        filter.insert(nth_key(family, i));
    }
    return filter;
}

std::uint64_t found(const partitioned_bloom& filter, std::uint64_t family, std::uint64_t keys) {
    std::uint64_t out = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
        out += filter.may_contain(nth_key(family, i)) ? 1 : 0;
    }
    return out;
}

}  // namespace

TEST_SUITE("filter/partitioned") {
    TEST_CASE("an empty filter contains nothing, and a cleared one is an empty one") {
        partitioned_bloom filter{{700, 7}};
        CHECK(found(filter, 1, 1'000) == 0);
        filter.insert(nth_key(1, 1));
        filter.clear();
        CHECK(filter == partitioned_bloom{{700, 7}});
    }

    TEST_CASE("every inserted key is found, in partitions of any size") {
        for (const std::uint64_t partition : {1, 2, 3, 63, 64, 65, 1'000, 4'099}) {
            for (const unsigned probes : {1, 2, 7, 30}) {
                CAPTURE(partition);
                CAPTURE(probes);
                const auto filter = filled({partition * probes, probes}, partition, 3'000);
                CHECK(found(filter, partition, 3'000) == 3'000);
            }
        }
    }

    TEST_CASE("a key sets one bit in each partition") {
        for (std::uint64_t i = 0; i < 200; ++i) {
            const auto filter = filled({9 * 37, 9}, i, 1);
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

    TEST_CASE("insert_and_test answers what may_contain would have, and inserts") {
        partitioned_bloom filter{{8'000, 5}};
        for (std::uint64_t i = 0; i < 5'000; ++i) {
            const auto key = nth_key(1, i % 3'000);
            const bool before = filter.may_contain(key);
            CHECK(filter.insert_and_test(key) == before);
            CHECK(filter.insert_and_test(key));
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
                const auto rate = static_cast<double>(
                                      found(filled(size, family, keys), family + 10'000, asked)) /
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
        const auto filter = filled(size, 1, 1'000);
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

    TEST_CASE("a union is the filter of all keys of both, an intersection has the common ones") {
        constexpr bloom_size size{6 * 833, 6};
        auto a = filled(size, 1, 100);
        auto b = filled(size, 2, 100);
        auto all = filled(size, 1, 100);
        for (std::uint64_t i = 0; i < 50; ++i) {
            a.insert(nth_key(3, i));
            b.insert(nth_key(3, i));
            all.insert(nth_key(3, i));
        }
        for (std::uint64_t i = 0; i < 100; ++i) {
            all.insert(nth_key(2, i));
        }
        auto either = a;
        REQUIRE(either.unite(b).has_value());
        CHECK(either == all);
        auto both = a;
        REQUIRE(both.intersect(b).has_value());
        CHECK(found(both, 3, 50) == 50);
        CHECK(both.bits_on() < a.bits_on());
    }

    TEST_CASE("a folded filter is the one that the same keys make in partitions half as large") {
        for (const std::uint64_t partition : {4, 6, 64, 100, 126, 128, 130, 1'024}) {
            CAPTURE(partition);
            const auto filter = filled({partition * 5, 5}, partition, partition / 3);
            const auto folded = filter.folded();
            REQUIRE(folded.has_value());
            CHECK(*folded == filled({partition / 2 * 5, 5}, partition, partition / 3));
        }
        CHECK(filled({45, 5}, 1, 1).folded().error() == filter_errc::odd_size);
        CHECK(filled({10, 5}, 1, 1).folded().error() == filter_errc::too_small);
    }

    TEST_CASE("filters of different parameters are not combined, and stay as they were") {
        const auto before = filled({1'000, 5}, 1, 50);
        auto filter = before;
        CHECK(filter.unite(filled({2'000, 5}, 1, 50)).error() == filter_errc::sizes_differ);
        CHECK(filter.intersect(filled({2'000, 5}, 1, 50)).error() == filter_errc::sizes_differ);
        CHECK(filter.unite(filled({1'000, 4}, 1, 50)).error() == filter_errc::probes_differ);
        CHECK(filter.intersect(filled({1'000, 4}, 1, 50)).error() == filter_errc::probes_differ);
        CHECK(filter == before);
    }
}

}  // namespace reprise::filter
