#include "filter/sizing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

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

/// A number as a table prints it, and half a unit of its last printed digit.
struct printed {
    double value = 0;
    double half_unit = 0;

    [[nodiscard]] bool rounds_from(double exact) const {
        // A tie may have been rounded either way.
        return std::abs(exact - value) <= half_unit * (1 + 1e-9);
    }
};

printed as_printed(const std::string& text) {
    const auto exponent_at = text.find('e');
    const auto mantissa = text.substr(0, exponent_at);
    const auto exponent = exponent_at == std::string::npos
                              ? 0
                              : std::stoi(text.substr(exponent_at + 1));
    const auto point = mantissa.find('.');
    const auto decimals = point == std::string::npos
                              ? 0
                              : static_cast<int>(mantissa.size() - point - 1);
    return {std::stod(text), 0.5 * std::pow(10.0, exponent - decimals)};
}

struct cell {
    std::uint64_t bits_per_key = 0;
    printed ideal_probes;
    unsigned probes = 0;
    printed rate;
};

std::vector<cell> summary_cache_tables() {
    std::ifstream in{REPRISE_TEST_DATA "/filters/fpr-table.csv"};
    std::vector<cell> cells;
    std::string bits;
    std::string ideal;
    std::string probes;
    std::string rate;
    std::getline(in, rate);  // the heading
    while (std::getline(in, bits, ',') && std::getline(in, ideal, ',') &&
           std::getline(in, probes, ',') && std::getline(in, rate)) {
        cells.push_back({std::stoull(bits),
                         as_printed(ideal),
                         static_cast<unsigned>(std::stoul(probes)),
                         as_printed(rate)});
    }
    return cells;
}

constexpr std::array rates{0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6};

}  // namespace

