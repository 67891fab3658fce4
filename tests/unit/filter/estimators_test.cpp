// Budgets. Each property is tried on hundreds of filters made from fixed seeds, so that nothing
// flakes; how many may miss is what the binomial allows at 4 sigma, were the stated confidence
// exact.

#include "filter/estimators.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

template <class Filter>
void fill(Filter& filter, std::uint64_t family, std::uint64_t keys) {
    for (std::uint64_t i = 0; i < keys; ++i) {
        filter.insert(nth_key(family, i));
    }
}

/// Keeps score of estimates of one number.
class score {
public:
    explicit score(double truth) : truth_{truth} {}

    void add(const key_estimate& guess) {
        const double error = guess.keys - truth_;
        ++tried_;
        beyond_two_ += std::abs(error) > 1.96 * guess.standard_error ? 1 : 0;
        beyond_three_ += std::abs(error) > 3 * guess.standard_error ? 1 : 0;
        sum_ += error;
        squares_ += error * error;
        stated_ += guess.standard_error * guess.standard_error;
    }

    /// The stated errors are the real ones, and the mean estimate is the truth.
    void check() const {
        const auto at_most = [&](double chance) {
            return chance * tried_ + 4 * std::sqrt(chance * tried_);
        };
        CHECK(beyond_two_ <= at_most(0.05));
        CHECK(beyond_three_ <= at_most(0.003));
        // The logarithm's curvature biases by a share of an error, never by one.
        CHECK(std::abs(sum_ / tried_) < 0.25 * std::sqrt(stated_ / tried_));
        // A sample deviation of N trials is good to 1 / sqrt(2 N): 4 % for 300.
        CHECK(std::sqrt(squares_ / tried_) ==
              doctest::Approx(std::sqrt(stated_ / tried_)).epsilon(0.17));
    }

private:
    double truth_;
    double tried_ = 0;
    double beyond_two_ = 0;
    double beyond_three_ = 0;
    double sum_ = 0;
    double squares_ = 0;
    double stated_ = 0;
};

constexpr std::uint64_t seeds = 300;

}  // namespace

