#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/peeling.hpp"

#include <array>

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/peeling") {
    TEST_CASE("hashes that are all in the same slots cannot be peeled, and the slots stay zero") {
        cells slots{4, 8};
        const std::array<std::uint64_t, 2> hashes{1, 2};
        const auto places = [](std::uint64_t) {
            return peel_places{.slot = {0, 1, 2}, .count = 3};
        };
        CHECK(!peel(hashes, places, slots));
        CHECK(slots == cells{4, 8});
        CHECK(peel(std::span{hashes}.first(1), places, slots));
        CHECK((slots.get(0) ^ slots.get(1) ^ slots.get(2)) == fingerprint_of(1, 8));
    }

    TEST_CASE("equal hashes cannot be peeled") {
        cells slots{100, 8};
        const std::array<std::uint64_t, 2> hashes{7, 7};
        CHECK(!peel(
            hashes,
            [](std::uint64_t hash) {
                return peel_places{.slot = {hash, 50, 90}, .count = 3};
            },
            slots));
    }
}

}  // namespace reprise::alternatives
