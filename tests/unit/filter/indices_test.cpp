// The distribution of places, and why the cubic term. Budgets: chi-square and means within 4.5
// sigma, for keys made from fixed seeds.

#include "filter/indices.hpp"
#include "filter/sizing.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

/// What `indices` was preferred to: Kirsch and Mitzenmacher's x + i*y.
class plain_indices {
public:
    plain_indices(key_hash key, std::uint64_t bits)
        : bits_{bits},
          place_{key.low % bits},
          step_{key.high % bits} {}

    std::uint64_t next() {
        const auto place = place_;
        place_ = (place_ + step_) % bits_;
        return place;
    }

private:
    std::uint64_t bits_;
    std::uint64_t place_;
    std::uint64_t step_;
};

template <class Indices>
std::vector<std::uint64_t> places_of(key_hash key, std::uint64_t bits, unsigned probes) {
    Indices at{key, bits};
    std::vector<std::uint64_t> out(probes);
    for (auto& place : out) {
        place = at.next();
    }
    return out;
}

template <class Indices>
std::set<std::uint64_t> set_of(key_hash key, std::uint64_t bits, unsigned probes) {
    const auto places = places_of<Indices>(key, bits, probes);
    return {places.begin(), places.end()};
}

/// How many sigma these counts' chi-square is from that of equal chances.
double unevenness(const std::vector<double>& counts, double total) {
    const auto expected = total / static_cast<double>(counts.size());
    double squares = 0;
    for (const auto count : counts) {
        squares += (count - expected) * (count - expected) / expected;
    }
    const auto freedom = static_cast<double>(counts.size()) - 1;
    return std::abs(squares - freedom) / std::sqrt(2 * freedom);
}

struct measured {
    double rate = 0;
    double sigma = 0;  ///< of the mean over filters, by their spread
};

/// The false-positive rate of many small filters.
template <class Indices>
measured rate_of(bloom_size size, std::uint64_t keys) {
    constexpr std::uint64_t filters = 2'000;
    constexpr std::uint64_t asked = 200;
    double sum = 0;
    double squares = 0;
    for (std::uint64_t family = 1; family <= filters; ++family) {
        std::vector<bool> bits(size.bits);
        for (std::uint64_t i = 0; i < keys; ++i) {
            Indices at{nth_key(family, i), size.bits};
            for (unsigned probe = 0; probe < size.probes; ++probe) {
                bits[at.next()] = true;
            }
        }
        double found = 0;
        for (std::uint64_t i = 0; i < asked; ++i) {
            Indices at{nth_key(family + filters, i), size.bits};
            bool all = true;
            for (unsigned probe = 0; probe < size.probes && all; ++probe) {
                all = bits[at.next()];
            }
            found += all ? 1 : 0;
        }
        sum += found / asked;
        squares += found / asked * found / asked;
    }
    const auto mean = sum / filters;
    return {mean, std::sqrt((squares / filters - mean * mean) / filters)};
}

}  // namespace

