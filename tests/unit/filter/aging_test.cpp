#include "filter/aging.hpp"
#include "filter/bloom.hpp"
#include "filter/split_block.hpp"
#include "filter/standard.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace reprise::filter {

using test::nth_key;

namespace {

/// So large that no test meets a false positive: what is remembered is then exact.
constexpr std::uint64_t roomy = 1 << 14;

/// How many of the latest `among` keys (family 1, up to but without `end`) are remembered, counted
/// from the latest back to the first that is not.
template <class Aging>
std::uint64_t span_of(const Aging& filter, std::uint64_t end, std::uint64_t among) {
    std::uint64_t span = 0;
    while (span < std::min(among, end) && filter.may_contain(nth_key(1, end - 1 - span))) {
        ++span;
    }
    return span;
}

/// The least and the most that are remembered at any time of a stream of new keys.
template <class Aging>
aging_span observed_span(Aging& filter, std::uint64_t capacity) {
    aging_span seen{.least = UINT64_MAX, .most = 0};
    for (std::uint64_t i = 0; i < 9 * capacity; ++i) {
        filter.insert(nth_key(1, i));
        if (i + 1 >= 3 * capacity) {  // both filters have had their turn
            const auto span = span_of(filter, i + 1, 3 * capacity);
            seen.least = std::min(seen.least, span);
            seen.most = std::max(seen.most, span);
        }
    }
    return seen;
}

}  // namespace

