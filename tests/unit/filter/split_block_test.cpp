#include "filter/split_block.hpp"
#include "filter/split_block_kernels.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

namespace reprise::filter {

using test::found;
using test::nth_key;

namespace {

split_block_bloom blocks_filled(std::uint64_t blocks, std::uint64_t family, std::uint64_t keys) {
    return test::filled(split_block_bloom{blocks}, family, keys);
}

/// The rate as a sum over how many keys a block may hold, term by term.
double summed_rate(std::uint64_t blocks, std::uint64_t keys) {
    const double chance = 1.0 / static_cast<double>(blocks);
    double sum = 0;
    for (std::uint64_t i = 0; i <= keys; ++i) {
        const auto n = static_cast<double>(keys);
        const auto held = static_cast<double>(i);
        const double log_weight = std::lgamma(n + 1) - std::lgamma(held + 1) -
                                  std::lgamma(n - held + 1) + held * std::log(chance) +
                                  (n - held) * std::log1p(-chance);
        sum += std::exp(log_weight) * std::pow(1 - std::pow(31.0 / 32.0, held), 8);
    }
    return sum;
}

}  // namespace

TEST_SUITE("filter/split_block") {
    TEST_CASE("an empty filter contains nothing") {
        const split_block_bloom filter{10};
        CHECK(found(filter, 2, 10'000) == 0);
        CHECK(filter.bits_on() == 0);
        CHECK(filter.bytes() == 320);
        CHECK(filter.measure().keys == 0);
    }

    TEST_CASE("a key sets eight bits, by eight fives of its hash's high word") {
        // The layout, once and for all: in one block, word i of a key's block gets bit
        // (five bits of the high word), taken by halves in turn. A filter that has only this key
        // contains another exactly when their eight fives are equal.
        constexpr std::uint64_t fives = 0x000f'ffff'000f'ffff;
        split_block_bloom filter{1};
        filter.insert({.low = 7, .high = 0x0123'4567'89ab'cdef});
        CHECK(filter.bits_on() == split_lanes);
        CHECK(filter.may_contain({.low = 9, .high = 0x0123'4567'89ab'cdef}));
        for (unsigned bit = 0; bit < 64; ++bit) {
            CAPTURE(bit);
            const auto flipped = 0x0123'4567'89ab'cdef ^ (std::uint64_t{1} << bit);
            CHECK(filter.may_contain({.low = 7, .high = flipped}) == ((fives >> bit & 1) == 0));
        }
    }

    TEST_CASE("plain and AVX2 code agree bit for bit") {
        namespace kernels = split_block_kernels;
        if (!kernels::has_avx2) {
            MESSAGE("no AVX2 here: plain code alone is in use");
            return;
        }
        alignas(32) kernels::block_words plain{};
        alignas(32) kernels::block_words wide{};
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            if (i % 64 == 0) {
                plain = wide = {};
            }
            const auto hash = nth_key(1, i).high;
            const auto other = nth_key(2, i).high;
            CHECK(kernels::put_all_plain(plain, hash) == kernels::put_all_avx2(wide, hash));
            CHECK(plain == wide);
            CHECK(kernels::has_all_plain(plain, hash));
            CHECK(kernels::has_all_avx2(plain, hash));
            CHECK(kernels::has_all_plain(plain, other) == kernels::has_all_avx2(plain, other));
        }
    }

    TEST_CASE("keys asked many at a time are answered as one by one") {
        const auto filter = blocks_filled(500, 1, 10'000);
        for (const std::size_t count : {0, 1, 5, 24, 25, 1000}) {
            CAPTURE(count);
            std::vector<key_hash> keys;
            for (std::size_t i = 0; i < count; ++i) {
                keys.push_back(nth_key(1 + i % 2, i));
            }
            const auto answers = std::make_unique<bool[]>(count);
            filter.may_contain(keys, {answers.get(), count});
            for (std::size_t i = 0; i < count; ++i) {
                CHECK(answers[i] == filter.may_contain(keys[i]));
            }
        }
    }

    TEST_CASE("the closed form of the rate is the sum over a block's keys") {
        for (const std::uint64_t blocks : {2, 10, 1000}) {
            for (const std::uint64_t per_block : {1, 10, 25, 60}) {
                CAPTURE(blocks);
                CAPTURE(per_block);
                const auto keys = blocks * per_block;
                CHECK(split_block_rate(blocks, static_cast<double>(keys)) ==
                      doctest::Approx(summed_rate(blocks, keys)).epsilon(1e-7));
            }
        }
        CHECK(split_block_rate(1, 20) ==
              doctest::Approx(std::pow(1 - std::pow(31.0 / 32.0, 20), 8)).epsilon(1e-9));
        CHECK(split_block_rate(5, 0) == 0);
    }

    TEST_CASE("sizes are the least that keep to the rate, and capacities the most") {
        for (const double rate : {0.2, 0.01, 0.001, 1e-6}) {
            for (const std::uint64_t keys : {1, 100, 1'000'000}) {
                CAPTURE(rate);
                CAPTURE(keys);
                const auto blocks = split_blocks_for(keys, rate);
                CHECK(split_block_rate(blocks, static_cast<double>(keys)) <= rate);
                if (blocks > 1) {
                    CHECK(split_block_rate(blocks - 1, static_cast<double>(keys)) > rate);
                }
                const auto capacity = split_block_capacity(blocks, rate);
                CHECK(capacity >= keys);
                CHECK(split_block_rate(blocks, static_cast<double>(capacity)) <= rate);
                CHECK(split_block_rate(blocks, static_cast<double>(capacity + 1)) > rate);
            }
        }
        // What the header says a rate of 0.0005 takes.
        CHECK(static_cast<double>(split_blocks_for(1'000'000, 0.0005)) * 256e-6 ==
              doctest::Approx(19.3).epsilon(0.003));
    }

    TEST_CASE("the measured rate is the predicted one, and at capacity at most the one asked for") {
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            constexpr std::uint64_t keys = 100'000;
            constexpr std::uint64_t asked = 1'000'000;
            const auto filter = blocks_filled(split_blocks_for(keys, rate), 1, keys);
            const auto predicted = split_block_rate(filter.blocks(), keys) * asked;
            const auto measured = static_cast<double>(found(filter, 2, asked));
            // Five sigma of asking, and 1 % for this filter being one of many.
            const auto error = 5 * std::sqrt(predicted) + predicted * 0.01;
            CHECK(std::abs(measured - predicted) < error);
            CHECK(measured < rate * asked + error);
        }
    }

    TEST_CASE("a filter's own bits tell its keys, its fill and its rate") {
        constexpr std::uint64_t keys = 100'000;
        const auto filter = blocks_filled(split_blocks_for(keys, 0.001), 1, keys);
        const auto whole = filter.measure();
        CHECK(whole.keys == doctest::Approx(keys).epsilon(0.01));
        CHECK(whole.fill * static_cast<double>(filter.bytes() * 8) ==
              doctest::Approx(static_cast<double>(filter.bits_on())));
        CHECK(whole.false_positive_rate ==
              doctest::Approx(split_block_rate(filter.blocks(), keys)).epsilon(0.05));
    }

    TEST_CASE("copies are of their own, clear forgets everything") {
        auto filter = blocks_filled(50, 1, 100);
        const auto copy = filter;
        filter.clear();
        CHECK(filter == split_block_bloom{50});
        CHECK(copy == blocks_filled(50, 1, 100));
    }

    TEST_CASE("memory of several megabytes is zeroed too") {
        // 8 MiB: what is given out in huge pages.
        split_block_bloom filter{(8u << 20) / split_block_bytes};
        CHECK(filter.bits_on() == 0);
        filter.insert(nth_key(1, 1));
        CHECK(filter.bits_on() == split_lanes);
    }
}

}  // namespace reprise::filter
