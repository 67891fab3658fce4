#include "tools/bench_proxy/span_histogram.hpp"

#include <doctest/doctest.h>

namespace reprise::bench::test::of_span_histogram {

TEST_SUITE_BEGIN("bench_proxy/span_histogram");

TEST_CASE("a span lies in the bucket whose bounds are around it") {
    for (std::uint64_t span = 1; span < (std::uint64_t{1} << 36); span = span * 9 / 8 + 1) {
        const auto index = span_buckets::index_of(span);
        CAPTURE(span);
        REQUIRE(index < span_buckets::count);
        CHECK(span_buckets::lower_bound_of(index) <= span);
        CHECK(span < span_buckets::lower_bound_of(index + 1));
    }
}

TEST_CASE("buckets meet, and are at most a 32nd of their spans wide") {
    for (std::size_t i = 64; i < span_buckets::count; ++i) {
        const auto low = span_buckets::lower_bound_of(i);
        const auto high = span_buckets::lower_bound_of(i + 1);
        REQUIRE(low < high);
        REQUIRE((high - low) * 32 <= low);
        REQUIRE(span_buckets::index_of(high - 1) == i);
    }
}

TEST_CASE("what is longer than the range is counted in the last bucket, and kept as the longest") {
    span_histogram spans;
    spans.note(std::uint64_t{1} << 50);
    CHECK(spans.count() == 1);
    CHECK(spans.longest() == std::uint64_t{1} << 50);
    CHECK(span_buckets::index_of(std::uint64_t{1} << 50) == span_buckets::count - 1);
}

TEST_CASE("a quantile is within a bucket of the true one, and never above the longest") {
    span_histogram spans;
    for (std::uint64_t span = 1; span <= 100'000; ++span) {
        spans.note(span);
    }
    CHECK(spans.count() == 100'000);
    CHECK(spans.sum() == 100'000ULL * 100'001 / 2);
    for (const double quantile : {0.5, 0.9, 0.99, 0.999}) {
        const auto exact = quantile * 100'000;
        const auto found = static_cast<double>(spans.quantile(quantile));
        CHECK(found >= exact);
        CHECK(found <= exact * 33 / 32);
    }
    CHECK(spans.quantile(1) == 100'000);
}

TEST_CASE("one long span among a thousand is the longest, and not the 999th thousandth") {
    span_histogram spans;
    for (int i = 0; i < 999; ++i) {
        spans.note(1000);
    }
    spans.note(5'000'000);
    CHECK(spans.longest() == 5'000'000);
    CHECK(spans.quantile(0.999) < 1100);
    CHECK(spans.count_from(1'000'000) == 1);
}

TEST_CASE("taking in adds counts, and clearing leaves none") {
    span_histogram one, other;
    one.note(10);
    other.note(20);
    other.note(30);
    one.take_in(other);
    CHECK(one.count() == 3);
    CHECK(one.sum() == 60);
    CHECK(one.longest() == 30);
    one.clear();
    CHECK(one.count() == 0);
    CHECK(one.longest() == 0);
    CHECK(one.quantile(0.5) == 0);
}

TEST_SUITE_END();

}  // namespace reprise::bench::test::of_span_histogram