TEST_SUITE("filter/sizing") {
    TEST_CASE("the classic rate is what Summary Cache prints, in each of its tables' cells") {
        // Fan, Cao, Almeida, Broder, tables 3 to 5. Two cells have a misprinted exponent.
        const auto cells = summary_cache_tables();
        CHECK(cells.size() == 411);
        unsigned misprints = 0;
        for (auto [bits_per_key, ideal, probes, rate] : cells) {
            CAPTURE(bits_per_key);
            CAPTURE(probes);
            const auto exact = classic_rate({bits_per_key * 1'000, probes}, 1'000);
            if (bits_per_key == 30 && (probes == 15 || probes == 16)) {
                CHECK(!rate.rounds_from(exact));
                rate = {rate.value / 10, rate.half_unit / 10};
                ++misprints;
            }
            CHECK(rate.rounds_from(exact));
            // The column of ideal numbers is cut off in places, not rounded.
            const auto unit = ideal.half_unit * 2;
            CHECK(std::abs(ideal.value - static_cast<double>(bits_per_key) * std::log(2.0)) < unit);
        }
        CHECK(misprints == 2);
    }

    TEST_CASE("the best number of probes has the lowest rate that Summary Cache prints") {
        const auto cells = summary_cache_tables();
        for (std::uint64_t bits_per_key = 2; bits_per_key <= 32; ++bits_per_key) {
            CAPTURE(bits_per_key);
            const auto best = best_probes(bits_per_key * 1'000, 1'000);
            double least = 1;
            double at_best = 0;
            for (const auto& cell : cells) {
                if (cell.bits_per_key != bits_per_key) {
                    continue;
                }
                least = std::min(least, cell.rate.value);
                at_best = cell.probes == best ? cell.rate.value : at_best;
            }
            CHECK(at_best == least);
        }
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

    TEST_CASE("the exact rate is that of balls thrown one by one, with rational numbers") {
        // From the distribution of occupied places, and for large filters from the alternating sum,
        // in a program of exact fractions or of 120 decimal digits.
        struct vector {
            bloom_size size;
            std::uint64_t keys;
            double rate;
        };
        constexpr std::array vectors{
            vector{{1, 1}, 1, 1.0},
            vector{{2, 2}, 1, 0.625},
            vector{{3, 5}, 2, 0.9548640185625289},
            vector{{8, 3}, 2, 0.18457871675491333},
            vector{{16, 4}, 3, 0.09345499377581083},
            vector{{32, 3}, 8, 0.15574078509014516},
            vector{{64, 2}, 20, 0.21952670605482738},
            vector{{100, 7}, 10, 0.008936311594679473},
            vector{{1'000, 30}, 20, 4.9749562035091246e-11},
            vector{{1'024, 64}, 11, 6.969430295722192e-20},
            vector{{4'096, 10}, 284, 0.0009827688670925997},
            vector{{1'000'000, 7}, 100'000, 0.008193794400339354},
            vector{{1'000'000'000, 10}, 70'000'000, 0.0010453432162427316},
            vector{{1'000'000'000'000, 64}, 10'000'000'000, 1.4925332391257472e-21},
        };
        for (const auto& [size, keys, rate] : vectors) {
            CAPTURE(size.bits);
            CAPTURE(size.probes);
            CHECK(std::abs(exact_rate(size, keys) - rate) <= 1e-12 * rate);
        }
        CHECK(exact_rate({100, 7}, 0) == 0);
    }

    TEST_CASE("the exact rate lies between the classic one and Goel and Gupta's bound") {
        for (const std::uint64_t bits : {8, 50, 64, 1'000, 4'096, 100'000}) {
            for (const unsigned probes : {1, 2, 3, 7, 20}) {
                for (const std::uint64_t keys : {1, 5, 100, 10'000}) {
                    CAPTURE(bits);
                    CAPTURE(probes);
                    CAPTURE(keys);
                    const bloom_size size{bits, probes};
                    const auto count = static_cast<double>(keys);
                    const auto exact = exact_rate(size, keys);
                    CHECK(classic_rate(size, count) <= exact * (1 + 1e-12));
                    CHECK(exact <= upper_rate(size, count) * (1 + 1e-12));
                }
            }
        }
    }

    TEST_CASE("a size by the bound keeps its promise where the classic one does not") {
        unsigned broken = 0;
        for (const auto rate : rates) {
            for (const std::uint64_t keys : {1, 2, 5, 20, 100, 1'000}) {
                CAPTURE(rate);
                CAPTURE(keys);
                const auto size = upper_size(keys, rate);
                const auto count = static_cast<double>(keys);
                CHECK(upper_rate(size, count) <= rate * (1 + 1e-12));
                CHECK(upper_rate({size.bits - 1, size.probes}, count) > rate);
                CHECK(exact_rate(size, keys) <= rate * (1 + 1e-12));
                CHECK(upper_capacity({size.bits + 1, size.probes}, rate) >= keys);
                CHECK(upper_capacity({size.bits - 1, size.probes}, rate) < keys);
                broken += exact_rate(classic_size(keys, rate), keys) > rate ? 1 : 0;
            }
        }
        CHECK(broken > 20);
    }

    TEST_CASE("what is sized for the bound costs next to nothing in a large filter") {
        for (const auto rate : rates) {
            CAPTURE(rate);
            const auto classic = classic_size(1'000'000, rate);
            const auto upper = upper_size(1'000'000, rate);
            CHECK(upper.probes == classic.probes);
            CHECK(upper.bits - classic.bits <= 30);
        }
    }

    TEST_CASE("what double hashing adds is nothing at usual rates, and doubles tiny ones") {
        CHECK(alias_rate(100, 0) == 0);
        CHECK(alias_rate(1, 3) == 1);
        CHECK(alias_rate(1'000, 10) == doctest::Approx(1e-5).epsilon(1e-4));
        const auto share = [](std::uint64_t keys, double rate) {
            return alias_rate(classic_size(keys, rate).bits, static_cast<double>(keys)) / rate;
        };
        CHECK(share(1'000, 0.01) == doctest::Approx(0.001).epsilon(0.1));
        CHECK(share(1'000, 1e-6) == doctest::Approx(1.2).epsilon(0.1));
        CHECK(share(1'000'000, 1e-6) < 0.0013);
    }

    TEST_CASE("a partitioned filter takes the fewest bits that meet its rate") {
        for (const auto rate : rates) {
            for (const std::uint64_t keys : {1, 10, 1'000, 1'000'000}) {
                CAPTURE(rate);
                CAPTURE(keys);
                const auto size = partitioned_size(keys, rate);
                const auto count = static_cast<double>(keys);
                REQUIRE(size.bits % size.probes == 0);
                CHECK(partitioned_rate(size, count) <= rate * (1 + 1e-9));
                if (size.bits > size.probes) {
                    CHECK(partitioned_rate({size.bits - size.probes, size.probes}, count) > rate);
                    const bloom_size larger{size.bits + size.probes, size.probes};
                    CHECK(partitioned_capacity(larger, rate) >= keys);
                }
                for (unsigned probes = 1; probes < 40; ++probes) {
                    const auto fewer = (size.bits - 1) / probes * probes;
                    CHECK((fewer == 0 ||
                           partitioned_rate({fewer, probes}, count) > rate * (1 - 1e-9)));
                }
            }
        }
    }

    TEST_CASE("partitions cost nothing that a large filter shows, and a little in a small one") {
        CHECK(partitioned_rate({10'000'000, 10}, 700'000) ==
              doctest::Approx(classic_rate({10'000'000, 10}, 700'000)).epsilon(1e-4));
        CHECK(partitioned_rate({100, 10}, 7) > 1.2 * classic_rate({100, 10}, 7));
        CHECK(partitioned_rate({100, 10}, 0) == 0);
        CHECK(partitioned_rate({10, 10}, 1) == 1);
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
        for (const bloom_size size : {classic_size(UINT64_MAX, 1e-300),
                                      upper_size(UINT64_MAX, 1e-300),
                                      partitioned_size(UINT64_MAX, 1e-300)}) {
            CHECK(size.bits >= (std::uint64_t{1} << 63) - 2'048);
            CHECK(size.bits < std::uint64_t{1} << 63);
        }
    }

    TEST_CASE("sizes keep their promise at any rate, however few or many the keys") {
        const double below_one = std::nextafter(1.0, 0.0);
        for (const std::uint64_t keys : {1ull, 2ull, 1'000ull, 100'000'000ull, 1ull << 40}) {
            for (const double rate :
                 {1e-300, 1e-18, 1e-12, 1e-6, 0.01, 0.5, 0.999999, 1 - 1e-12, below_one}) {
                CAPTURE(keys);
                CAPTURE(rate);
                const auto count = static_cast<double>(keys);
                const double most = rate * (1 + 1e-9);
                const auto classic = classic_size(keys, rate);
                REQUIRE(classic.bits > 0);
                CHECK(classic_rate(classic, count) <= most);
                CHECK(classic_capacity(classic, rate) >= keys - keys / 1'000'000);
                const auto upper = upper_size(keys, rate);
                REQUIRE(upper.bits > 1);
                CHECK(upper_rate(upper, count) <= most);
                const auto cut = partitioned_size(keys, rate);
                REQUIRE(cut.bits % cut.probes == 0);
                CHECK(partitioned_rate(cut, count) <= most);
            }
        }
    }

    TEST_CASE("a filter of any size has a capacity") {
        const bloom_size huge{.bits = (std::uint64_t{1} << 63) - 1'024, .probes = 1};
        for (const double rate : {1e-300, 0.01, std::nextafter(1.0, 0.0)}) {
            CAPTURE(rate);
            const bool many = rate > 1e-9;
            CHECK((classic_capacity(huge, rate) > std::uint64_t{1} << 52) == many);
            CHECK((upper_capacity(huge, rate) > std::uint64_t{1} << 52) == many);
            CHECK((partitioned_capacity(huge, rate) > std::uint64_t{1} << 52) == many);
        }
    }
}

}  // namespace reprise::filter
