#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/spatial_filter.hpp"

#include <algorithm>

namespace reprise::alternatives {

using namespace test;

namespace {

constexpr unsigned sets = 10;
constexpr std::uint64_t keys_a_set = 4'000;

spatial_filter with_all_sets(const spatial_size& size, bool backwards) {
    spatial_filter filter{size, sets};
    for (unsigned i = 1; i <= sets; ++i) {
        const auto label = backwards ? sets + 1 - i : i;
        for (const auto key : keys_of(label, keys_a_set)) {
            filter.insert(key, label);
        }
    }
    return filter;
}

}  // namespace

TEST_SUITE("alternatives/spatial_filter") {
    TEST_CASE("an empty one has no key, and a cleared one is an empty one") {
        const spatial_size size{.cells = 1'000, .probes = 3};
        spatial_filter filter{size, sets};
        CHECK(filter.label_of(nth_key(1, 1)) == 0);
        filter.insert(nth_key(1, 1), sets);
        CHECK(filter.label_of(nth_key(1, 1)) == sets);
        filter.clear();
        CHECK(filter == spatial_filter{size, sets});
    }

    TEST_CASE("what is told is the key's own set or a higher one, in whatever order they came") {
        const auto size = spatial_size_for(sets * keys_a_set, 0.01);
        const auto filter = with_all_sets(size, false);
        CHECK(filter == with_all_sets(size, true));
        for (unsigned label = 1; label <= sets; ++label) {
            CAPTURE(label);
            const auto keys = keys_of(label, keys_a_set);
            CHECK(std::all_of(
                keys.begin(), keys.end(), [&](auto key) { return filter.label_of(key) >= label; }));
        }
    }

    TEST_CASE("a key of two sets is told of the higher alone") {
        spatial_filter filter{{.cells = 1'000, .probes = 3}, sets};
        filter.insert(nth_key(1, 1), 7);
        filter.insert(nth_key(1, 1), 3);
        CHECK(filter.label_of(nth_key(1, 1)) == 7);
    }

    TEST_CASE("strangers, and keys of each set, are mistaken as often as the formula says") {
        for (const double rate : {0.1, 0.01}) {
            CAPTURE(rate);
            const auto size = spatial_size_for(sets * keys_a_set, rate);
            const auto filter = with_all_sets(size, false);
            const auto near = [](std::uint64_t found, double expected) {
                CAPTURE(found);
                CAPTURE(expected);
                CHECK(std::abs(static_cast<double>(found) - expected) <
                      5 * std::sqrt(expected) + 0.02 * expected + 1);
            };
            std::uint64_t strange = 0;
            for (const auto key : keys_of(77, 300'000)) {
                strange += filter.label_of(key) != 0 ? 1 : 0;
            }
            near(strange, 300'000 * spatial_rate(size, sets * keys_a_set));
            for (unsigned label = 1; label <= sets; ++label) {
                std::uint64_t wrong = 0;
                for (const auto key : keys_of(label, keys_a_set)) {
                    wrong += filter.label_of(key) != label ? 1 : 0;
                }
                near(wrong, keys_a_set * spatial_rate(size, (sets - label) * keys_a_set));
            }
        }
    }

    TEST_CASE("a cell takes as many bits as the labels need") {
        const spatial_size size{.cells = 8'000, .probes = 3};
        CHECK(spatial_filter{size, 1}.bytes() == 1'000 + 8);
        CHECK(spatial_filter{size, 63}.bytes() == 6'000 + 8);
        CHECK(spatial_filter{size, 64}.bytes() == 7'000 + 8);
    }
}

}  // namespace reprise::alternatives
