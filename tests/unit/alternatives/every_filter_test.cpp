// What the alternatives promise alike: those from which keys can be taken again, and those that are built of all keys at
// once. What only one of them has is in its own test.

#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/cuckoo_filter.hpp"
#include "tools/alternatives/dleft_filter.hpp"
#include "tools/alternatives/fuse_filter.hpp"
#include "tools/alternatives/variable_counting.hpp"
#include "tools/alternatives/xor_filter.hpp"

#include <tuple>

namespace reprise::alternatives {

using namespace test;

namespace {

template <class Filter>
struct sized;
template <>
struct sized<cuckoo_filter> {
    static cuckoo_filter smallest() { return cuckoo_filter{{.buckets = 1, .fingerprint_bits = 8}}; }
    static cuckoo_filter roomy() { return cuckoo_filter{{.buckets = 512, .fingerprint_bits = 14}}; }
    static auto sizes(std::uint64_t keys, double rate) {
        return std::vector{cuckoo_size_for(keys, rate)};
    }
    static double rate(const cuckoo_size& size, std::uint64_t keys) {
        return cuckoo_rate(size, keys);
    }
    static constexpr std::size_t held = 1'800, variety = 3'600;
    static bool is_empty(const cuckoo_filter& filter) {
        return filter.keys() == 0 && filter == roomy();
    }
};
template <>
struct sized<dleft_filter> {
    static dleft_filter smallest() { return dleft_filter{{.buckets = 1, .remainder_bits = 8}}; }
    static dleft_filter roomy() { return dleft_filter{dleft_size_for(1'000, 1e-6)}; }
    static auto sizes(std::uint64_t keys, double rate) {
        return std::vector{dleft_size_for(keys, rate)};
    }
    static double rate(const dleft_size& size, std::uint64_t keys) {
        return dleft_rate(size, keys);
    }
    // A cell that once counted to three is lost for good, so that keys which come often would fill the filter: it is for
    // sets in which each comes once or, as here, hardly ever twice.
    static constexpr std::size_t held = 1'000, variety = 100'000;
    static bool is_empty(const dleft_filter& filter) { return filter.used() < 20; }
};
template <>
struct sized<variable_counting> {
    static variable_counting smallest() {
        return variable_counting{{.counters = 100, .probes = 3}};
    }
    static variable_counting roomy() {
        return variable_counting{variable_counting_size_for(1'000, 0.01, 4, 10)};
    }
    static auto sizes(std::uint64_t keys, double rate) {
        return std::vector{variable_counting_size_for(keys, rate, 1, 8),
                           variable_counting_size_for(keys, rate, 4, 8),
                           variable_counting_size_for(keys, rate, 8, 8)};
    }
    static double rate(const variable_counting_size& size, std::uint64_t keys) {
        return variable_counting_rate(size, keys);
    }
    static constexpr std::size_t held = 1'000, variety = 2'000;
    static bool is_empty(const variable_counting& filter) { return filter == roomy(); }
};
using those_with_erase = std::tuple<cuckoo_filter, dleft_filter, variable_counting>;

struct xor_built {
    static auto of(const std::vector<key_hash>& keys, unsigned bits) {
        return xor_filter::build(keys, bits);
    }
};
template <unsigned arity>
struct fuse_built {
    static auto of(const std::vector<key_hash>& keys, unsigned bits) {
        return fuse_filter::build(keys, bits, arity);
    }
};
using those_built_at_once = std::tuple<xor_built, fuse_built<3>, fuse_built<4>>;

}  // namespace

TEST_SUITE("alternatives/every_filter") {
    TEST_CASE_TEMPLATE_DEFINE(
        "an empty filter holds nothing and erases nothing", Filter, emptiness) {
        auto filter = sized<Filter>::smallest();
        CHECK(!filter.may_contain(nth_key(1, 1)));
        CHECK(!filter.erase(nth_key(1, 1)));
        CHECK(filter == sized<Filter>::smallest());
        must_insert(filter, nth_key(1, 1));
        filter.clear();
        CHECK(filter == sized<Filter>::smallest());
    }
    TEST_CASE_TEMPLATE_APPLY(emptiness, those_with_erase);

    TEST_CASE_TEMPLATE_DEFINE(
        "the measured rate is the predicted one, and at capacity at most that asked for",
        Filter,
        rates) {
        constexpr std::uint64_t keys = 60'000;
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            for (const auto& size : sized<Filter>::sizes(keys, rate)) {
                Filter filter{size};
                for (const auto key : keys_of(1, keys)) {
                    must_insert(filter, key);
                }
                CHECK(false_negatives(filter, keys_of(1, keys)) == 0);
                CHECK(sized<Filter>::rate(size, keys) <= rate);
                check_rate(filter, sized<Filter>::rate(size, keys));
            }
        }
    }
    TEST_CASE_TEMPLATE_APPLY(rates, those_with_erase);

    TEST_CASE_TEMPLATE_DEFINE(
        "no key is missed in a life of inserts and erases, and erasing all leaves it empty",
        Filter,
        lives) {
        auto filter = sized<Filter>::roomy();
        live_a_life(filter, sized<Filter>::held, sized<Filter>::variety);
        CHECK(sized<Filter>::is_empty(filter));
    }
    TEST_CASE_TEMPLATE_APPLY(lives, those_with_erase);

    TEST_CASE_TEMPLATE_DEFINE(
        "erasing what was inserted after a moment brings the moment back", Filter, moments) {
        auto filter = sized<Filter>::roomy();
        for (const auto key : keys_of(1, 500)) {
            must_insert(filter, key);
        }
        const auto before = filter;
        for (const auto key : keys_of(2, 500)) {
            must_insert(filter, key);
        }
        for (const auto key : keys_of(2, 500)) {
            CHECK(filter.erase(key));
        }
        CHECK(filter == before);
        filter.clear();
        CHECK(filter == sized<Filter>::roomy());
    }
    TEST_CASE_TEMPLATE_APPLY(moments, std::tuple<dleft_filter, variable_counting>);

    TEST_CASE_TEMPLATE_DEFINE("every key that it was built of is found, however many there are",
                              Built,
                              no_false_negatives) {
        for (const std::uint64_t count : {0, 1, 2, 3, 10, 100, 1'000, 9'999, 50'000}) {
            CAPTURE(count);
            const auto keys = keys_of(1, count);
            const auto filter = Built::of(keys, 8);
            REQUIRE(filter);
            CHECK(false_negatives(*filter, keys) == 0);
        }
        CHECK(!Built::of({}, 32)->may_contain(nth_key(1, 1)));
    }
    TEST_CASE_TEMPLATE_APPLY(no_false_negatives, those_built_at_once);

    TEST_CASE_TEMPLATE_DEFINE("the measured rate is 2^-bits", Built, rates_by_bits) {
        const auto keys = keys_of(1, 30'000);
        for (const unsigned bits : {1, 4, 7, 8, 13}) {
            CAPTURE(bits);
            const auto filter = Built::of(keys, bits);
            REQUIRE(filter);
            CHECK(false_negatives(*filter, keys) == 0);
            check_rate(*filter, filter->rate());
        }
    }
    TEST_CASE_TEMPLATE_APPLY(rates_by_bits, those_built_at_once);

    TEST_CASE_TEMPLATE_DEFINE("duplicates count once", Built, duplicates) {
        auto keys = keys_of(1, 1'000);
        const auto once = Built::of(keys, 8);
        keys.insert(keys.end(), keys.begin(), keys.end());
        const auto twice = Built::of(keys, 8);
        REQUIRE(once);
        REQUIRE(twice);
        CHECK(twice->bytes() == once->bytes());
        CHECK(false_negatives(*twice, keys) == 0);
    }
    TEST_CASE_TEMPLATE_APPLY(duplicates, those_built_at_once);
}

}  // namespace reprise::alternatives
