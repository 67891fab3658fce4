#include "filter/layered.hpp"
#include "filter/split_block.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

layered_filter<split_block_bloom> layers_of(const std::vector<std::uint64_t>& blocks) {
    std::vector<split_block_bloom> layers;
    for (const auto count : blocks) {
        layers.emplace_back(count);
    }
    return layered_filter<split_block_bloom>{std::move(layers)};
}

}  // namespace

TEST_SUITE("filter/layered") {
    TEST_CASE("note tells how many sights there were before, up to the layers") {
        auto filter = layers_of({5'000, 5'000, 5'000});
        CHECK(filter.max_count() == 3);
        CHECK(filter.bytes() == 3 * 5'000 * split_block_bytes);
        for (std::uint64_t i = 0; i < 100; ++i) {
            const auto key = nth_key(1, i);
            CHECK_FALSE(filter.may_contain(key));
            for (const std::size_t before : {0, 1, 2, 3, 3}) {
                CHECK(filter.count(key) == before);
                CHECK(filter.note(key) == before);
            }
            CHECK(filter.may_contain(key));
        }
    }

    TEST_CASE("a count is never below the sights, whatever the filters' sizes") {
        auto filter = layers_of({40, 10, 3, 1});
        std::vector<std::size_t> sights(2'000);
        for (std::uint64_t i = 0; i < 6'000; ++i) {
            const auto key = test::mix(i) % sights.size();
            const auto before = filter.note(nth_key(1, key));
            CHECK(before >= std::min<std::size_t>(sights[key], 4));
            ++sights[key];
        }
        for (std::uint64_t key = 0; key < sights.size(); ++key) {
            CHECK(filter.count(nth_key(1, key)) >= std::min<std::size_t>(sights[key], 4));
        }
    }

    TEST_CASE("a count is too high as often as the next layer errs") {
        // 20,000 keys once, 20,000 twice, 20,000 three times: layers of 60,000, 40,000 and 20,000
        // keys and of different rates.
        const std::vector<std::uint64_t> blocks{split_blocks_for(60'000, 0.02),
                                                split_blocks_for(40'000, 0.05),
                                                split_blocks_for(20'000, 0.1)};
        auto filter = layers_of(blocks);
        for (std::uint64_t times = 1; times <= 3; ++times) {
            for (std::uint64_t i = 0; i < 20'000 * (4 - times); ++i) {
                filter.insert(nth_key(1, i));
            }
        }
        const std::array rates{0.02, 0.05, 0.1};
        for (std::size_t sights = 0; sights <= 3; ++sights) {
            CAPTURE(sights);
            // Keys seen so often, which the order of insertion left at the end of each range; those
            // that were never seen are of another family.
            std::uint64_t higher = 0;
            for (std::uint64_t i = 0; i < 20'000; ++i) {
                const auto key = sights == 0 ? nth_key(2, i)
                                             : nth_key(1, 20'000 * (3 - sights) + i);
                higher += filter.count(key) > sights ? 1 : 0;
            }
            const auto expected = 20'000 * overcount_rate(rates, sights);
            // Five sigma; and counts too high have put into each layer up to as many keys more as
            // the one below errs, which raises its rate by about four times that share.
            const auto drift = sights == 0 ? 0.02 : 0.35;
            CHECK(std::abs(static_cast<double>(higher) - expected) <=
                  5 * std::sqrt(expected) + drift * expected);
        }
        CHECK(overcount_rate(rates, 3) == 0);
    }

    TEST_CASE("clear forgets every count") {
        auto filter = layers_of({100, 100});
        filter.insert(nth_key(1, 1));
        filter.insert(nth_key(1, 1));
        filter.clear();
        CHECK(filter.count(nth_key(1, 1)) == 0);
        CHECK(filter.layer(1).bits_on() == 0);
    }
}

}  // namespace reprise::filter
