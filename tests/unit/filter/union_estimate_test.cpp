#include "filter/sizing.hpp"
#include "filter/union_estimate.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace reprise::filter::test::of_union_estimate {
namespace {

// A rate's digests double: those of a fleet fold to each other.
bloom_size doubled(unsigned times) {
    return {.bits = std::uint64_t{1 << 14} << times, .probes = 2};
}

}  // namespace

TEST_SUITE("filter/union_estimate") {
    TEST_CASE("nothing is nothing, and one digest has its own keys") {
        union_estimate all;
        CHECK(all.now().keys == 0);
        CHECK(all.now().digests == 0);
        CHECK(all.add(digest_of_keys(doubled(0), 0, 1000)));
        CHECK(all.now().keys == doctest::Approx(1000).epsilon(0.03));
        CHECK(all.now().listed == 1000);
        CHECK(all.now().digests == 1);
    }

    TEST_CASE("what a digest says of its keys counts up to its bits, be it the first or not") {
        union_estimate all;
        for (unsigned i = 1; i <= 2; ++i) {
            const auto honest = digest_of_keys(doubled(0), 0, 1000);
            auto boasting = honest.stamp();
            boasting.keys = std::uint64_t{1} << 60;
            const auto words = honest.words();
            CHECK(all.add(digest{honest.shape(), {words.begin(), words.end()}, boasting}));
            CHECK(all.now().listed == i * doubled(0).bits);
        }
    }

    TEST_CASE("what several hold counts once") {
        union_estimate all;
        CHECK(all.add(digest_of_keys(doubled(2), 0, 4000)));
        CHECK(all.add(digest_of_keys(doubled(2), 1000, 5000)));
        CHECK(all.add(digest_of_keys(doubled(2), 0, 4000)));
        CHECK(all.add(digest_of_keys(doubled(2), 5000, 6000)));
        CHECK(all.now().keys == doctest::Approx(6000).epsilon(0.03));
        CHECK(all.now().listed == 13'000);
        CHECK(all.now().digests == 4);
    }

    TEST_CASE("smaller digests than the first are told from it at their own size") {
        union_estimate all;
        CHECK(all.add(digest_of_keys(doubled(3), 0, 12'000)));
        CHECK(all.add(digest_of_keys(doubled(1), 11'000, 14'000)));
        CHECK(all.add(digest_of_keys(doubled(0), 13'500, 14'500)));
        CHECK(all.now().keys == doctest::Approx(14'500).epsilon(0.03));
    }

    TEST_CASE("a larger one that comes late is judged at the size of the union") {
        union_estimate all;
        CHECK(all.add(digest_of_keys(doubled(1), 0, 3000)));
        CHECK(all.add(digest_of_keys(doubled(2), 1000, 6000)));
        CHECK(all.now().keys == doctest::Approx(6000).epsilon(0.05));
    }

    TEST_CASE("one far smaller than the union can't be told from it, and counts whole") {
        union_estimate all;
        CHECK(all.add(digest_of_keys(doubled(8), 0, 400'000)));
        const auto before = all.now().keys;
        CHECK(all.add(digest_of_keys({.bits = 1024, .probes = 2}, 0, 50)));
        CHECK(all.now().keys - before == doctest::Approx(50).epsilon(0.1));
    }

    TEST_CASE("a union's smallest difference is none, and never more than the digest has") {
        union_estimate all;
        CHECK(all.add(digest_of_keys(doubled(0), 0, 8000)));
        const auto before = all.now().keys;
        for (unsigned i = 0; i < 10; ++i) {
            CHECK(all.add(digest_of_keys(doubled(0), 0, 8000)));
        }
        CHECK(all.now().keys == before);
    }

    TEST_CASE("digests that say nothing of each other are left out, and change nothing") {
        union_estimate all;
        CHECK(all.add(digest_of_keys(doubled(0), 0, 1000)));
        const auto before = all.now().keys;
        CHECK_FALSE(all.add(digest_of_keys({.bits = 1 << 14, .probes = 3}, 0, 1000)));
        CHECK_FALSE(all.add(digest_of_keys({.bits = 3 << 13, .probes = 2}, 0, 1000)));
        CHECK_FALSE(all.add(digest_of_keys({.bits = 1000, .probes = 2}, 0, 10)));
        auto other = stamp_of(10);
        other.seed.fill(std::byte{1});
        CHECK_FALSE(all.add(digest{
            {.bits = 1 << 14, .probes = 2}, std::vector<std::uint64_t>((1 << 14) / 64), other}));
        CHECK_FALSE(all.add(digest{{.layout = digest_layout::blocked, .bits = 1 << 14, .probes = 8},
                                   std::vector<std::uint64_t>((1 << 14) / 64),
                                   stamp_of(10)}));
        CHECK(all.now().keys == before);
        CHECK(all.now().digests == 1);
        CHECK(all.now().listed == 1000);
    }
}

}  // namespace reprise::filter::test::of_union_estimate
