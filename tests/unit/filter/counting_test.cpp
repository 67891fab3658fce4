#include "filter/counting.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace reprise::filter {

using test::nth_key;

namespace {

counting_bloom filled(bloom_size size, std::uint64_t family, std::uint64_t keys) {
    return test::filled(counting_bloom{size}, family, keys);
}

standard_bloom standard_filled(bloom_size size, std::uint64_t family, std::uint64_t keys) {
    return test::filled(standard_bloom{size}, family, keys);
}

/// A key that has a place twice among its first `probes`, and which place.
struct repeating {
    key_hash key;
    std::uint64_t place = 0;
};

repeating key_that_repeats(bloom_size size) {
    for (std::uint64_t i = 0;; ++i) {
        indices at{nth_key(77, i), size.bits};
        std::set<std::uint64_t> seen;
        for (unsigned probe = 0; probe < size.probes; ++probe) {
            const auto place = at.next();
            if (!seen.insert(place).second) {
                return {nth_key(77, i), place};
            }
        }
    }
}

}  // namespace

TEST_SUITE("filter/counting") {
    TEST_CASE("what was inserted and erased again leaves nothing behind") {
        constexpr bloom_size size{4'001, 7};
        auto filter = filled(size, 1, 500);
        const auto before = filter;
        for (std::uint64_t i = 0; i < 200; ++i) {
            filter.insert(nth_key(2, i));
        }
        for (std::uint64_t i = 0; i < 200; ++i) {
            CHECK(filter.erase(nth_key(2, i)));
        }
        CHECK(filter == before);
        for (std::uint64_t i = 0; i < 500; ++i) {
            CHECK(filter.erase(nth_key(1, i)));
        }
        CHECK(filter == counting_bloom{size});
    }

    TEST_CASE("a key that is in it twice is gone when it was erased twice") {
        counting_bloom filter{{1'000, 5}};
        filter.insert(nth_key(1, 1));
        filter.insert(nth_key(1, 1));
        CHECK(filter.erase(nth_key(1, 1)));
        CHECK(filter.may_contain(nth_key(1, 1)));
        CHECK(filter.erase(nth_key(1, 1)));
        CHECK(!filter.may_contain(nth_key(1, 1)));
        CHECK(!filter.erase(nth_key(1, 1)));
    }

    TEST_CASE("erasing what certainly was not inserted is refused, changes and reports nothing") {
        constexpr bloom_size size{2'000, 6};
        auto filter = filled(size, 1, 200);
        const auto before = filter;
        std::uint64_t refused = 0;
        for (std::uint64_t i = 0; i < 2'000; ++i) {
            const auto key = nth_key(2, i);
            if (filter.may_contain(key)) {
                continue;
            }
            ++refused;
            std::uint64_t reported = 0;
            CHECK(!filter.erase(key, [&](std::uint64_t) { ++reported; }));
            CHECK(reported == 0);
        }
        CHECK(filter == before);
        CHECK(refused > 1'500);
    }

    TEST_CASE("a key whose places repeat counts there as often, and takes out what it put in") {
        constexpr bloom_size size{64, 8};
        const auto [key, place] = key_that_repeats(size);
        counting_bloom filter{size};
        std::vector<std::uint64_t> on;
        filter.insert(key, [&](std::uint64_t changed) { on.push_back(changed); });
        CHECK(filter.places().at(place) >= 2);
        CHECK(std::set(on.begin(), on.end()).size() == on.size());
        CHECK(on.size() == filter.bits_on());
        std::vector<std::uint64_t> off;
        CHECK(filter.erase(key, [&](std::uint64_t changed) { off.push_back(changed); }));
        std::sort(on.begin(), on.end());
        std::sort(off.begin(), off.end());
        CHECK(on == off);
        CHECK(filter == counting_bloom{size});
    }

    TEST_CASE("a key whose repeated place is counted too low was certainly not inserted") {
        // Another key may well have turned on all of its places, each once.
        constexpr bloom_size size{64, 8};
        const auto [key, place] = key_that_repeats(size);
        counting_bloom with{size};
        with.insert(key);
        counting_bloom filter{size};
        for (std::uint64_t i = 0; !filter.may_contain(key); ++i) {
            const auto other = nth_key(78, i);
            filter.insert(other);
            if (filter.places().at(place) > 1) {
                REQUIRE(filter.erase(other));
            }
        }
        const auto before = filter;
        CHECK(!filter.erase(key));
        CHECK(filter == before);
    }

    TEST_CASE("every bit that goes on or off is reported, once, and no other") {
        constexpr bloom_size size{3'000, 5};
        std::mt19937_64 random{7};
        counting_bloom filter{size};
        std::vector<unsigned> inside(400);
        std::vector<bool> bits(size.bits);
        const auto turn = [&](bool to) {
            return [&bits, to](std::uint64_t place) {
                CHECK(bits[place] != to);
                bits[place] = to;
            };
        };
        for (int step = 0; step < 5'000; ++step) {
            const auto which = random() % inside.size();
            if (inside[which] > 0 && random() % 2 == 0) {
                CHECK(filter.erase(nth_key(1, which), turn(false)));
                --inside[which];
            } else if (inside[which] < 3) {
                filter.insert(nth_key(1, which), turn(true));
                ++inside[which];
            }
        }
        std::uint64_t on = 0;
        for (std::uint64_t place = 0; place < size.bits; ++place) {
            CHECK(filter.places().is_on(place) == bits[place]);
            on += bits[place] ? 1 : 0;
        }
        CHECK(filter.bits_on() == on);
    }

    TEST_CASE("counters stick at 15 and never wrap: nothing that is inside is lost") {
        // One key in it 40 times, and erased 40 times: its counters stick, and its bits stay on.
        constexpr bloom_size size{1'000, 4};
        auto filter = filled(size, 1, 50);
        const auto key = nth_key(2, 2);
        for (int i = 0; i < 40; ++i) {
            filter.insert(key);
        }
        CHECK(filter.stuck() > 0);
        for (int i = 0; i < 40; ++i) {
            CHECK(filter.erase(key));
        }
        CHECK(filter.may_contain(key));
        for (std::uint64_t i = 0; i < 50; ++i) {
            CHECK(filter.may_contain(nth_key(1, i)));
            CHECK(filter.erase(nth_key(1, i)));
        }
        CHECK(filter.bits_on() == filter.stuck());
        filter.clear();
        CHECK(filter == counting_bloom{size});
    }

    TEST_CASE("the snapshot is the standard filter of the same keys") {
        for (const std::uint64_t bits : {64, 1'000, 4'099}) {
            CAPTURE(bits);
            const bloom_size size{bits, 5};
            auto filter = filled(size, 1, bits / 10);
            CHECK(filter.snapshot() == standard_filled(size, 1, bits / 10));
            for (std::uint64_t i = bits / 20; i < bits / 10; ++i) {
                CHECK(filter.erase(nth_key(1, i)));
            }
            const auto left = standard_filled(size, 1, bits / 20);
            CHECK(filter.snapshot() == left);
            CHECK(filter.bits_on() == left.bits_on());
            CHECK(filter.false_positive_rate() == left.false_positive_rate());
        }
    }

    TEST_CASE("the measured rate after many came and left is that of the keys still inside") {
        // Budget: 4.5 sigma of asking 200,000 times, and of the fill, 0.9 % of the rate.
        constexpr bloom_size size{95'851, 7};
        counting_bloom filter{size};
        for (std::uint64_t i = 0; i < 40'000; ++i) {
            filter.insert(nth_key(1, i));
            if (i >= 10'000) {
                CHECK(filter.erase(nth_key(1, i - 10'000)));
            }
        }
        CHECK(filter.stuck() == 0);
        double measured = 0;
        for (std::uint64_t i = 0; i < 200'000; ++i) {
            measured += filter.may_contain(nth_key(2, i)) ? 1 : 0;
        }
        const auto predicted = 200'000 * exact_rate(size, 10'000);
        CHECK(std::abs(measured - predicted) <
              4.5 * std::hypot(std::sqrt(predicted), 0.009 * predicted));
    }

    TEST_CASE("merged filters are the filter of both multisets") {
        constexpr bloom_size size{5'000, 5};
        auto filter = filled(size, 1, 300);
        REQUIRE(filter.merge(filled(size, 2, 300)).has_value());
        REQUIRE(filter.merge(filled(size, 1, 100)).has_value());
        auto expected = filled(size, 1, 300);
        for (std::uint64_t i = 0; i < 300; ++i) {
            expected.insert(nth_key(2, i));
        }
        for (std::uint64_t i = 0; i < 100; ++i) {
            expected.insert(nth_key(1, i));
        }
        CHECK(filter == expected);
        for (std::uint64_t i = 0; i < 100; ++i) {
            CHECK(filter.erase(nth_key(1, i)));
            CHECK(filter.may_contain(nth_key(1, i)));
        }
    }
}

}  // namespace reprise::filter