TEST_SUITE("filter/aging") {
    TEST_CASE("double buffering remembers between half of its capacity and all of it") {
        for (const std::uint64_t capacity : {2, 10, 101}) {
            CAPTURE(capacity);
            double_buffer<split_block_bloom> filter{capacity, roomy};
            const auto span = observed_span(filter, capacity);
            CHECK(span.least >= capacity / 2);
            CHECK(span.least <= capacity / 2 + 1);
            CHECK(span.most <= capacity);
            CHECK(span.most + 1 >= capacity);
        }
    }

    TEST_CASE("two active buffers remember between their capacity and twice it") {
        for (const std::uint64_t capacity : {1, 10, 101}) {
            CAPTURE(capacity);
            two_active_buffers<split_block_bloom> filter{capacity, roomy};
            const auto span = observed_span(filter, capacity);
            CHECK(span.least >= capacity);
            CHECK(span.least <= capacity + 1);
            CHECK(span.most == 2 * capacity);
        }
    }

    TEST_CASE("a key that keeps coming is kept, whatever else comes") {
        double_buffer<split_block_bloom> first{100, roomy};
        two_active_buffers<split_block_bloom> second{100, roomy};
        const auto wanted = nth_key(3, 0);
        for (std::uint64_t i = 0; i < 2'000; ++i) {
            if (i % 40 == 0) {
                CHECK(first.insert_and_test(wanted) == (i != 0));
                CHECK(second.insert_and_test(wanted) == (i != 0));
            }
            first.insert(nth_key(1, i));
            second.insert(nth_key(1, i));
        }
    }

    TEST_CASE("keys that come again and again do not make double buffering forget the latest") {
        // All of a full filter is asked for once more: the other one must not be full with it when
        // its turn begins.
        constexpr std::uint64_t capacity = 100;
        double_buffer<split_block_bloom> filter{capacity, roomy};
        std::uint64_t next = 0;
        for (int round = 0; round < 20; ++round) {
            for (int i = 0; i < 37; ++i) {
                filter.insert(nth_key(1, next++));
            }
            const auto from = next - std::min<std::uint64_t>(next, capacity / 2);
            for (auto i = from; i < next; ++i) {
                CHECK(filter.insert_and_test(nth_key(1, i)));
            }
            CHECK(span_of(filter, next, capacity) >= std::min(next, capacity / 2));
        }
    }

    TEST_CASE("every plain filter can be aged") {
        double_buffer<standard_bloom> standard{50, bloom_size{.bits = 100'000, .probes = 5}};
        two_active_buffers<blocked_bloom> blocked{50, std::uint64_t{2'000}};
        for (std::uint64_t i = 0; i < 500; ++i) {
            standard.insert(nth_key(1, i));
            blocked.insert(nth_key(1, i));
        }
        CHECK(span_of(standard, 500, 200) >= 25);
        CHECK(span_of(blocked, 500, 200) >= 50);
        CHECK(standard.bytes() == 2 * 12'504);
        CHECK(blocked.bytes() == 2 * 2'000 * block_bytes);
    }

    TEST_CASE("advance ages by hand, clear forgets") {
        two_active_buffers<split_block_bloom> filter{100, roomy};
        filter.insert(nth_key(1, 0));
        filter.advance();
        CHECK(filter.may_contain(nth_key(1, 0)));
        CHECK(filter.keys() == 0);
        filter.advance();
        CHECK_FALSE(filter.may_contain(nth_key(1, 0)));

        double_buffer<split_block_bloom> other{100, roomy};
        other.insert(nth_key(1, 0));
        other.advance();  // it was less than half full: nothing had been copied
        CHECK_FALSE(other.may_contain(nth_key(1, 0)));

        filter.insert(nth_key(1, 1));
        filter.clear();
        other.insert(nth_key(1, 1));
        other.clear();
        CHECK_FALSE(filter.may_contain(nth_key(1, 1)));
        CHECK_FALSE(other.may_contain(nth_key(1, 1)));
    }

    TEST_CASE("two filters asked together err with the rate when each errs with two_active_rate") {
        for (const double rate : {0.5, 0.01, 1e-9}) {
            const auto each = two_active_rate(rate);
            CHECK(each * (2 - each) == doctest::Approx(rate).epsilon(1e-12));
        }
    }

    TEST_CASE("in the same memory at the same rate two active buffers surely remember more keys") {
        // Yoon's theorem, by formula: 1.74 times as many at 1 %, 1.82 times at 0.1 %.
        constexpr std::uint64_t bits = 1'000'000;
        const auto gain = [](double rate) {
            double best_first = 0;
            double best_second = 0;
            for (unsigned probes = 1; probes <= 24; ++probes) {
                const bloom_size size{.bits = bits, .probes = probes};
                best_first = std::max(best_first,
                                      static_cast<double>(double_buffer_span(size, rate).least));
                best_second = std::max(best_second,
                                       static_cast<double>(two_active_span(size, rate).least));
            }
            return best_second / best_first;
        };
        CHECK(gain(0.01) == doctest::Approx(1.74).epsilon(0.01));
        CHECK(gain(0.001) == doctest::Approx(1.82).epsilon(0.01));
        for (const double rate : {0.3, 0.1, 1e-4, 1e-6}) {
            CHECK(gain(rate) > 1);
        }
    }

    TEST_CASE("and so it is measured: the spans are kept at the rate asked for") {
        constexpr double rate = 0.01;
        constexpr std::uint64_t bits = 20'000;
        constexpr std::uint64_t asked = 100'000;
        const bloom_size first_size{.bits = bits, .probes = 7};
        const bloom_size second_size{.bits = bits, .probes = 8};
        const auto first_span = double_buffer_span(first_size, rate);
        const auto second_span = two_active_span(second_size, rate);
        double_buffer<standard_bloom> first{first_span.most, first_size};
        two_active_buffers<standard_bloom> second{second_span.least, second_size};
        CHECK(first.bytes() == second.bytes());
        // To the moment before the roles change, when both are fullest.
        std::uint64_t i = 0;
        const auto run = [&](auto& filter, std::uint64_t full) {
            for (i = 0; i < 5 * full || filter.keys() + 1 < full; ++i) {
                filter.insert(nth_key(1, i));
            }
            std::uint64_t wrong = 0;
            for (std::uint64_t j = 0; j < asked; ++j) {
                wrong += filter.may_contain(nth_key(2, j)) ? 1 : 0;
            }
            // 1,000 expected: five sigma of asking and 5 % for a filter of 20,000 bits being one
            // of many.
            CHECK(static_cast<double>(wrong) < asked * rate * 1.05 + 5 * std::sqrt(asked * rate));
        };
        run(first, first_span.most);
        CHECK(span_of(first, i, 2 * first_span.most) >= first_span.least);
        run(second, second_span.least);
        CHECK(span_of(second, i, 2 * second_span.most) >= second_span.least);
        CHECK(second_span.least > 1.7 * static_cast<double>(first_span.least));
    }
}

}  // namespace reprise::filter
