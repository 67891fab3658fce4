#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/bloomier_filter.hpp"

namespace reprise::alternatives {

using namespace test;

namespace {

/// Values that have nothing to do with the keys.
std::vector<bloomier_entry> entries_of(std::uint64_t count, unsigned value_bits) {
    std::vector<bloomier_entry> out;
    for (std::uint64_t i = 0; i < count; ++i) {
        out.push_back({nth_key(1, i), static_cast<std::uint32_t>(mix(i) >> (64 - value_bits))});
    }
    return out;
}

}  // namespace

TEST_SUITE("alternatives/bloomier_filter") {
    TEST_CASE("every key has its own value, however many there are") {
        for (const std::uint64_t count : {0, 1, 2, 3, 100, 9'999, 50'000}) {
            CAPTURE(count);
            const auto entries = entries_of(count, 6);
            const auto filter = bloomier_filter::build(entries, 6, 7);
            REQUIRE(filter);
            std::uint64_t wrong = 0;
            for (const auto& one : entries) {
                wrong += filter->value_of(one.key) == one.value ? 0 : 1;
            }
            CHECK(wrong == 0);
        }
    }

    TEST_CASE("a stranger has a value with a chance of 2^-check_bits") {
        for (const unsigned check_bits : {1, 4, 7}) {
            CAPTURE(check_bits);
            const auto filter = bloomier_filter::build(entries_of(30'000, 6), 6, check_bits);
            REQUIRE(filter);
            struct {
                const bloomier_filter& asked;
                bool may_contain(key_hash key) const { return asked.value_of(key).has_value(); }
            } as_set{*filter};
            check_rate(as_set, filter->rate());
        }
    }

    TEST_CASE("of a key that comes twice the first value counts, and it takes a place once") {
        auto entries = entries_of(1'000, 6);
        const auto once = bloomier_filter::build(entries, 6, 7);
        for (std::uint64_t i = 0; i < 1'000; ++i) {
            entries.push_back({nth_key(1, i), 0});
        }
        const auto twice = bloomier_filter::build(entries, 6, 7);
        REQUIRE(once);
        REQUIRE(twice);
        CHECK(twice->bytes() == once->bytes());
        CHECK(twice->value_of(nth_key(1, 5)) == entries[5].value);
    }

    TEST_CASE("it takes 1.23 slots a key") {
        const auto filter = bloomier_filter::build(entries_of(50'000, 6), 6, 7);
        REQUIRE(filter);
        CHECK(8.0 * static_cast<double>(filter->bytes()) / (13 * 50'000) ==
              doctest::Approx(1.23).epsilon(0.002));
    }

    TEST_CASE("without a seed to try there is no filter") {
        CHECK(!bloomier_filter::build(entries_of(10, 6), 6, 7, 0));
    }
}

}  // namespace reprise::alternatives
