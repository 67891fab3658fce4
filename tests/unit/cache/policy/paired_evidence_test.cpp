#include "proxy/cache/policy/paired_evidence.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <random>

using namespace reprise::proxy::cache;

namespace {

constexpr double least = 0.003;
constexpr std::uint64_t few = 2'048;

/// Way 0 hits with a probability of `base`, way 1 where way 0 does, but for `discordant` of the requests,
/// of which it hits a half and `more` of all requests besides.
struct traffic {
    double base = 0.6, discordant = 0.04, more = 0;

    void play(paired_evidence& into, std::mt19937_64& random, std::uint64_t requests) const {
        std::uniform_real_distribution<double> unit;
        for (std::uint64_t i = 0; i < requests; ++i) {
            const auto drawn = unit(random);
            const bool same = drawn < base - discordant;
            const bool first = !same && drawn < base - discordant / 2 - more / 2;
            const bool second = !same && !first && drawn < base;
            if (same || first) {
                into.hit(0, 1);
            }
            if (same || second) {
                into.hit(1, 1);
            }
            into.end_request(1);
        }
    }
};

/// After how many requests way 1 is seen to be better than way 0, looked for every thousand; `most` if
/// it is not.
std::uint64_t seen_after(paired_evidence& into,
                         const traffic& like,
                         std::uint64_t seed,
                         std::uint64_t most) {
    std::mt19937_64 random{seed};
    for (std::uint64_t requests = 0; requests < most; requests += 1'000) {
        like.play(into, random, 1'000);
        if (into.gain_of(1, 0, least, few)) {
            return requests + 1'000;
        }
    }
    return most;
}

}  // namespace

TEST_SUITE("cache/policy/paired_evidence") {
    TEST_CASE("nothing is said of few requests, nor of what both do alike") {
        paired_evidence evidence;
        for (std::uint64_t i = 0; i < few - 1; ++i) {
            evidence.hit(1, 1);
            evidence.end_request(1);
        }
        CHECK_FALSE(evidence.gain_of(1, 0, least, few));
        evidence.hit(1, 1);
        evidence.end_request(1);
        const auto gain = evidence.gain_of(1, 0, least, few);
        REQUIRE(gain);
        CHECK(gain->of_all == 1);
        CHECK(gain->of_misses == 1);
        CHECK(gain->requests == few);
        CHECK_FALSE(evidence.gain_of(0, 1, least, few));
        CHECK_FALSE(evidence.gain_of(2, 3, least, few));
        CHECK(evidence.requests() == few);
    }

    TEST_CASE(
        "the more there is to gain the sooner it is seen, and what is little is seen at last") {
        // Of 0.4 that way 0 misses, a tenth, a fiftieth and a hundredth. Fixed seeds: always or never.
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            CAPTURE(seed);
            paired_evidence large, middling, small;
            CHECK(seen_after(large, {.more = 0.04}, seed, 1'000'000) <= 8'000);
            CHECK(seen_after(middling, {.more = 0.008}, seed, 1'000'000) <= 80'000);
            CHECK(seen_after(small, {.more = 0.004}, seed, 1'000'000) <= 400'000);
        }
    }

    TEST_CASE("chance is taken for a gain in few looks, and hardly for a large or a long one") {
        // Two ways that are as good, looked at 8,000 times. Fixed seeds: always or never.
        unsigned mistaken = 0, large = 0, lasting = 0;
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            paired_evidence evidence;
            std::mt19937_64 random{seed};
            for (int look = 0; look < 200; ++look) {
                traffic{}.play(evidence, random, 1'000);
                mistaken += evidence.gain_of(1, 0, least, few) ? 1 : 0;
                large += evidence.gain_of(1, 0, 16 * least, few) ? 1 : 0;
                lasting += evidence.gain_of(1, 0, 4 * least, 4 * few) ? 1 : 0;
                CHECK_FALSE(
                    (evidence.gain_of(1, 0, least, few) && evidence.gain_of(0, 1, least, few)));
            }
        }
        CHECK(mistaken < 8'000 / 20);
        CHECK(large < 8'000 / 100);
        CHECK(lasting < 8'000 / 100);
    }

    TEST_CASE("traffic that becomes another is noticed soon, whatever was before") {
        paired_evidence evidence;
        std::mt19937_64 random{7};
        const traffic worse{.more = -0.02}, better{.more = 0.03};
        worse.play(evidence, random, 500'000);
        CHECK(evidence.gain_of(0, 1, least, few));
        CHECK(seen_after(evidence, better, 8, 100'000) <= 12'000);
    }

    TEST_CASE("what a way did before it began anew is not held for it, or against it") {
        paired_evidence evidence;
        std::mt19937_64 random{9};
        traffic{.more = 0.04}.play(evidence, random, 20'000);
        REQUIRE(evidence.gain_of(1, 0, least, few));
        evidence.begin_anew(0);
        CHECK_FALSE(evidence.gain_of(1, 0, least, few));
        traffic{.more = -0.04}.play(evidence, random, 20'000);
        CHECK(evidence.gain_of(0, 1, least, few));
        CHECK_FALSE(evidence.gain_of(1, 0, least, few));
    }

    TEST_CASE("a batch that was under way when a way began anew is not of it") {
        constexpr auto batch = paired_evidence::batch;
        constexpr std::uint64_t before = 100;
        paired_evidence evidence;
        const auto hits = [&evidence](std::uint64_t requests) {
            for (std::uint64_t i = 0; i < requests; ++i) {
                evidence.hit(1, 1);
                evidence.end_request(1);
            }
        };
        hits(before);
        evidence.begin_anew(0);
        hits(batch - before + (paired_evidence::fewest - 1) * batch);
        CHECK_FALSE(evidence.gain_of(1, 0, least, 0));
        hits(batch);
        CHECK(evidence.gain_of(1, 0, least, 0));
        // Between two batches nothing is lost.
        evidence.begin_anew(0);
        hits(paired_evidence::fewest * batch - 1);
        CHECK_FALSE(evidence.gain_of(1, 0, least, 0));
        hits(1);
        CHECK(evidence.gain_of(1, 0, least, 0));
    }

    TEST_CASE("a gain must be as large, and be seen over as many requests, as is asked for") {
        paired_evidence evidence;
        std::mt19937_64 random{11};
        traffic{.more = 0.02}.play(evidence, random, 300'000);
        REQUIRE(evidence.gain_of(1, 0, least, few));
        CHECK_FALSE(evidence.gain_of(1, 0, 0.2, few));
        const auto late = evidence.gain_of(1, 0, least, 100'000);
        REQUIRE(late);
        CHECK(late->requests >= 100'000);
        CHECK(late->of_misses == doctest::Approx(0.05).epsilon(0.2));
        CHECK_FALSE(evidence.gain_of(1, 0, least, 1'000'000));
    }

    TEST_CASE("hits are worth what the caller says, of all that was asked for") {
        paired_evidence evidence;
        // Way 0 has every second request, each of 1; way 1 the others, each of 3.
        for (std::uint64_t i = 0; i < 10'000; ++i) {
            const bool even = i % 2 == 0;
            evidence.hit(even ? 0 : 1, even ? 1 : 3);
            evidence.end_request(even ? 1 : 3);
        }
        const auto gain = evidence.gain_of(1, 0, least, few);
        REQUIRE(gain);
        CHECK(gain->of_all == doctest::Approx(0.5));
        CHECK(gain->of_misses == doctest::Approx(2.0 / 3));
    }
}
