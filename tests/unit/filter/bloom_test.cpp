#include "filter/bloom.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <thread>
#include <vector>

namespace reprise::filter {

using test::found;
using test::nth_key;

namespace {

blocked_bloom filled(std::uint64_t blocks, std::uint64_t keys) {
    return test::filled(blocked_bloom{blocks}, 1, keys);
}

}  // namespace

TEST_SUITE("filter/bloom") {
    TEST_CASE("an empty one is estimated to hold nothing, and not minus nothing") {
        CHECK(!std::signbit(blocked_bloom{10}.measure().keys));
    }

    TEST_CASE("in memory that is handed in, two are one, and what is there is kept") {
        alignas(64) std::array<std::byte, 20 * 64> memory{};
        {
            blocked_bloom one{20, memory.data()}, other{20, memory.data()};
            one.insert(nth_key(1, 1));
            CHECK(other.may_contain(nth_key(1, 1)));
        }
        const blocked_bloom later{20, memory.data()};
        CHECK(later.may_contain(nth_key(1, 1)));
        CHECK(later.bits_on() == 8);
    }

    TEST_CASE("an empty filter contains nothing") {
        const blocked_bloom filter{10};
        CHECK(found(filter, 2, 10'000) == 0);
        CHECK(filter.bits_on() == 0);
        CHECK(filter.bytes() == 640);
    }

    TEST_CASE("a key sets one bit in each word of one block") {
        blocked_bloom filter{100};
        filter.insert(nth_key(1, 1));
        CHECK(filter.bits_on() == lanes);
        unsigned touched = 0;
        for (std::uint64_t block = 0; block < filter.blocks(); ++block) {
            const auto words = filter.read_block(block);
            if (words[0] == 0) {
                continue;
            }
            ++touched;
            for (const auto word : words) {
                CHECK(std::popcount(word) == 1);
            }
        }
        CHECK(touched == 1);
    }

    TEST_CASE("the measured rate is the predicted one, and at capacity at most the one asked for") {
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            constexpr std::uint64_t keys = 100'000;
            constexpr std::uint64_t asked = 2'000'000;
            auto filter = filled(blocks_for(keys, rate), keys);
            const auto predicted = blocked_rate(filter.blocks(), keys) * asked;
            const auto measured = static_cast<double>(found(filter, 2, asked));
            // Five sigma of asking, and as much again for this filter being one of many.
            const auto error = 5 * std::sqrt(predicted) + predicted * 0.01;
            CHECK(std::abs(measured - predicted) < error);
            CHECK(measured < rate * asked + error);
            // The size is not more generous than needed either.
            CHECK(predicted > 0.99 * rate * asked);
        }
    }

    TEST_CASE("a filter's own bits tell its keys, its fill and its rate") {
        constexpr std::uint64_t keys = 200'000;
        auto filter = filled(blocks_for(keys, 0.001), keys);
        const auto predicted = blocked_rate(filter.blocks(), keys);
        const auto whole = filter.measure();
        CHECK(whole.keys == doctest::Approx(keys).epsilon(0.005));
        CHECK(whole.fill * static_cast<double>(filter.bytes() * 8) ==
              doctest::Approx(static_cast<double>(filter.bits_on())));
        CHECK(whole.false_positive_rate == doctest::Approx(predicted).epsilon(0.03));

        const auto sampled = filter.measure(2048);
        CHECK(sampled.keys == doctest::Approx(keys).epsilon(0.03));
        CHECK(sampled.fill == doctest::Approx(whole.fill).epsilon(0.02));
        CHECK(sampled.false_positive_rate == doctest::Approx(predicted).epsilon(0.2));
    }

    TEST_CASE("an estimate of a filter with nothing or everything in it is finite") {
        blocked_bloom filter{3};
        CHECK(filter.measure().keys == 0);
        for (std::uint64_t block = 0; block < 3; ++block) {
            std::array<std::uint64_t, lanes> full{};
            full.fill(UINT64_MAX);
            filter.write_block(block, full);
        }
        CHECK(filter.measure().fill == 1);
        CHECK(filter.measure().false_positive_rate == 1);
        CHECK(std::isfinite(filter.measure().keys));
    }

    TEST_CASE("clear empties exactly the blocks named") {
        auto filter = filled(8, 1'000);
        std::vector<std::array<std::uint64_t, lanes>> before;
        for (std::uint64_t block = 0; block < 8; ++block) {
            before.push_back(filter.read_block(block));
        }
        filter.clear(2, 5);
        for (std::uint64_t block = 0; block < 8; ++block) {
            CAPTURE(block);
            const auto expected = block >= 2 && block < 5 ? std::array<std::uint64_t, lanes>{}
                                                          : before[block];
            CHECK(filter.read_block(block) == expected);
        }
        filter.clear();
        CHECK(filter.bits_on() == 0);
    }

    TEST_CASE("a filter written block by block from another answers like it") {
        auto from = filled(50, 1'000);
        blocked_bloom to{50};
        for (std::uint64_t block = 0; block < 50; ++block) {
            to.write_block(block, from.read_block(block));
        }
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            CHECK(from.may_contain(nth_key(2, i)) == to.may_contain(nth_key(2, i)));
        }
    }

    TEST_CASE("a union taken while others insert and ask loses nothing that was in either") {
        blocked_bloom filter{500};
        blocked_bloom other{500};
        for (std::uint64_t i = 0; i < 2'000; ++i) {
            other.insert(nth_key(3, i));
        }
        std::thread writer{[&] {
            for (std::uint64_t i = 0; i < 2'000; ++i) {
                filter.insert(nth_key(1, i));
            }
        }};
        std::thread reader{[&] {
            for (std::uint64_t i = 0; i < 2'000; ++i) {
                (void)filter.may_contain(nth_key(1, i));
            }
        }};
        CHECK(filter.unite(other).has_value());
        writer.join();
        reader.join();
        std::uint64_t missed = 0;
        for (std::uint64_t i = 0; i < 2'000; ++i) {
            missed += filter.may_contain(nth_key(1, i)) ? 0 : 1;
            missed += filter.may_contain(nth_key(3, i)) ? 0 : 1;
        }
        CHECK(missed == 0);
    }

    TEST_CASE("threads that insert at once lose no key, and one of them is told it was first") {
        constexpr std::uint64_t keys = 20'000;
        blocked_bloom filter{blocks_for(keys, 1e-6)};
        std::vector<std::atomic<unsigned>> firsts(keys);
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (std::uint64_t i = 0; i < keys; ++i) {
                    if (!filter.insert_and_test(nth_key(1, i))) {
                        firsts[i].fetch_add(1, std::memory_order_relaxed);
                    }
                }
            });
        }
        threads.clear();
        std::uint64_t without_first = 0;
        for (std::uint64_t i = 0; i < keys; ++i) {
            CHECK(filter.may_contain(nth_key(1, i)));
            without_first += firsts[i] == 0 ? 1 : 0;
        }
        // One in a million is a false positive, told by nobody that it was first.
        CHECK(without_first <= 3);
    }
}

}  // namespace reprise::filter
