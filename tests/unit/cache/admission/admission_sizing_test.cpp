#include "proxy/cache/admission/admission_sizing.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace reprise::proxy::cache::test::of_admission_sizing {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::sys_seconds now{std::chrono::hours{500'000}};
constexpr admission_bounds bounds{.most_objects = 1u << 19};

/// A young generation that took `keys` in `span`.
filter::admission_figures took(std::uint64_t keys, std::chrono::seconds span) {
    filter::admission_figures figures;
    figures.young.keys = keys;
    figures.young.since = now - span;
    return figures;
}

filter::admission_settings filter_of(std::uint64_t objects, std::chrono::seconds age) {
    return {.objects = objects, .age = age};
}

}  // namespace

TEST_SUITE("cache/admission/admission_sizing") {
    TEST_CASE("while nothing is evicted the filter remembers as long as it may, and grows") {
        const auto is = begin_remembering({}, bounds);
        CHECK(is.age == 50h);
        CHECK(is.objects == 1u << 19);  // what there is room for
        CHECK(begin_remembering({}, {.most_objects = 1u << 30}).objects == 1u << 21);
        CHECK(follow(is, took(100, 1h), now, {}, bounds) == is);
        CHECK(follow(filter_of(1u << 16, 50h), took(50'000, 1h), now, {}, bounds).objects ==
              1u << 18);
        CHECK(follow(filter_of(1u << 18, 50h), took(250'000, 1h), now, {}, bounds).objects ==
              1u << 19);
        CHECK(follow(filter_of(1u << 19, 50h), took(500'000, 1h), now, {}, bounds).objects ==
              1u << 19);
    }

    TEST_CASE("a generation that a flow filled and turned between two looks is reason to grow") {
        auto figures = took(5'000, 1s);
        figures.old.keys = 1u << 16;
        figures.old.since = now - 4s;
        const auto is = filter_of(1u << 16, 64s);
        CHECK(follow(is, figures, now, {}, bounds).objects == 1u << 18);
        CHECK(follow(is, figures, now, 64s, bounds).objects == 1u << 18);
        figures.old.since = now - 62s;  // in its time
        CHECK(follow(is, figures, now, 64s, bounds).objects == is.objects);
    }

    TEST_CASE("the age follows the age of eviction, within four times of it") {
        const auto is = filter_of(1u << 16, 50h);
        const auto next = follow(is, took(0, 1h), now, 600s, bounds);
        CHECK(next.age == 1024s);
        CHECK(next.objects == is.objects);  // too few keys to tell
        // What is near enough stays.
        for (const auto age : {256s, 600s, 1024s}) {
            CHECK(follow(next, took(0, 1h), now, age, bounds).age == 1024s);
        }
        CHECK(follow(next, took(0, 1h), now, 1025s, bounds).age == 2048s);
        CHECK(follow(next, took(0, 1h), now, 255s, bounds).age == 256s);
        CHECK(follow(next, took(0, 1h), now, 0s, bounds).age == 64s);
        CHECK(follow(next, took(0, 1h), now, 8'000h, bounds).age == 50h);
    }

    TEST_CASE("the size follows what comes within that age") {
        // 100 new keys a second for 1,024 s, and a quarter more: 128,000.
        const auto is = filter_of(1u << 14, 1024s);
        CHECK(follow(is, took(10'000, 100s), now, 1000s, bounds).objects == 1u << 17);
        // Smaller only when a quarter would do.
        CHECK(follow(filter_of(1u << 18, 1024s), took(10'000, 100s), now, 1000s, bounds).objects ==
              1u << 18);
        CHECK(follow(filter_of(1u << 19, 1024s), took(10'000, 100s), now, 1000s, bounds).objects ==
              1u << 17);
        CHECK(follow(is, took(10'000, 1s), now, 1000s, bounds) == is);  // too soon to tell
        // But what is nearly full now would turn before the next look.
        CHECK(follow(is, took(16'000, 1s), now, 1000s, bounds).objects == 1u << 16);
        CHECK(follow(is, took(1'000'000, 100s), now, 1000s, bounds).objects == 1u << 19);
    }

    TEST_CASE("following what it has led to changes nothing more") {
        for (const auto age : {1s, 70s, 3'000s, 100'000s, 10'000'000s}) {
            for (const std::uint64_t rate : {1u, 10u, 1'000u, 100'000u}) {
                CAPTURE(age.count());
                CAPTURE(rate);
                const auto figures = took(rate * 1'000, 1'000s);
                const auto first = follow(filter_of(1u << 16, 50h), figures, now, age, bounds);
                CHECK(follow(first, figures, now, age, bounds) == first);
            }
        }
    }

    TEST_CASE("the most objects are what the bytes have room for") {
        for (const std::uint64_t bytes : {0u, 1u << 18, 1u << 22, 1u << 26}) {
            for (const unsigned layers : {1u, 14u}) {
                CAPTURE(bytes);
                CAPTURE(layers);
                filter::admission_settings settings{.layers = layers};
                const auto most = bounds_within(bytes, settings).most_objects;
                settings.objects = most;
                const auto taken = 2 * layers * filter::admission_blocks(settings) * 64;
                CHECK((taken <= bytes || most == admission_bounds::least_objects));
                settings.objects = 2 * most;
                CHECK(2 * layers * filter::admission_blocks(settings) * 64 > bytes);
            }
        }
    }
}

}  // namespace reprise::proxy::cache::test::of_admission_sizing
