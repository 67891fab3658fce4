#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/cuckoo_filter.hpp"

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/cuckoo_filter") {
    TEST_CASE("buckets of four are filled to 95 % and more before one key is refused") {
        cuckoo_filter filter{{.buckets = 1 << 14, .fingerprint_bits = 12}};
        CHECK(fill(filter, 1 << 17) > 0.95 * (1 << 16));
    }

    TEST_CASE("a full filter refuses a key and is as it was") {
        cuckoo_filter filter{{.buckets = 64, .fingerprint_bits = 12}};
        const auto keys = fill(filter, 1'000);
        REQUIRE(keys < 257);
        const auto before = filter;
        for (std::uint64_t i = 0; i < 100; ++i) {
            const bool taken = filter.insert(nth_key(2, i));
            if (taken) {  // another key may still find a place
                CHECK(filter.erase(nth_key(2, i)));
            }
        }
        CHECK(filter.keys() == before.keys());
        CHECK(false_negatives(filter, keys_of(1, keys)) == 0);
        auto full = before;
        CHECK(!full.insert(nth_key(1, keys)));
        CHECK(full == before);
    }

    TEST_CASE("one key is kept as often as it comes, eight times at most") {
        cuckoo_filter filter{{.buckets = 1024, .fingerprint_bits = 12}};
        const auto key = nth_key(1, 1);
        for (int copy = 0; copy < 8; ++copy) {
            CHECK(filter.insert(key));
        }
        CHECK(!filter.insert(key));
        for (int copy = 0; copy < 8; ++copy) {
            CHECK(filter.may_contain(key));
            CHECK(filter.erase(key));
        }
        CHECK(!filter.may_contain(key));
        CHECK(!filter.erase(key));
    }
}

}  // namespace reprise::alternatives
