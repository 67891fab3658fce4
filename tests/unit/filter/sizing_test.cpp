#include "filter/sizing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

namespace reprise::filter {

namespace {

/// The mean of (1 - (63/64)^i)^8 over a binomial i, term by term.
double summed_rate(std::uint64_t blocks, double keys) {
    if (blocks == 1) {
        return std::pow(1 - std::pow(63.0 / 64, keys), 8);
    }
    const double p = 1.0 / static_cast<double>(blocks);
    double sum = 0;
    for (double i = 0; i <= keys; ++i) {
        const double log_chance = std::lgamma(keys + 1) - std::lgamma(i + 1) -
                                  std::lgamma(keys - i + 1) + i * std::log(p) +
                                  (keys - i) * std::log1p(-p);
        sum += std::exp(log_chance) * std::pow(1 - std::pow(63.0 / 64, i), 8);
    }
    return sum;
}

constexpr std::array rates{0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6};

}  // namespace

TEST_SUITE("filter/sizing") {
    TEST_CASE("the classic rate agrees with what Summary Cache prints") {
        // Fan, Cao, Almeida, Broder: tables 3 to 5, three of their cells.
        CHECK(classic_rate({.bits = 8'000, .probes = 5}, 1'000) ==
              doctest::Approx(0.0217).epsilon(0.003));
        CHECK(classic_rate({.bits = 10'000, .probes = 7}, 1'000) ==
              doctest::Approx(0.00819).epsilon(0.001));
        CHECK(classic_rate({.bits = 16'000, .probes = 11}, 1'000) ==
              doctest::Approx(0.000459).epsilon(0.002));
    }

    TEST_CASE("no other number of probes beats the best one") {
        for (std::uint64_t bits = 500; bits < 40'000; bits += 700) {
            CAPTURE(bits);
            const auto best = best_probes(bits, 1'000);
            for (unsigned probes = 1; probes < 64; ++probes) {
                CHECK(classic_rate({bits, best}, 1'000) <= classic_rate({bits, probes}, 1'000));
            }
        }
    }

    TEST_CASE("a classic size meets its rate with no bit to spare") {
        for (const auto rate : rates) {
            CAPTURE(rate);
            const auto size = classic_size(10'000, rate);
            CHECK(classic_rate(size, 10'000) <= rate * (1 + 1e-12));
            CHECK(size.probes == best_probes(size.bits, 10'000));
            const auto fewer = size.bits - 1;
            CHECK(classic_rate({fewer, best_probes(fewer, 10'000)}, 10'000) > rate);
            CHECK(classic_capacity(size, rate) == 10'000);
        }
    }

    TEST_CASE("the blocked rate's closed form is the sum it stands for") {
        for (const std::uint64_t blocks : {1, 2, 7, 100}) {
            for (const double keys : {0.0, 1.0, 30.0, 500.0, 4000.0}) {
                CAPTURE(blocks);
                CAPTURE(keys);
                const auto expected = summed_rate(blocks, keys);
                CHECK(std::abs(blocked_rate(blocks, keys) - expected) <= 1e-9 * expected + 1e-15);
            }
        }
    }

    TEST_CASE(
        "a blocked filter takes the fewest blocks that meet its rate, and more than a classic "
        "one") {
        for (const auto rate : rates) {
            for (const std::uint64_t keys : {1, 100, 12'345, 1'000'000}) {
                CAPTURE(rate);
                CAPTURE(keys);
                const auto count = static_cast<double>(keys);
                const auto blocks = blocks_for(keys, rate);
                CHECK(blocked_rate(blocks, count) <= rate);
                CHECK((blocks == 1 || blocked_rate(blocks - 1, count) > rate));
                CHECK(blocks * block_bits > classic_size(keys, rate).bits);
            }
        }
    }

    TEST_CASE("capacity undoes size") {
        for (const auto rate : rates) {
            CAPTURE(rate);
            const auto blocks = blocks_for(50'000, rate);
            const auto capacity = blocked_capacity(blocks, rate);
            CHECK(capacity >= 50'000);
            CHECK(blocked_rate(blocks, static_cast<double>(capacity)) <= rate);
            CHECK(blocked_rate(blocks, static_cast<double>(capacity + 1)) > rate);
        }
    }

    TEST_CASE("a size that no memory has is still a size") {
        CHECK(blocks_for(UINT64_MAX, 1e-9) == UINT32_MAX);
        CHECK(blocks_for(1, 0.999) == 1);
    }
}

}  // namespace reprise::filter
