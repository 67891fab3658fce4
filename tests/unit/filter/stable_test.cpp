#include "filter/stable.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

namespace reprise::filter {

using test::nth_key;

namespace {

stable_bloom filled(stable_size size, std::uint64_t seed, std::uint64_t keys) {
    return test::filled(stable_bloom{size, seed}, 1, keys);
}

double measured_rate(const stable_bloom& filter, std::uint64_t asked) {
    return static_cast<double>(test::found(filter, 2, asked)) / static_cast<double>(asked);
}

}  // namespace

TEST_SUITE("filter/stable") {
    TEST_CASE("an empty filter contains nothing, a key is contained once it came") {
        stable_bloom filter{stable_size_for(10'000, 2, 4, 0.01), 1};
        CHECK(filter.bytes() == 2'504);
        CHECK(filter.zeroes() == 10'000);
        CHECK_FALSE(filter.insert_and_test(nth_key(1, 1)));
        CHECK(filter.may_contain(nth_key(1, 1)));
        CHECK(filter.insert_and_test(nth_key(1, 1)));
        CHECK(filter.zeroes() >= 10'000 - 4);
    }

    TEST_CASE("the share of zeroes and the rate come to the stable point and stay") {
        for (const unsigned cell_bits : {1u, 2u, 4u}) {
            for (const double rate : {0.1, 0.01}) {
                CAPTURE(cell_bits);
                CAPTURE(rate);
                const auto size = stable_size_for(20'000, cell_bits, 4, rate);
                // Three and four times the inserts that the slowest, 4-bit cells, need.
                for (const std::uint64_t keys : {60'000, 80'000}) {
                    const auto filter = filled(size, 7, keys);
                    const auto share = static_cast<double>(filter.zeroes()) / 20'000;
                    // Cells that are decremented together are not independent: runs of P of them
                    // behave like one, so 20,000 / P observations; five sigma of those.
                    const auto sigma = std::sqrt(static_cast<double>(size.decrements) / 20'000) / 2;
                    CHECK(std::abs(share - stable_zeroes(size)) < 5 * sigma);
                    // A rate moves by K times the relative change of the share that is not zero.
                    const auto slack = 4 * 5 * sigma / (1 - stable_zeroes(size)) + 0.05;
                    CHECK(measured_rate(filter, 20'000) ==
                          doctest::Approx(stable_rate(size)).epsilon(slack));
                }
            }
        }
    }

    TEST_CASE("before the stable point the rate is below the one asked for") {
        const auto size = stable_size_for(20'000, 2, 4, 0.05);
        double last = 0;
        for (const std::uint64_t keys : {500, 1'000, 2'000, 4'000}) {
            const auto rate = measured_rate(filled(size, 7, keys), 20'000);
            CHECK(rate >= last);
            CHECK(rate < 0.06);
            last = rate;
        }
    }

    TEST_CASE("a pace is the least that keeps to its rate") {
        for (const unsigned cell_bits : {1u, 2u, 4u, 8u}) {
            for (const double rate : {0.2, 0.01, 0.0001}) {
                CAPTURE(cell_bits);
                CAPTURE(rate);
                auto size = stable_size_for(100'000, cell_bits, 5, rate);
                CHECK(stable_rate(size) <= rate * (1 + 1e-9));
                if (size.decrements > 1) {
                    --size.decrements;
                    CHECK(stable_rate(size) > rate);
                }
            }
        }
        // By hand: 1 - 0.01^(1/6) = 0.536 of the cells zero, and 6 / (1 / 0.536 - 1) = 6.93.
        CHECK(stable_size_for(1'000'000, 1, 6, 0.01).decrements == 7);
    }

    TEST_CASE("keys are forgotten as the chain of a cell's states says") {
        constexpr std::uint64_t keys = 30'000;
        for (const unsigned cell_bits : {1u, 2u, 4u}) {
            const auto size = stable_size_for(20'000, cell_bits, 4, 0.02);
            const auto filter = filled(size, 11, keys);
            for (const std::uint64_t gap : {10, 300, 1'500, 5'000}) {
                CAPTURE(cell_bits);
                CAPTURE(gap);
                // The 400 keys around the gap asked for.
                std::uint64_t remembered = 0;
                double expected = 0;
                const auto first = gap > 200 ? gap - 200 : 0;
                for (auto back = first; back < first + 400; ++back) {
                    remembered += filter.may_contain(nth_key(1, keys - 1 - back)) ? 1 : 0;
                }
                for (const auto back : {first, first + 100, first + 200, first + 300}) {
                    expected += stable_memory(size, back + 50) / 4;
                }
                const auto share = static_cast<double>(remembered) / 400;
                // Five sigma, and 4 % for keys that lose their cells together.
                CHECK(std::abs(share - expected) <
                      5 * std::sqrt(expected * (1 - expected) / 400) + 0.04);
            }
        }
    }

    TEST_CASE("it has false negatives: a key that came is missed when many came after it") {
        const auto size = stable_size_for(2'000, 1, 4, 0.01);
        const auto filter = filled(size, 3, 10'000);
        std::uint64_t missed = 0;
        for (std::uint64_t i = 0; i < 1'000; ++i) {
            missed += filter.may_contain(nth_key(1, i)) ? 0 : 1;
        }
        CHECK(missed > 950);
        CHECK(stable_memory(size, 0) == 1);
        CHECK(stable_memory(size, 9'000) == doctest::Approx(stable_rate(size)).epsilon(0.1));
    }

    TEST_CASE("the same seed gives the same filter, another seed another") {
        const auto size = stable_size_for(5'000, 2, 3, 0.05);
        const auto one = filled(size, 1, 3'000);
        const auto same = filled(size, 1, 3'000);
        const auto other = filled(size, 2, 3'000);
        std::uint64_t differ = 0;
        for (std::uint64_t i = 0; i < 3'000; ++i) {
            CHECK(one.may_contain(nth_key(1, i)) == same.may_contain(nth_key(1, i)));
            differ += one.may_contain(nth_key(1, i)) != other.may_contain(nth_key(1, i)) ? 1 : 0;
        }
        CHECK(differ > 0);
    }

    TEST_CASE("filters of odd sizes keep to their cells") {
        for (const std::uint64_t cells : {2, 7, 63, 65}) {
            for (const unsigned cell_bits : {1u, 2u, 4u, 8u}) {
                CAPTURE(cells);
                CAPTURE(cell_bits);
                stable_bloom filter{
                    {.cells = cells, .cell_bits = cell_bits, .probes = 1, .decrements = cells}, 1};
                for (std::uint64_t i = 0; i < 300; ++i) {
                    filter.insert(nth_key(1, i));
                    CHECK(filter.may_contain(nth_key(1, i)));
                }
                CHECK(filter.zeroes() < cells);
                filter.clear();
                CHECK(filter.zeroes() == cells);
            }
        }
    }
}

}  // namespace reprise::filter
