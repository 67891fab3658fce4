// Ids of what was dropped while it may wait to be written: known as long as that, and no longer.

#include "proxy/cache/disk/dropped_ids.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace reprise::proxy::cache::disk {

TEST_SUITE("cache/disk/dropped_ids") {

    TEST_CASE("what was dropped is known until all that waited then is done with") {
        dropped_ids ids;
        ids.add(7, 3);
        ids.add(8, 5);
        ids.one_is_done();
        ids.one_is_done();
        CHECK(ids.contains(7));
        ids.one_is_done();
        CHECK_FALSE(ids.contains(7));
        CHECK(ids.contains(8));
        ids.one_is_done();
        ids.one_is_done();
        CHECK_FALSE(ids.contains(8));
        ids.add(9, 5);  // nothing waits
        CHECK_FALSE(ids.contains(9));
    }

    TEST_CASE(
        "drops without end, while something always waits, take room for one turn of the queue") {
        dropped_ids ids;
        constexpr std::uint64_t waiting = 10, drops = 3;
        std::uint64_t id = 0;
        for (std::uint64_t offered = waiting; offered < 1000; ++offered) {
            for (std::uint64_t i = 0; i < drops; ++i) {
                ids.add(++id, offered);
                ids.add(id, offered);  // said twice
            }
            CHECK(ids.contains(id));
            CHECK(ids.size() <= waiting * drops);
            ids.one_is_done();
        }
    }
}

}  // namespace reprise::proxy::cache::disk
