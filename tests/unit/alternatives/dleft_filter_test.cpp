#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/dleft_filter.hpp"

namespace reprise::alternatives {

using namespace test;

namespace {

std::uint64_t fill(dleft_filter& filter, std::uint64_t most) {
    for (std::uint64_t i = 0; i < most; ++i) {
        if (!filter.insert(nth_key(1, i))) {
            return i;
        }
    }
    return most;
}

struct roomy : dleft_filter {
    using dleft_filter::dleft_filter;
    void insert(filter::key_hash key) { REQUIRE(dleft_filter::insert(key)); }
};

}  // namespace

TEST_SUITE("alternatives/dleft_filter") {
    TEST_CASE("an empty filter holds nothing and erases nothing") {
        dleft_filter filter{{.buckets = 1, .remainder_bits = 8}};
        CHECK(!filter.may_contain(nth_key(1, 1)));
        CHECK(!filter.erase(nth_key(1, 1)));
        CHECK(filter.used() == 0);
    }

    TEST_CASE("the measured rate is the predicted one, and at capacity at most the one asked for") {
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            constexpr std::uint64_t keys = 60'000;
            const auto size = dleft_size_for(keys, rate);
            dleft_filter filter{size};
            REQUIRE(fill(filter, keys) == keys);
            CHECK(false_negatives(filter, keys_of(1, keys)) == 0);
            CHECK(dleft_rate(size, keys) <= rate);
            check_rate(filter, dleft_rate(size, keys));
        }
    }

    TEST_CASE("no bucket overflows at six keys a bucket, and few before seven") {
        const dleft_size size{.buckets = 1'000, .remainder_bits = 14};
        dleft_filter filter{size};
        CHECK(fill(filter, 100'000) > 7 * 4 * size.buckets);
    }

    TEST_CASE("a key without a place is refused and nothing has changed") {
        const dleft_size size{.buckets = 3, .remainder_bits = 14};
        dleft_filter filter{size};
        const auto keys = fill(filter, 1'000);
        REQUIRE(keys < 97);
        const auto before = filter;
        CHECK(!filter.insert(nth_key(1, keys)));
        CHECK(filter == before);
        CHECK(false_negatives(filter, keys_of(1, keys)) == 0);
    }

    TEST_CASE(
        "a key that came twice stays when it goes once; one that came thrice stays for good") {
        dleft_filter filter{{.buckets = 10, .remainder_bits = 14}};
        const auto twice = nth_key(1, 1);
        const auto thrice = nth_key(1, 2);
        for (int copy = 0; copy < 2; ++copy) {
            CHECK(filter.insert(twice));
            CHECK(filter.insert(thrice));
        }
        CHECK(filter.insert(thrice));
        CHECK(filter.used() == 2);
        CHECK(filter.erase(twice));
        CHECK(filter.may_contain(twice));
        CHECK(filter.erase(twice));
        CHECK(!filter.may_contain(twice));
        CHECK(!filter.erase(twice));
        for (int copy = 0; copy < 5; ++copy) {
            CHECK(filter.erase(thrice));
        }
        CHECK(filter.may_contain(thrice));
        CHECK(filter.used() == 1);
    }

    TEST_CASE("no key is missed in a life of inserts and erases") {
        roomy filter{dleft_size_for(1'000, 1e-6)};
        // A cell that once counted to three is lost for good, so that keys which come often would
        // fill the filter: it is for sets in which each comes once or, as here, hardly ever twice.
        live_a_life(filter, 1'000, 100'000);
        CHECK(filter.used() < 20);
    }

    TEST_CASE("erasing what was inserted after a moment brings the moment back") {
        dleft_filter filter{dleft_size_for(1'000, 1e-6)};
        REQUIRE(fill(filter, 500) == 500);
        const auto before = filter;
        for (std::uint64_t i = 0; i < 500; ++i) {
            REQUIRE(filter.insert(nth_key(2, i)));
        }
        for (std::uint64_t i = 0; i < 500; ++i) {
            CHECK(filter.erase(nth_key(2, i)));
        }
        CHECK(filter == before);
        filter.clear();
        CHECK(filter == dleft_filter{dleft_size_for(1'000, 1e-6)});
    }
}

}  // namespace reprise::alternatives
