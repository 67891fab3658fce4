#include "filter/indices.hpp"
#include "filter/standard.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

standard_bloom filled(bloom_size size, std::uint64_t family, std::uint64_t keys) {
    standard_bloom filter{size};
    for (std::uint64_t i = 0; i < keys; ++i) {
        filter.insert(nth_key(family, i));
    }
    return filter;
}

std::uint64_t found(const standard_bloom& filter, std::uint64_t family, std::uint64_t keys) {
    std::uint64_t out = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
        out += filter.may_contain(nth_key(family, i)) ? 1 : 0;
    }
    return out;
}

}  // namespace

TEST_SUITE("filter/standard") {
    TEST_CASE("an empty filter contains nothing, and a cleared one is an empty one") {
        standard_bloom filter{{1'000, 7}};
        CHECK(found(filter, 1, 1'000) == 0);
        CHECK(filter.bits_on() == 0);
        CHECK(filter.false_positive_rate() == 0);
        filter.insert(nth_key(1, 1));
        CHECK(filter.bits_on() > 0);
        filter.clear();
        CHECK(filter == standard_bloom{{1'000, 7}});
    }

    TEST_CASE("every inserted key is found, in filters of any size and far beyond their capacity") {
        for (const std::uint64_t bits : {1, 2, 63, 64, 65, 1'000, 4'099, 100'000}) {
            for (const unsigned probes : {1, 2, 7, 30}) {
                CAPTURE(bits);
                CAPTURE(probes);
                const auto filter = filled({bits, probes}, bits, 3'000);
                CHECK(found(filter, bits, 3'000) == 3'000);
            }
        }
    }

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

    TEST_CASE("insert_and_test answers what may_contain would have, and inserts") {
        standard_bloom filter{{8'000, 5}};
        for (std::uint64_t i = 0; i < 5'000; ++i) {
            const auto key = nth_key(1, i % 3'000);
            const bool before = filter.may_contain(key);
            CHECK(filter.insert_and_test(key) == before);
            CHECK(filter.insert_and_test(key));
        }
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
                    found(filled(size, family, keys), family + 100, asked));
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
        const auto filter = filled(size, 1, 1'000);
        CHECK(filter.false_positive_rate() ==
              std::pow(static_cast<double>(filter.bits_on()) / 10'000, 7));
        CHECK(filter.false_positive_rate() ==
              doctest::Approx(exact_rate(size, 1'000)).epsilon(0.1));
        CHECK(filter.bytes() == 157 * 8);
    }

    TEST_CASE("a union is the filter of all keys of both") {
        constexpr bloom_size size{5'003, 6};
        auto filter = filled(size, 1, 300);
        REQUIRE(filter.unite(filled(size, 2, 400)).has_value());
        auto expected = filled(size, 1, 300);
        for (std::uint64_t i = 0; i < 400; ++i) {
            expected.insert(nth_key(2, i));
        }
        CHECK(filter == expected);
    }

    TEST_CASE("an intersection has the common keys, and no bit that either lacks") {
        constexpr bloom_size size{20'000, 6};
        auto a = filled(size, 1, 1'000);
        auto b = filled(size, 2, 1'000);
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
        CHECK(both.false_positive_rate() > filled(size, 3, 500).false_positive_rate());
    }

    TEST_CASE("a folded filter is the one that the same keys make in half the bits") {
        for (const std::uint64_t bits : {10, 16, 64, 126, 128, 130, 1'000, 8'192, 9'998}) {
            CAPTURE(bits);
            auto filter = filled({bits, 5}, bits, bits / 20 + 1);
            auto half = bits;
            while (half % 2 == 0 && half / 2 >= 5) {
                CAPTURE(half);
                half /= 2;
                const auto folded = filter.folded();
                REQUIRE(folded.has_value());
                CHECK(*folded == filled({half, 5}, bits, bits / 20 + 1));
                filter = *folded;
            }
            CHECK(filter.folded().error() ==
                  (half % 2 != 0 ? filter_errc::odd_size : filter_errc::too_small));
        }
    }

    TEST_CASE("filters of different parameters are not combined, and stay as they were") {
        const auto before = filled({1'000, 5}, 1, 50);
        auto filter = before;
        const auto other_size = filled({2'000, 5}, 1, 50);
        const auto other_probes = filled({1'000, 6}, 1, 50);
        CHECK(filter.unite(other_size).error() == filter_errc::sizes_differ);
        CHECK(filter.intersect(other_size).error() == filter_errc::sizes_differ);
        CHECK(filter.unite(other_probes).error() == filter_errc::probes_differ);
        CHECK(filter.intersect(other_probes).error() == filter_errc::probes_differ);
        CHECK(filter == before);
    }

    TEST_CASE("a filter made of another's words answers like it; bits past the end are put off") {
        constexpr bloom_size size{1'001, 4};
        const auto from = filled(size, 1, 100);
        std::vector<std::uint64_t> words(from.words().begin(), from.words().end());
        CHECK(standard_bloom{size, words} == from);
        words.back() |= ~std::uint64_t{0} << (1'001 % 64);
        CHECK(standard_bloom{size, words} == from);
    }
}

}  // namespace reprise::filter
