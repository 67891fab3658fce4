#include "filter/counter_odds.hpp"
#include "filter/counters.hpp"
#include "filter/indices.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

/// A filter's counters without an end: how often each place is taken.
std::vector<unsigned> heights(bloom_size size, std::uint64_t keys, std::uint64_t family) {
    std::vector<unsigned> out(size.bits);
    for (std::uint64_t i = 0; i < keys; ++i) {
        indices at{nth_key(family, i), size.bits};
        for (unsigned probe = 0; probe < size.probes; ++probe) {
            ++out[at.next()];
        }
    }
    return out;
}

}  // namespace

TEST_SUITE("filter/counter_odds") {
    TEST_CASE("a counter's tail is the binomial's") {
        // By summing exact fractions.
        CHECK(counter_tail({10, 1}, 3, 0) == 1);
        CHECK(counter_tail({10, 1}, 3, 1) == doctest::Approx(0.271).epsilon(1e-14));
        CHECK(counter_tail({10, 1}, 3, 2) == doctest::Approx(0.028).epsilon(1e-14));
        CHECK(counter_tail({10, 3}, 1, 3) == doctest::Approx(0.001).epsilon(1e-14));
        CHECK(counter_tail({10, 3}, 1, 4) == 0);
        CHECK(counter_tail({2, 1}, 4, 2) == doctest::Approx(11.0 / 16).epsilon(1e-14));
        CHECK(counter_tail({2, 1}, 4, 4) == doctest::Approx(1.0 / 16).epsilon(1e-14));
        CHECK(counter_tail({100, 5}, 0, 1) == 0);
    }

    TEST_CASE("in a large filter a counter's tail is Poisson's, far out as well") {
        // ln 2 balls a place: 0.69315 of 1e9 bits' thousandths, one probe a key.
        constexpr std::uint64_t bits = 1'000'000'000;
        constexpr std::uint64_t keys = 693'147'181;
        for (const unsigned height : {1, 5, 15, 16, 25}) {
            CAPTURE(height);
            const double mean = static_cast<double>(keys) / static_cast<double>(bits);
            double term = std::exp(-mean);
            double tail = 0;
            for (unsigned h = 0; h < 60; ++h) {
                tail += h >= height ? term : 0;
                term *= mean / (h + 1);
            }
            CHECK(counter_tail({bits, 1}, keys, height) == doctest::Approx(tail).epsilon(1e-6));
        }
    }

    TEST_CASE("a height that no counter reaches has no chance, and is no wait") {
        // 2^34 balls: to add up as many chances of nothing would take forever.
        CHECK(counter_tail({std::uint64_t{1} << 34, 2}, std::uint64_t{1} << 33, 5'000) == 0);
        CHECK(counter_tail({1'000, 1}, 9'000'000, UINT32_MAX) == 0);
        CHECK(counter_tail({1'000, 1}, 9'000'000, 1) == 1);
    }

    TEST_CASE("Summary Cache's bound has its published value, and holds") {
        constexpr bloom_size size{14'426'951, 10};  // 1,000,000 keys: ln 2 balls a place
        CHECK(overflow_bound(size, 1'000'000, 16) / 14'426'951 ==
              doctest::Approx(1.37e-15).epsilon(0.01));
        for (unsigned height = 1; height < 30; ++height) {
            CAPTURE(height);
            CHECK(overflow_bound(size, 1'000'000, height) >=
                  std::min(1.0, expected_overflows(size, 1'000'000, height)));
        }
        // What the header says of it, and counters.hpp of places that reach 15.
        CHECK(overflow_bound(size, 1'000'000, 16) / expected_overflows(size, 1'000'000, 16) ==
              doctest::Approx(19.3).epsilon(0.01));
        CHECK(1 / counter_tail(size, 1'000'000, 15) == doctest::Approx(6.1e14).epsilon(0.01));
    }

    TEST_CASE("as many counters overflow as expected") {
        // Crowded on purpose, five balls a place. 20 filters of 20,000 places: by the mean and
        // sigma of the count, its places being negatively associated and so no more variable than
        // independent ones.
        constexpr bloom_size size{20'000, 4};
        constexpr std::uint64_t keys = 25'000;
        constexpr std::uint64_t filters = 20;
        constexpr std::array<unsigned, 4> watched{6, 10, 12, 15};
        std::array<double, watched.size()> reached{};
        double highest = 0;
        for (std::uint64_t family = 1; family <= filters; ++family) {
            const auto counts = heights(size, keys, family);
            for (std::size_t i = 0; i < watched.size(); ++i) {
                reached[i] += static_cast<double>(std::count_if(
                    counts.begin(), counts.end(), [&](auto count) { return count >= watched[i]; }));
            }
            highest += *std::max_element(counts.begin(), counts.end());
        }
        for (std::size_t i = 0; i < watched.size(); ++i) {
            CAPTURE(watched[i]);
            const auto expected = filters * expected_overflows(size, keys, watched[i]);
            CHECK(std::abs(reached[i] - expected) < 4.5 * std::sqrt(expected) + 1);
        }
        // The highest of one filter varies by about one.
        CHECK(highest / filters == doctest::Approx(expected_highest(size, keys)).epsilon(0.04));
    }

    TEST_CASE("the highest counter grows slowly with the filter, and not at all in an empty one") {
        CHECK(expected_highest({1'000, 7}, 0) == 0);
        CHECK(expected_highest({1'000, 1}, 1) == doctest::Approx(1).epsilon(1e-9));
        const auto small = expected_highest({10'000, 7}, 1'000);
        const auto large = expected_highest({100'000'000, 7}, 10'000'000);
        CHECK(small < large);
        CHECK(large < small + 6);
        CHECK(large < counters::most);
    }
}

}  // namespace reprise::filter
