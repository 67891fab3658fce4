#include "proxy/cache/memory/invalidation_times.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::cache::test::of_invalidation_times {

using namespace std::chrono_literals;

TEST_SUITE("cache/memory/invalidation_times") {

    TEST_CASE("what was never invalidated was not since any moment") {
        const invalidation_times times;
        CHECK_FALSE(times.since(key_of("http://a/"), steady_time{}));
        CHECK_FALSE(times.since(key_of("http://a/"), steady_time::min()));
    }

    TEST_CASE("an invalidation is since every moment up to it, rounded up to a second") {
        invalidation_times times;
        times.note(key_of("http://a/"), steady_time{1000'500ms});
        CHECK(times.since(key_of("http://a/"), steady_time{900s}));
        CHECK(times.since(key_of("http://a/"), steady_time{1000'500ms}));
        CHECK(times.since(key_of("http://a/"), steady_time{1001s}));
        CHECK_FALSE(times.since(key_of("http://a/"), steady_time{1001'001ms}));
        CHECK_FALSE(times.since(key_of("http://b/"), steady_time{900s}));
    }

    TEST_CASE("a slot keeps the later time, whoever shares it") {
        invalidation_times times;
        const filter::key_hash one{.low = 7, .high = 1};
        const filter::key_hash same_slot{.low = 7 + 65'536, .high = 2};
        times.note(one, steady_time{2000s});
        times.note(same_slot, steady_time{1000s});
        CHECK(times.since(one, steady_time{2000s}));
        CHECK(times.since(same_slot, steady_time{2000s}));
    }

    TEST_CASE("times before the beginning of the clock and 136 years after it harm nothing") {
        invalidation_times times;
        times.note(key_of("http://a/"), steady_time{-5s});
        CHECK_FALSE(times.since(key_of("http://a/"), steady_time{0s}));
        times.note(key_of("http://a/"), steady_time{8'000'000'000s});
        CHECK(times.since(key_of("http://a/"), steady_time{4'000'000'000s}));
    }
}

}  // namespace reprise::proxy::cache::test::of_invalidation_times
