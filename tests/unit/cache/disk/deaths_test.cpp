// What left its segment, until the bookkeeping of space hears of it.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/memory/invalidations.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/deaths") {

    TEST_CASE("what leaves the index takes no memory until a segment is begun, and is counted") {
        purge_list purges;
        invalidations lately;
        tier_settings settings;
        settings.size = smallest_store;
        const auto shape = plan(settings.size);
        core of{
            settings, std::make_shared<memory_files>(), {}, shape, shape.segments, purges, lately};
        constexpr std::uint64_t bytes = 1008;
        constexpr unsigned records = 200;
        of.room.open(1, 1);
        for (unsigned i = 0; i < records; ++i) {
            (void)of.put(key_of(url_of(i)), {.place = {1, i * bytes}, .bytes = bytes});
            of.room.wrote(1, {bytes, bytes, 1, {}}, false);
        }
        REQUIRE(of.room.live_bytes(1) == records * bytes);
        const auto gone_at_first = key_of(url_of(0));
        (void)of.erase(gone_at_first);
        of.loading = false;
        std::vector<filter::key_hash> keys;
        for (unsigned i = 1; i + 1 < records; ++i) {
            keys.push_back(key_of(url_of(i)));
        }
        {
            const net::memory_ends none;
            for (const auto& key : keys) {
                (void)of.erase(key);
            }
        }
        of.settle_deaths();
        CHECK(of.room.live_bytes(1) == bytes);
        of.settle_deaths();
        CHECK(of.room.live_bytes(1) == bytes);
    }
}

}  // namespace reprise::proxy::cache::disk