TEST_SUITE("filter/indices") {
    TEST_CASE("place i is x + i*y + (i^3 - i)/6 modulo m") {
        for (const std::uint64_t bits : {1, 2, 7, 64, 1'000, 1'000'003}) {
            for (std::uint64_t n = 0; n < 20; ++n) {
                CAPTURE(bits);
                const auto key = nth_key(1, n);
                indices at{key, bits};
                for (std::uint64_t i = 0; i < 100; ++i) {
                    const auto expected = key.low % bits + i * (key.high % bits) +
                                          (i * i * i - i) / 6;
                    CHECK(at.next() == expected % bits);
                }
            }
        }
    }

    TEST_CASE("places of the largest filter stay within it") {
        constexpr auto bits = (std::uint64_t{1} << 63) - 1;
        indices at{{UINT64_MAX - 2, UINT64_MAX - 2}, bits};
        for (int i = 0; i < 1'000; ++i) {
            CHECK(at.next() < bits);
        }
    }

    TEST_CASE("taken modulo half the bits, places are those of a filter half as large") {
        for (std::uint64_t n = 0; n < 200; ++n) {
            indices whole{nth_key(1, n), 2 * 777};
            indices half{nth_key(1, n), 777};
            for (int i = 0; i < 30; ++i) {
                CHECK(whole.next() % 777 == half.next());
            }
        }
    }

    TEST_CASE("each place is uniform") {
        constexpr std::uint64_t keys = 50'000;
        for (const std::uint64_t bits : {2, 64, 97, 1'000, 4'096}) {
            std::vector<std::vector<double>> counts(8, std::vector<double>(bits));
            for (std::uint64_t n = 0; n < keys; ++n) {
                indices at{nth_key(bits, n), bits};
                for (auto& of_probe : counts) {
                    ++of_probe[at.next()];
                }
            }
            for (std::size_t probe = 0; probe < counts.size(); ++probe) {
                CAPTURE(bits);
                CAPTURE(probe);
                CHECK(unevenness(counts[probe], keys) < 4.5);
            }
        }
    }

    TEST_CASE(
        "any two places are independent, where their distance has no factor in common with m") {
        // All pairs of values in small prime filters; sixteenths of the filter in one whose size is
        // a power of two, odd distances.
        constexpr std::uint64_t keys = 40'000;
        for (const std::uint64_t bits : {13, 31, 4'096}) {
            const auto cells = bits < 100 ? bits : 16;
            for (unsigned first = 0; first < 7; ++first) {
                for (unsigned second = first + 1; second < 7; second += bits < 100 ? 1 : 2) {
                    CAPTURE(bits);
                    CAPTURE(first);
                    CAPTURE(second);
                    std::vector<double> counts(cells * cells);
                    for (std::uint64_t n = 0; n < keys; ++n) {
                        const auto places = places_of<indices>(nth_key(bits, n), bits, second + 1);
                        const auto row = places[first] * cells / bits;
                        ++counts[row * cells + places[second] * cells / bits];
                    }
                    CHECK(unevenness(counts, keys) < 4.5);
                }
            }
        }
    }

    TEST_CASE("in a filter of even size the parities of places two apart go together") {
        // What is left of double hashing: a distance of 2 multiplies y by 2. The rate does not show
        // it (below), and an odd number of bits is free of it.
        for (std::uint64_t n = 0; n < 1'000; ++n) {
            const auto places = places_of<indices>(nth_key(1, n), 1'000, 12);
            for (std::uint64_t i = 0; i + 2 < places.size(); ++i) {
                CHECK((places[i] + places[i + 2] + (i + 1)) % 2 == 0);
            }
        }
    }

    TEST_CASE("keys that plain double hashing spoils have their own places under the cubic term") {
        constexpr std::uint64_t bits = 1'000;
        constexpr unsigned probes = 8;
        // A step of zero: one place. Half of the filter: two.
        CHECK(set_of<plain_indices>({123, 0}, bits, probes).size() == 1);
        CHECK(set_of<indices>({123, 0}, bits, probes).size() == probes - 1);
        CHECK(set_of<plain_indices>({123, 500}, bits, probes).size() == 2);
        CHECK(set_of<indices>({123, 500}, bits, probes).size() >= probes - 1);
        // The same places backwards: x + 7y, with -y.
        const key_hash forwards{123, 77};
        const key_hash backwards{123 + 7 * 77, bits - 77};
        CHECK(set_of<plain_indices>(forwards, bits, probes) ==
              set_of<plain_indices>(backwards, bits, probes));
        CHECK(set_of<indices>(forwards, bits, probes) != set_of<indices>(backwards, bits, probes));
        // Begun a step later: all places but one in common.
        auto later = set_of<plain_indices>({123 + 77, 77}, bits, probes);
        later.merge(set_of<plain_indices>(forwards, bits, probes));
        CHECK(later.size() == probes + 1);
        auto spread = set_of<indices>({123 + 77, 77}, bits, probes);
        spread.merge(set_of<indices>(forwards, bits, probes));
        CHECK(spread.size() > probes + 4);
    }

    TEST_CASE("in small filters the rate is the predicted one, where plain double hashing is off") {
        struct shape {
            bloom_size size;
            std::uint64_t keys;
            double
                plain_excess;  ///< of plain double hashing, as a share of the exact rate, at least
        };
        for (const auto& [size, keys, plain_excess] :
             {shape{{97, 5}, 10, 0.4}, shape{{256, 7}, 25, 0.5}, shape{{1'000, 10}, 70, 1.0}}) {
            CAPTURE(size.bits);
            const auto exact = exact_rate(size, keys);
            // Who shares no sequence of places with an inserted key errs at the exact rate.
            const auto alias = alias_rate(size.bits, static_cast<double>(keys));
            const auto predicted = alias + (1 - alias) * exact;
            const auto enhanced = rate_of<indices>(size, keys);
            CHECK(std::abs(enhanced.rate - predicted) < 4.5 * enhanced.sigma);
            const auto plain = rate_of<plain_indices>(size, keys);
            CHECK(plain.rate > (1 + plain_excess) * exact);
            CHECK(plain.rate - predicted > 10 * plain.sigma);
        }
    }
}

}  // namespace reprise::filter
