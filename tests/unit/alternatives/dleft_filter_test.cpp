#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/dleft_filter.hpp"

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/dleft_filter") {
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
}

}  // namespace reprise::alternatives
