#include "proxy/cache/memory/invalidations.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace reprise::proxy::cache::test::of_invalidations {

using filter::key_hash;

namespace {

/// Keys of one stripe, which the high word picks; their low words pick their slots, of which there are
/// 4,096.
constexpr key_hash of_slot(std::uint64_t slot, std::uint64_t which = 0) {
    return {.low = slot + which * 4'096, .high = 7};
}

/// Others of the stripe, which share no slot with the first: more than are known one by one.
void note_others(invalidations& lately) {
    for (std::uint64_t slot = 1; slot <= 65; ++slot) {
        lately.note(of_slot(slot));
    }
}

}  // namespace

TEST_SUITE("cache/memory/invalidations") {

    TEST_CASE("a key was invalidated since every moment before that, and none after it") {
        invalidations lately;
        const auto key = of_slot(0);
        const auto before = lately.count(key);
        CHECK_FALSE(lately.since(key, before));
        lately.note(key);
        CHECK(lately.since(key, before));
        CHECK(lately.surely_since(key, before));
        const auto after = lately.count(key);
        CHECK_FALSE(lately.since(key, after));
        CHECK_FALSE(lately.surely_since(key, after));
    }

    TEST_CASE("whatever is invalidated beside it, a key that was not may be stored") {
        invalidations lately;
        const auto key = of_slot(0);
        const auto before = lately.count(key);
        for (int round = 0; round < 60; ++round) {
            note_others(lately);
            CHECK_FALSE(lately.since(key, before));
        }
        // What takes 100 s while 50 URLs a second, each another, are posted to.
        unsigned refused = 0;
        for (std::uint64_t other = 0; other < 5'000; ++other) {
            lately.note(filter::test::nth_key(1, other));
        }
        const invalidations none;
        for (std::uint64_t mine = 0; mine < 1'000; ++mine) {
            const auto asked = filter::test::nth_key(2, mine);
            refused += lately.since(asked, none.count(asked)) ? 1 : 0;
        }
        CHECK(refused < 60);  // 1.9 % are to be expected, and a little more by those above
    }

    TEST_CASE("none is missed, however many of others have come since") {
        invalidations lately;
        const auto key = of_slot(0);
        const auto before = lately.count(key);
        lately.note(key);
        const auto after = lately.count(key);
        for (int round = 0; round < 60; ++round) {
            note_others(lately);
            CHECK(lately.since(key, before));
            CHECK_FALSE(lately.since(key, after));
        }
        CHECK_FALSE(lately.surely_since(key, before));  // nobody knows any more
    }

    TEST_CASE("of more than are known one by one, a key is taken for the others of its slot") {
        invalidations lately;
        const auto key = of_slot(0);
        const auto before = lately.count(key);
        lately.note(of_slot(0, 1));
        CHECK_FALSE(lately.since(key, before));
        note_others(lately);
        CHECK(lately.since(key, before));
        CHECK_FALSE(lately.surely_since(key, before));
        CHECK_FALSE(lately.since(key, lately.count(key)));
    }
}

}  // namespace reprise::proxy::cache::test::of_invalidations
