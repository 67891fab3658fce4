// A store in memory that is made smaller, with a disk below it.

#include "proxy/server/memory_upkeep.hpp"
#include "tests/unit/cache/both_tiers.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

using namespace reprise::proxy;
using namespace reprise::proxy::cache::test::of_store;

TEST_SUITE("server/memory_upkeep") {
    TEST_CASE("what leaves memory because it is made smaller is on disk then") {
        cache::memory_plan plan;
        plan.capacity = 64u << 20;
        plan.policy = cache::eviction_kind::lru;
        plan.stripes = 1;
        cache::store store{plan};
        cache::disk::tier_settings settings;
        settings.path = "/store";
        settings.size = 128u << 20;
        settings.write_queue = 12u << 20;  // what leaves at once has room in it, and twice as much has not
        settings.write_after = std::chrono::milliseconds{1};
        store.attach(
            std::make_unique<cache::disk::tier>(settings,
                                                std::make_shared<cache::disk::test::memory_files>(),
                                                store.purges(),
                                                store.memory().invalidated()),
            reprise::config::disk_write::eviction);
        REQUIRE(eventually(
            [&] { return store.disk()->figures().state == cache::disk::tier_state::ready; }));
        for (unsigned i = 0; i < 120; ++i) {
            const auto url = url_of(i);
            const auto key = key_of(url);
            REQUIRE(store.put(key, url, object(url, 150'000), store.mark(key)));
            REQUIRE(store.find(key, url, {}).response);  // so it is worth a place on disk
        }
        server::resize(store, 1u << 20);
        const auto left = store.memory().figures().objects;
        CHECK(left < 10);
        const auto disk = store.disk()->figures();
        CHECK(disk.skipped == 0);
        CHECK(disk.puts == 120 - left);
    }
}
