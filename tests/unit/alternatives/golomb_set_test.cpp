#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/cells.hpp"
#include "tools/alternatives/golomb_set.hpp"

#include <algorithm>
#include <cmath>

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/golomb_set") {
    TEST_CASE("an empty set holds nothing") {
        const golomb_set set{{}, 0.01};
        CHECK(!set.may_contain(nth_key(1, 1)));
        CHECK(set.keys() == 0);
        CHECK(set.rate() == 0);
        CHECK(set.wire_bits() == 0);
        CHECK(set.values().empty());
    }

    TEST_CASE("every key it was made from is found, however many there are and at any rate") {
        for (const std::uint64_t count : {1, 2, 127, 128, 129, 5'000}) {
            for (const double rate : {0.9, 0.5, 0.3, 0.01, 1e-4, 1e-12}) {
                CAPTURE(count);
                CAPTURE(rate);
                const auto keys = keys_of(1, count);
                const golomb_set set{keys, rate};
                CHECK(false_negatives(set, keys) == 0);
            }
        }
    }

    TEST_CASE("the code reads back as the hashes, in order and once each") {
        for (const double rate : {0.6, 0.1, 0.013, 1e-6}) {
            CAPTURE(rate);
            auto keys = keys_of(1, 3'000);
            const auto range = static_cast<std::uint64_t>(std::ceil(3'000 / rate));
            std::vector<std::uint64_t> expected;
            for (const auto key : keys) {
                expected.push_back(scaled(key.low, range));
            }
            std::sort(expected.begin(), expected.end());
            expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
            const golomb_set set{keys, rate};
            CHECK(set.values() == expected);
            CHECK(set.keys() == expected.size());
        }
    }

    TEST_CASE("the measured rate is the share of the range that is taken") {
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            const golomb_set set{keys_of(1, 20'000), rate};
            CHECK(set.rate() <= rate);
            check_rate(set, set.rate());
        }
    }

    TEST_CASE("it is within a twentieth of a bit a key of the entropy") {
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            constexpr std::uint64_t count = 100'000;
            const golomb_set set{keys_of(1, count), rate};
            const auto keys = static_cast<double>(set.keys());
            const auto on = set.rate();
            const auto entropy = (-on * std::log2(on) - (1 - on) * std::log2(1 - on)) / on;
            CHECK(static_cast<double>(set.wire_bits()) / keys > entropy - 0.01);
            CHECK(static_cast<double>(set.wire_bits()) / keys < entropy + 0.05);
        }
    }

    TEST_CASE("duplicates count once") {
        auto keys = keys_of(1, 1'000);
        keys.insert(keys.end(), keys.begin(), keys.end());
        const golomb_set set{keys, 1e-6};
        CHECK(set.keys() == 1'000);
    }
}

}  // namespace reprise::alternatives
