// What every filter that is a set promises, each tried alike. What only one of them has is in its own test.

#include "filter/bloom.hpp"
#include "filter/counting.hpp"
#include "filter/partitioned.hpp"
#include "filter/split_block.hpp"
#include "filter/stamped.hpp"
#include "filter/standard.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace reprise::filter {

using namespace test;

namespace {

template <class Filter>
using refusals = std::vector<std::pair<Filter, filter_errc>>;

/// Filters that are sized by bits and probes. `of` takes what folding halves: bits, or bits of a partition.
template <class Filter, unsigned partitions>
struct sized_by_bits {
    static constexpr std::uint64_t usual = 2'000, many = 3'000;
    static constexpr std::array<std::uint64_t, 9> folding{
        10, 16, 64, 126, 128, 130, 1'000, 8'192, 9'998};

    static Filter of(std::uint64_t size) { return Filter{{size * partitions, 5}}; }
    static std::vector<Filter> of_any_size() {
        std::vector<Filter> out;
        for (const std::uint64_t size : {1, 2, 3, 63, 64, 65, 1'000, 4'099, 100'000}) {
            for (const unsigned probes : {1, 2, 7, 30}) {
                out.push_back(Filter{{partitions == 1 ? size : size * probes, probes}});
            }
        }
        return out;
    }
    static refusals<Filter> unlike() {
        const auto bits = of(usual).size().bits;
        return {{Filter{{2 * bits, 5}}, filter_errc::sizes_differ},
                {Filter{{bits, 4}}, filter_errc::probes_differ}};
    }
};

struct sized_by_blocks {
    static constexpr std::uint64_t usual = 40, many = 50'000;
    static constexpr std::array<std::uint64_t, 4> folding{2, 6, 500, 1'000};
};
template <class Filter>
struct made_of_blocks : sized_by_blocks {
    static Filter of(std::uint64_t blocks) { return Filter{blocks}; }
    static std::vector<Filter> of_any_size() {
        std::vector<Filter> out;
        for (const std::uint64_t blocks : {1, 2, 3, 64, 1'000, 4'099}) {
            out.push_back(of(blocks));
        }
        return out;
    }
    static refusals<Filter> unlike() {
        refusals<Filter> out;
        out.emplace_back(of(usual + 1), filter_errc::sizes_differ);
        out.emplace_back(of(usual - 1), filter_errc::sizes_differ);
        return out;
    }
};

template <class Filter>
struct kind;
template <>
struct kind<standard_bloom> : sized_by_bits<standard_bloom, 1> {};
template <>
struct kind<counting_bloom> : sized_by_bits<counting_bloom, 1> {};
template <>
struct kind<stamped_bloom> : sized_by_bits<stamped_bloom, 1> {};
template <>
struct kind<partitioned_bloom> : sized_by_bits<partitioned_bloom, 5> {};
template <>
struct kind<blocked_bloom> : made_of_blocks<blocked_bloom> {};
template <>
struct kind<split_block_bloom> : made_of_blocks<split_block_bloom> {};

using sets = std::tuple<standard_bloom, partitioned_bloom, blocked_bloom, split_block_bloom>;
using every_filter = std::tuple<standard_bloom,
                                partitioned_bloom,
                                blocked_bloom,
                                split_block_bloom,
                                counting_bloom,
                                stamped_bloom>;

template <class Filter>
Filter usual() {
    return kind<Filter>::of(kind<Filter>::usual);
}

/// Equal bit for bit.
template <class Filter>
bool same(const Filter& a, const Filter& b) {
    if constexpr (std::equality_comparable<Filter>) {
        return a == b;
    } else {  // what threads share is read block by block
        bool equal = a.blocks() == b.blocks();
        for (std::uint64_t block = 0; equal && block < a.blocks(); ++block) {
            equal = a.read_block(block) == b.read_block(block);
        }
        return equal;
    }
}

template <class Filter>
auto unite(Filter& filter, const Filter& other) {
    if constexpr (requires { filter.unite(other); }) {
        return filter.unite(other);
    } else {
        return filter.merge(other);
    }
}

}  // namespace

TEST_SUITE("filter/every_filter") {
    TEST_CASE_TEMPLATE_DEFINE(
        "an empty filter contains nothing, and a cleared one is an empty one", Filter, emptiness) {
        auto filter = usual<Filter>();
        CHECK(found(filter, 1, 10'000) == 0);
        CHECK(filter.bits_on() == 0);
        filter.insert(nth_key(1, 1));
        CHECK(filter.bits_on() > 0);
        filter.clear();
        CHECK(same(filter, usual<Filter>()));
    }
    TEST_CASE_TEMPLATE_APPLY(emptiness, every_filter);

    TEST_CASE_TEMPLATE_DEFINE("every inserted key is found, in any size and far beyond capacity",
                              Filter,
                              no_false_negatives) {
        std::uint64_t family = 0;
        for (auto& empty : kind<Filter>::of_any_size()) {
            CAPTURE(empty.bytes());
            constexpr auto keys = kind<Filter>::many;
            const auto filter = filled(std::move(empty), ++family, keys);
            CHECK(found(filter, family, keys) == keys);
        }
    }
    TEST_CASE_TEMPLATE_APPLY(no_false_negatives, every_filter);

    TEST_CASE_TEMPLATE_DEFINE("insert_and_test answers what may_contain would have, and inserts",
                              Filter,
                              inserting_and_testing) {
        auto filter = usual<Filter>();
        for (std::uint64_t i = 0; i < 5'000; ++i) {
            const auto key = nth_key(1, i % 3'000);
            const bool before = filter.may_contain(key);
            CHECK(filter.insert_and_test(key) == before);
            CHECK(filter.insert_and_test(key));
        }
    }
    TEST_CASE_TEMPLATE_APPLY(inserting_and_testing, sets);

    TEST_CASE_TEMPLATE_DEFINE("a union is the filter of all keys of both", Filter, unions) {
        auto filter = filled(usual<Filter>(), 1, 300);
        REQUIRE(unite(filter, filled(usual<Filter>(), 2, 200)).has_value());
        CHECK(same(filter, filled(filled(usual<Filter>(), 1, 300), 2, 200)));
    }
    TEST_CASE_TEMPLATE_APPLY(unions, every_filter);

    TEST_CASE_TEMPLATE_DEFINE("an intersection has the common keys, and no bit that either lacks",
                              Filter,
                              intersections) {
        const auto with_common = [](std::uint64_t family) {
            return filled(filled(usual<Filter>(), family, 100), 3, 50);
        };
        auto both = with_common(1);
        REQUIRE(both.intersect(with_common(2)).has_value());
        CHECK(found(both, 3, 50) == 50);
        for (const std::uint64_t family : {1, 2}) {
            auto united = with_common(family);
            CHECK(both.bits_on() < united.bits_on());
            REQUIRE(united.unite(both).has_value());
            CHECK(same(united, with_common(family)));
        }
    }
    TEST_CASE_TEMPLATE_APPLY(intersections, sets);

    TEST_CASE_TEMPLATE_DEFINE(
        "a folded filter is the half-sized filter of the same keys", Filter, folding) {
        for (const auto whole : kind<Filter>::folding) {
            auto size = whole;
            const auto of_the_same_keys = [&] {
                return filled(kind<Filter>::of(size), whole, whole / 20 + 1);
            };
            auto filter = of_the_same_keys();
            auto folded = filter.folded();
            for (; folded.has_value(); folded = filter.folded()) {
                size /= 2;
                CAPTURE(size);
                CHECK(same(*folded, of_the_same_keys()));
                filter = std::move(*folded);
            }
            CHECK(size < whole);
            CHECK(folded.error() ==
                  (size % 2 != 0 ? filter_errc::odd_size : filter_errc::too_small));
        }
    }
    TEST_CASE_TEMPLATE_APPLY(folding, every_filter);

    TEST_CASE_TEMPLATE_DEFINE(
        "filters of other parameters are not combined, and stay as they were", Filter, refusing) {
        auto filter = filled(usual<Filter>(), 1, 50);
        for (const auto& [other, why] : kind<Filter>::unlike()) {
            CHECK(unite(filter, other).error() == why);
            if constexpr (requires { filter.intersect(other); }) {
                CHECK(filter.intersect(other).error() == why);
            }
        }
        CHECK(same(filter, filled(usual<Filter>(), 1, 50)));
    }
    TEST_CASE_TEMPLATE_APPLY(refusing, every_filter);
}

}  // namespace reprise::filter