TEST_SUITE("filter/estimators") {
    TEST_CASE("a filter's keys are within the stated error, as often as stated") {
        struct shape {
            bloom_size size;
            std::uint64_t keys;
        };
        for (const auto& [size, keys] : {shape{{1'000, 2}, 200},
                                         shape{{4'096, 4}, 200},
                                         shape{{4'096, 7}, 400},
                                         shape{{2'000, 1}, 4'000},
                                         shape{{3'000, 5}, 1'500}}) {
            CAPTURE(size.bits);
            CAPTURE(size.probes);
            score standard{static_cast<double>(keys)};
            score partitioned{static_cast<double>(keys)};
            for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                standard_bloom one{size};
                fill(one, seed, keys);
                standard.add(estimate_keys(one));
                partitioned_bloom other{{size.bits / size.probes * size.probes, size.probes}};
                fill(other, seed, keys);
                partitioned.add(estimate_keys(other));
            }
            standard.check();
            partitioned.check();
        }
    }

    TEST_CASE(
        "union, intersection and difference are within the stated errors, as often as stated") {
        struct shape {
            bloom_size size;
            std::uint64_t only_a, both, only_b;
        };
        for (const auto& [size, only_a, both, only_b] : {shape{{4'000, 3}, 300, 200, 300},
                                                         shape{{4'000, 4}, 50, 500, 50},
                                                         shape{{4'000, 2}, 800, 200, 100},
                                                         shape{{8'000, 7}, 100, 100, 600}}) {
            CAPTURE(size.probes);
            score united{static_cast<double>(only_a + both + only_b)};
            score common{static_cast<double>(both)};
            score difference{static_cast<double>(only_a)};
            for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
                standard_bloom a{size};
                fill(a, 3 * seed, both);
                auto b = a;
                fill(a, 3 * seed + 1, only_a);
                fill(b, 3 * seed + 2, only_b);
                const auto pair = compare(a, b);
                REQUIRE(pair.has_value());
                united.add(estimate_union(*pair));
                common.add(estimate_intersection(*pair));
                difference.add(estimate_difference(*pair));
            }
            united.check();
            common.check();
            difference.check();
        }
    }

    TEST_CASE("filters of disjoint sets have an intersection of zero within the stated error") {
        // Half of the estimates would be negative, and are zero.
        constexpr bloom_size size{4'000, 4};
        unsigned beyond = 0;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            standard_bloom a{size};
            standard_bloom b{size};
            fill(a, 2 * seed, 400);
            fill(b, 2 * seed + 1, 400);
            const auto guess = estimate_intersection(compare(a, b).value());
            CHECK(guess.keys >= 0);
            beyond += guess.keys > 1.96 * guess.standard_error ? 1 : 0;
        }
        CHECK(beyond <= seeds * 0.025 + 4 * std::sqrt(seeds * 0.025));
    }

    TEST_CASE("a counting filter estimates its distinct keys, as its snapshot does") {
        constexpr bloom_size size{10'000, 5};
        counting_bloom filter{size};
        fill(filter, 1, 1'000);
        fill(filter, 1, 1'000);
        const auto guess = estimate_keys(filter);
        CHECK(guess.keys == estimate_keys(filter.snapshot()).keys);
        CHECK(std::abs(guess.keys - 1'000) < 4 * guess.standard_error);
    }

    TEST_CASE("the intersection by inclusion and exclusion is Papapetrou's formula") {
        constexpr double bits = 4'000;
        constexpr unsigned probes = 3;
        for (const auto& [a, b, either] : {std::array{900.0, 1'200.0, 1'700.0},
                                           std::array{2'000.0, 2'000.0, 2'900.0},
                                           std::array{700.0, 1'500.0, 1'600.0}}) {
            const double both = a + b - either;
            const double inside = bits - (bits * both - a * b) / (bits - a - b + both);
            const double expected = (std::log(inside) - std::log(bits)) /
                                    (probes * std::log(1 - 1 / bits));
            const filter_pair pair{{4'000, probes},
                                   static_cast<std::uint64_t>(a),
                                   static_cast<std::uint64_t>(b),
                                   static_cast<std::uint64_t>(either)};
            CHECK(estimate_intersection(pair).keys == doctest::Approx(expected).epsilon(1e-9));
        }
    }

    TEST_CASE("empty filters have no keys, without error; full ones many, with an infinite one") {
        const auto none = estimate_keys({1'000, 5}, 0);
        CHECK(none.keys == 0);
        CHECK(none.standard_error == 0);
        const auto full = estimate_keys({1'000, 5}, 1'000);
        CHECK(std::isfinite(full.keys));
        CHECK(full.keys > 1'000);
        CHECK(std::isinf(full.standard_error));
        const filter_pair pair{{1'000, 5}, 1'000, 1'000, 1'000};
        CHECK(std::isinf(estimate_intersection(pair).standard_error));
        CHECK(std::isinf(estimate_difference(pair).standard_error));
    }

    TEST_CASE("a filter beside itself is its own union and intersection, and no difference") {
        standard_bloom filter{{5'000, 4}};
        fill(filter, 1, 700);
        const auto pair = compare(filter, filter).value();
        const auto alone = estimate_keys(filter);
        CHECK(estimate_union(pair).keys == alone.keys);
        CHECK(estimate_intersection(pair).keys == doctest::Approx(alone.keys));
        CHECK(estimate_intersection(pair).standard_error == doctest::Approx(alone.standard_error));
        CHECK(estimate_difference(pair).keys == 0);
        CHECK(estimate_difference(pair).standard_error == 0);
    }

    TEST_CASE("of two digests the larger counts as if it had been made as small") {
        const auto digest_with = [](bloom_size size, std::uint64_t first, std::uint64_t last) {
            standard_bloom filter{size};
            for (auto i = first; i < last; ++i) {
                filter.insert(nth_key(1, i));
            }
            return digest::of(filter, {});
        };
        constexpr bloom_size small{.bits = 64 * 301, .probes = 3};
        const auto a = digest_with(small, 0, 1'000);
        const auto b = digest_with(small, 600, 2'000);
        const auto expected = compare(small, a.words(), b.words());
        for (const unsigned times : {1u, 2u, 5u}) {
            CAPTURE(times);
            const auto large = digest_with({.bits = small.bits * times, .probes = 3}, 0, 1'000);
            const auto pair = compare(large, b);
            REQUIRE(pair.has_value());
            CHECK(pair->size == small);
            CHECK(pair->a_on == expected.a_on);
            CHECK(pair->b_on == expected.b_on);
            CHECK(pair->either_on == expected.either_on);
            CHECK(compare(b, large)->b_on == expected.a_on);
        }
        CHECK_FALSE(compare(a, digest_with({.bits = small.bits + 64, .probes = 3}, 0, 9)));
        CHECK_FALSE(compare(a, digest_with({.bits = small.bits, .probes = 2}, 0, 9)));
        // Places past the last whole word would fold elsewhere.
        CHECK_FALSE(compare(digest_with({.bits = 100, .probes = 3}, 0, 9),
                            digest_with({.bits = 200, .probes = 3}, 0, 9)));
        CHECK(compare(digest_with({.bits = 100, .probes = 3}, 0, 9),
                      digest_with({.bits = 100, .probes = 3}, 0, 9)));
        const digest blocked{{.layout = digest_layout::blocked, .bits = 512, .probes = 8},
                             std::vector<std::uint64_t>(8),
                             {}};
        CHECK_FALSE(compare(blocked, blocked));
        const digest elsewhere{a.shape(),
                               {a.words().begin(), a.words().end()},
                               {.seed = seed_id{std::byte{1}}, .generation = {}, .keys = 0}};
        CHECK_FALSE(compare(a, elsewhere));
    }

    TEST_CASE("filters of different parameters are not compared") {
        const standard_bloom filter{{1'000, 5}};
        CHECK(compare(filter, standard_bloom{{2'000, 5}}).error() == filter_errc::sizes_differ);
        CHECK(compare(filter, standard_bloom{{1'000, 4}}).error() == filter_errc::probes_differ);
        const partitioned_bloom parts{{1'000, 5}};
        CHECK(compare(parts, partitioned_bloom{{2'000, 5}}).error() == filter_errc::sizes_differ);
        CHECK(compare(parts, parts).has_value());
    }
}

}  // namespace reprise::filter
