#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/variable_counting.hpp"

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/variable_counting") {
    TEST_CASE("with increments of one it is a counting Bloom filter, and needs as many counters") {
        // 1.44 log2(1 / rate) a key.
        const auto counters = variable_counting_size_for(100'000, 0.01, 1, 4).counters;
        CHECK(static_cast<double>(counters) / 100'000 == doctest::Approx(9.6).epsilon(0.01));
        CHECK(variable_counting_size_for(100'000, 0.01, 4).counters < 0.8 * counters);
    }

    TEST_CASE("a key whose places repeat is erased as it was inserted") {
        for (const std::uint64_t counters : {1, 2, 3, 5}) {
            CAPTURE(counters);
            variable_counting filter{{.counters = counters, .probes = 8, .bits = 16}};
            const auto before = filter;
            for (const auto key : keys_of(1, 100)) {
                filter.insert(key);
            }
            CHECK(false_negatives(filter, keys_of(1, 100)) == 0);
            for (const auto key : keys_of(1, 100)) {
                CHECK(filter.erase(key));
            }
            CHECK(filter == before);
        }
    }

    TEST_CASE("what certainly was not inserted is not erased and changes nothing") {
        variable_counting filter{{.counters = 2'000, .probes = 4}};
        for (const auto key : keys_of(1, 100)) {
            filter.insert(key);
        }
        const auto before = filter;
        for (const auto key : keys_of(2, 1'000)) {
            if (!filter.may_contain(key)) {
                CHECK(!filter.erase(key));
            }
        }
        CHECK(filter == before);
    }

    TEST_CASE("counters stick at their end, and then no key is missed whatever is erased") {
        variable_counting filter{{.counters = 50, .probes = 3, .least = 4, .bits = 5}};
        for (const auto key : keys_of(1, 200)) {
            filter.insert(key);
        }
        CHECK(filter.stuck() > 0);
        for (const auto key : keys_of(1, 100)) {
            CHECK(filter.erase(key));
        }
        std::vector<filter::key_hash> left;
        for (std::uint64_t i = 100; i < 200; ++i) {
            left.push_back(nth_key(1, i));
        }
        CHECK(false_negatives(filter, left) == 0);
        filter.clear();
        CHECK(filter.stuck() == 0);
    }
}

}  // namespace reprise::alternatives
