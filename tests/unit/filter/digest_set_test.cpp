#include "filter/digest_set.hpp"
#include "filter/digest_wire.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

namespace reprise::filter {

namespace {

using test::nth_key;

std::shared_ptr<const digest> blocked_of(std::uint64_t blocks,
                                         std::uint64_t first,
                                         std::uint64_t last) {
    blocked_bloom filter{blocks};
    for (auto i = first; i < last; ++i) {
        filter.insert(nth_key(1, i));
    }
    return std::make_shared<const digest>(digest::of(filter, test::stamp_of(last - first)));
}

std::shared_ptr<const digest> standard_of(std::uint64_t first, std::uint64_t last) {
    return std::make_shared<const digest>(
        test::digest_of_keys(digest_size(1000, 0.01), first, last));
}

}  // namespace

TEST_SUITE("filter/digest_set") {
    TEST_CASE("nothing is in no digest") {
        CHECK_FALSE(digest_set{}.may_contain(nth_key(1, 0)));
        CHECK_FALSE(digest_set{{}}.may_contain({}));
    }

    TEST_CASE("the answer is that of any digest, for every layout and size, false positives too") {
        // Small and full, so that many answers are false ones.
        const std::vector<std::shared_ptr<const digest>> digests{blocked_of(1, 0, 20),
                                                                 standard_of(100, 1100),
                                                                 blocked_of(7, 1000, 1250),
                                                                 blocked_of(64, 2000, 4000),
                                                                 standard_of(5000, 5001)};
        const digest_set all{digests};
        unsigned held = 0, false_ones = 0;
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            const auto key = nth_key(1, i);
            bool any = false;
            for (const auto& one : digests) {
                any = any || one->may_contain(key);
            }
            REQUIRE(all.may_contain(key) == any);
            held += any ? 1 : 0;
            false_ones += any && i > 5001 ? 1 : 0;
        }
        CHECK(held >= 20 + 1150 + 2000 + 1);
        CHECK(false_ones > 100);
        CHECK(held < 20'000);
    }

    TEST_CASE("a block lies in one line of the cache, whatever a digest is made of") {
        const auto is_on_a_line = [](const digest& of) {
            return reinterpret_cast<std::uintptr_t>(of.words().data()) % line_bytes == 0;
        };
        for (const std::uint64_t blocks : {1u, 100u, 10000u}) {
            const blocked_bloom filter{blocks};
            const auto made = digest::of(filter, {});
            CHECK(is_on_a_line(made));
            const auto sent = encode(made);
            CHECK(is_on_a_line(*decode_digest(sent, {}, {})));
            CHECK(is_on_a_line(digest::of(filter, filter, {})));
            const digest copied{
                made.shape(), std::vector(made.words().begin(), made.words().end()), {}};
            CHECK(is_on_a_line(copied));
        }
    }

    TEST_CASE("what it was made of stays while it is there") {
        std::vector<std::shared_ptr<const digest>> digests{blocked_of(9, 0, 50)};
        const digest_set all{std::move(digests)};
        CHECK(all.may_contain(nth_key(1, 49)));
    }
}

}  // namespace reprise::filter
