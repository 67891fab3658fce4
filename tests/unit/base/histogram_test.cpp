#include "proxy/base/histogram.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace reprise::proxy;

TEST_SUITE("base/histogram") {

    TEST_CASE("every value lies within its bucket") {
        for (std::uint64_t value = 0; value < 100'000; ++value) {
            const auto index = latency_buckets::index_of(value);
            REQUIRE(latency_buckets::lower_bound_of(index) <= value);
            REQUIRE(latency_buckets::lower_bound_of(index + 1) > value);
        }
    }

    TEST_CASE("buckets meet without gaps, and none is wider than an eighth of its values") {
        for (std::size_t index = 0; index < latency_buckets::count; ++index) {
            CAPTURE(index);
            const auto low = latency_buckets::lower_bound_of(index);
            const auto high = latency_buckets::lower_bound_of(index + 1);
            CHECK(latency_buckets::index_of(low) == index);
            CHECK(latency_buckets::index_of(high - 1) == index);
            CHECK((high - low == 1 || (high - low) * 8 <= low));
        }
    }

    TEST_CASE("what is beyond the range falls in the last bucket") {
        constexpr auto last = latency_buckets::count - 1;
        CHECK(latency_buckets::index_of((std::uint64_t{1} << 32) - 1) == last);
        CHECK(latency_buckets::index_of(std::uint64_t{1} << 32) == last);
        CHECK(latency_buckets::index_of(std::numeric_limits<std::uint64_t>::max()) == last);
    }

    TEST_CASE("quantiles are right to within an eighth") {
        histogram_totals histogram;
        for (std::uint64_t value = 1; value <= 10'000; ++value) {
            ++histogram.buckets[latency_buckets::index_of(value)];
        }
        for (const double quantile : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
            CAPTURE(quantile);
            CHECK(quantile_of(histogram, quantile) ==
                  doctest::Approx(quantile * 10'000).epsilon(0.125));
        }
    }

    TEST_CASE("an empty histogram has the quantile 0") {
        CHECK(quantile_of(histogram_totals{}, 0.5) == 0);
    }

    TEST_CASE("count_below counts exactly at powers of two") {
        histogram_totals histogram;
        for (std::uint64_t value = 0; value < 5'000; ++value) {
            ++histogram.buckets[latency_buckets::index_of(value)];
        }
        for (unsigned power = 4; power <= 12; ++power) {
            CAPTURE(power);
            CHECK(count_below(histogram, power) == (std::uint64_t{1} << power));
        }
        CHECK(count_below(histogram, 13) == 5'000);
        CHECK(count_below(histogram, 32) == 5'000);
        CHECK(count_below(histogram, 60) == 5'000);
    }

}  // TEST_SUITE
