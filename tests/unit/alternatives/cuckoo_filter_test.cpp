#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/cuckoo_filter.hpp"

namespace reprise::alternatives {

using namespace test;

namespace {

/// Inserts until refused, or `most` keys are in; how many are.
std::uint64_t fill(cuckoo_filter& filter, std::uint64_t most) {
    for (std::uint64_t i = 0; i < most; ++i) {
        if (!filter.insert(nth_key(1, i))) {
            return i;
        }
    }
    return most;
}

/// Refuses nothing while it has room.
struct roomy : cuckoo_filter {
    using cuckoo_filter::cuckoo_filter;
    void insert(filter::key_hash key) { REQUIRE(cuckoo_filter::insert(key)); }
};

}  // namespace

TEST_SUITE("alternatives/cuckoo_filter") {
    TEST_CASE("an empty filter holds nothing and erases nothing") {
        cuckoo_filter filter{{.buckets = 1, .fingerprint_bits = 8}};
        CHECK(!filter.may_contain(nth_key(1, 1)));
        CHECK(!filter.erase(nth_key(1, 1)));
        CHECK(filter.keys() == 0);
    }

    TEST_CASE("the measured rate is the predicted one, and at capacity at most the one asked for") {
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            constexpr std::uint64_t keys = 60'000;
            const auto size = cuckoo_size_for(keys, rate);
            cuckoo_filter filter{size};
            REQUIRE(fill(filter, keys) == keys);
            CHECK(false_negatives(filter, keys_of(1, keys)) == 0);
            CHECK(cuckoo_rate(size, keys) <= rate);
            check_rate(filter, cuckoo_rate(size, keys));
        }
    }

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

    TEST_CASE("no key is missed in a life of inserts and erases, and erasing all leaves it empty") {
        const cuckoo_size size{.buckets = 512, .fingerprint_bits = 14};
        roomy filter{size};
        live_a_life(filter, 1'800, 3'600);
        CHECK(filter == cuckoo_filter{size});
        CHECK(filter.keys() == 0);
    }

    TEST_CASE("a cleared filter is a new one") {
        const cuckoo_size size{.buckets = 16, .fingerprint_bits = 9};
        cuckoo_filter filter{size};
        (void)fill(filter, 50);
        filter.clear();
        CHECK(filter == cuckoo_filter{size});
        CHECK(filter.keys() == 0);
    }
}

}  // namespace reprise::alternatives
