#include "proxy/cache/policy/packed_wait.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <set>

using reprise::proxy::cache::longer;
using reprise::proxy::cache::packed_wait;
using reprise::proxy::cache::wait_mean;
using std::chrono::microseconds;

TEST_SUITE_BEGIN("cache/policy/packed_wait");

TEST_CASE("what is not known is neither short nor long") {
    CHECK_FALSE(packed_wait{}.is_known());
    CHECK(packed_wait{}.code() == 0);
    CHECK(packed_wait{}.seconds() == 0);
    CHECK(packed_wait{} == packed_wait::of_code(0));
}

TEST_CASE("what lies beyond the ends is at them") {
    for (const std::int64_t few :
         {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{100}}) {
        CAPTURE(few);
        CHECK(packed_wait{microseconds{few}}.code() == 1);
        CHECK(packed_wait{microseconds{few}}.seconds() == doctest::Approx(1e-4));
    }
    for (const std::int64_t many :
         {std::int64_t{10'000'000}, std::int64_t{10'000'001}, INT64_MAX}) {
        CAPTURE(many);
        CHECK(packed_wait{microseconds{many}}.code() == 127);
        CHECK(packed_wait{microseconds{many}}.seconds() == 10);
    }
    CHECK(packed_wait{microseconds{101}}.code() == 1);
    CHECK(packed_wait{microseconds{9'999'999}}.code() == 127);
    CHECK(packed_wait{microseconds{9'000'000}}.code() == 126);
}

TEST_CASE("known answers, which are written on disk") {
    CHECK(packed_wait{microseconds{109}}.code() == 2);
    CHECK(packed_wait{microseconds{1'000}}.code() == 26);
    CHECK(packed_wait{microseconds{5'000}}.code() == 44);
    CHECK(packed_wait{microseconds{50'000}}.code() == 69);
    CHECK(packed_wait{microseconds{500'000}}.code() == 94);
    CHECK(packed_wait{microseconds{1'000'000}}.code() == 102);
}

TEST_CASE("every step is read as it was written, and no two are alike") {
    std::set<double> all;
    for (unsigned code = 1; code <= packed_wait::most_code; ++code) {
        const auto one = packed_wait::of_code(code);
        CAPTURE(code);
        CHECK(one.code() == code);
        CHECK(packed_wait{one.microseconds()}.code() == code);
        all.insert(one.seconds());
    }
    CHECK(all.size() == packed_wait::most_code);
    for (const unsigned code : {128u, 255u, 256u, 257u, ~0u}) {
        CHECK_FALSE(packed_wait::of_code(code).is_known());
    }
}

TEST_CASE("between the ends it is at most a twentieth off, and longer is never less") {
    auto before = packed_wait{microseconds{1}};
    for (double us = 100; us < 1e7; us *= 1.003) {
        const auto took = microseconds{static_cast<std::int64_t>(us)};
        const packed_wait one{took};
        CAPTURE(took.count());
        CHECK(std::abs(one.seconds() * 1e6 / static_cast<double>(took.count()) - 1) < 0.05);
        CHECK(one.code() >= before.code());
        before = one;
    }
}

TEST_CASE("the longer of two; one that is not known is the shorter") {
    const packed_wait five{microseconds{5'000}}, fifty{microseconds{50'000}};
    CHECK(longer(five, fifty) == fifty);
    CHECK(longer(fifty, five) == fifty);
    CHECK(longer({}, five) == five);
    CHECK_FALSE(longer({}, {}).is_known());
}

TEST_CASE("what nobody timed is guessed to be the mean of what was timed lately") {
    wait_mean mean;
    CHECK(mean.seconds_of({}) == 0.1);
    const packed_wait slow{std::chrono::seconds{2}};
    for (int i = 0; i < 1'000; ++i) {
        mean.note(slow);
        mean.note({});
    }
    CHECK(mean.seconds_of({}) == doctest::Approx(slow.seconds()));
    CHECK(mean.seconds_of(packed_wait{microseconds{100}}) == doctest::Approx(1e-4));
}

TEST_SUITE_END();
