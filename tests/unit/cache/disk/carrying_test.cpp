// A store that wraps: what is asked for is carried forward, and nothing else.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/carrying") {

    TEST_CASE("a store that wraps many times keeps its bounds and serves no wrong byte") {
        const tests::temp_dir dir;
        disk_store s{system_files(), smallest_store, dir.file("store")};
        s.settings.write_queue = 128u << 10;  // so that what is put is soon there
        s.open();
        std::mt19937_64 random{1};
        std::uint64_t wrong = 0;
        std::uint64_t hits = 0;
        for (unsigned i = 0; i < 3000; ++i) {
            const auto url = url_of(i);
            const auto size = 1 + random() % 15'000;
            REQUIRE(eventually([&] { return s.put(url, object(url, size)); }));
            const auto back = url_of(i - random() % (1 + std::min(i, 200u)));
            if (const auto got = s.find(back).response) {
                const auto content = bytes_of(*got->content());
                wrong += content != body_for(back, content.size());
                ++hits;
            }
        }
        CHECK(wrong == 0);
        const auto figures = s->figures();
        CHECK(hits > 1000);
        CHECK(figures.evicted > 500);
        CHECK(figures.carried > 0);
        CHECK(figures.damaged == 0);
        CHECK(figures.bytes <= figures.capacity);
        CHECK(static_cast<double>(figures.carried_bytes) <=
              0.3 * static_cast<double>(figures.written_bytes));
        std::uint64_t on_disk = 0;
        for (const auto& one : std::filesystem::directory_iterator{dir.file("store")}) {
            on_disk += one.file_size();
        }
        CHECK(on_disk <= smallest_store);
        s.open();
        const auto objects = s->figures().objects;
        s.open();
        CHECK(s->figures().objects == objects);
    }

    TEST_CASE("what is asked for often is carried forward, large objects too") {
        disk_store s{std::make_shared<memory_files>(), smallest_store};
        s.settings.write_queue = 128u << 10;
        s.open();
        s.put_surely("http://hot/", object("http://hot/", 5000));
        s.put_surely("http://hot/large", object("http://hot/large", 50'000));
        for (unsigned i = 0; i < 1200; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
            if (i % 10 == 0) {
                CHECK(s.has("http://hot/"));
                const auto got = s.find("http://hot/large").response;
                REQUIRE(got);
                CHECK(whole_body(*got) == body_for("http://hot/large", 50'000));
            }
        }
        CHECK(s->figures().evicted > 500);
        s.open();
        CHECK(s.has("http://hot/"));
        CHECK(s.has("http://hot/large"));
    }

    TEST_CASE("what is carried is no fresher than it was") {
        disk_store s{std::make_shared<memory_files>(), smallest_store};
        s.settings.write_queue = 128u << 10;
        s.open();
        constexpr unsigned hot = 40;
        const auto hot_url = [](unsigned k) { return "http://hot/" + std::to_string(k); };
        // Validated once: the newer head lies elsewhere than the object.
        for (unsigned k = 0; k < hot; ++k) {
            const auto url = hot_url(k);
            s.put_surely(url, object(url, 5000));
        }
        std::uint64_t revived = 0;
        std::uint64_t there = 0;
        unsigned validated = 0;
        unsigned ended = 0;
        for (unsigned i = 0; i < 3000; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
            if (i % 10 != 0) {
                continue;
            }
            for (unsigned k = 0; k < hot; ++k) {
                const auto found = s.find(hot_url(k)).response;
                there += found && k < ended ? 1 : 0;
                revived += found && k < ended && !found->purged_softly() ? 1 : 0;
                if (found && k == validated && i >= 7 * k) {
                    auto updated = object(hot_url(k), 10);
                    REQUIRE(s->freshen(
                        key_of(hot_url(k)), hot_url(k), *found, *updated, s.mark(hot_url(k))));
                    ++validated;
                }
            }
            if (i >= 1000 && i % 50 == 0 && ended < hot) {
                std::promise<void> kept;
                s->expire(key_of(hot_url(ended)), wall_now(), [&kept] { kept.set_value(); });
                REQUIRE(kept.get_future().wait_for(tests::patience) == std::future_status::ready);
                ++ended;
            }
        }
        CHECK(validated == hot);
        CHECK(ended == hot);
        CHECK(there > 1000);
        CHECK(s->figures().carried > hot);
        CHECK(revived == 0);
        s.open();
        for (unsigned k = 0; k < hot; ++k) {
            const auto found = s.find(hot_url(k)).response;
            CHECK((!found || found->purged_softly()));
        }
    }

    TEST_CASE("of a large object that was replaced nothing is carried, however often it is used") {
        disk_store s{std::make_shared<memory_files>(), smallest_store};
        s.settings.write_queue = 128u << 10;
        // A put that the queue refuses half-way leaves dead bytes in the segment: of what is live
        // the large object may be more than a quarter.
        s.settings.carry = 0.5;
        s.open();
        const std::string url = "http://hot/large";
        unsigned next = 0;
        const auto put_others = [&](unsigned count) {
            for (unsigned i = 0; i < count; ++i, ++next) {
                REQUIRE(
                    eventually([&] { return s.put(url_of(next), object(url_of(next), 10'000)); }));
                if (i % 5 == 0) {
                    REQUIRE(s.has(url));
                }
            }
        };
        constexpr unsigned versions = 8;
        for (unsigned version = 0; version < versions; ++version) {
            s.put_surely(url, object(url, 50'000, version));
            put_others(24);  // a segment
        }
        const auto before = s->figures().carried_bytes;
        constexpr unsigned rounds = 3;
        put_others(rounds * 420);
        const auto carried = s->figures().carried_bytes - before;
        CHECK(carried >= rounds * 50'000);
        CHECK(carried < 2 * rounds * 50'000);
        CHECK(whole_body(*s.find(url).response) == body_for(url, 50'000, versions - 1));
    }

    TEST_CASE("what is carried is found all the while") {
        disk_store s{std::make_shared<memory_files>(), smallest_store};
        s.settings.write_queue = 128u << 10;
        s.open();
        const std::string url = "http://hot/large";
        s.put_surely(url, object(url, 50'000));
        std::atomic<bool> over{false};
        std::atomic<unsigned> misses{0};
        std::vector<std::jthread> readers;
        for (unsigned i = 0; i < 3; ++i) {
            readers.emplace_back([&] {
                while (!over) {
                    disk_lookup lookup{*s.tiers, key_of(url), url, {}};
                    while (!lookup.step({})) {
                        std::this_thread::yield();
                    }
                    misses += lookup.result.what == lookup::present ? 0 : 1;
                }
            });
        }
        for (unsigned next = 0; next < 6'000; ++next) {
            CHECK(eventually([&] { return s.put(url_of(next), object(url_of(next), 10'000)); }));
        }
        over = true;
        readers.clear();
        CHECK(s->figures().carried > 20);
        CHECK(misses == 0);
    }

    TEST_CASE("a large object is carried whole, or goes whole") {
        disk_store s{std::make_shared<memory_files>(), smallest_store};
        s.settings.write_queue = 128u << 10;
        s.open();
        const auto url_of_large = [](unsigned i) { return url_of(i) + "/large"; };
        unsigned held = 0;
        unsigned headless = 0;
        for (unsigned i = 0; i < 600; ++i) {
            const auto small = url_of(i);
            REQUIRE(eventually([&] { return s.put(small, object(small, 3'000)); }));
            const auto large = url_of_large(i);
            REQUIRE(eventually([&] { return s.put(large, object(large, 60'000)); }));
            (void)s.has(small);  // each was asked for once
            (void)s.has(large);
            for (unsigned back = 1; back <= i && i % 100 == 99; ++back) {
                const auto earlier = url_of_large(i - back);
                const bool is_listed = s->may_hold(key_of(earlier));
                held += is_listed;
                headless += is_listed && !s.has(earlier);
            }
        }
        CHECK(held > 100);
        CHECK(headless * 10 < held);  // one at most is cut where a segment's share ends
    }
}

}  // namespace reprise::proxy::cache::disk
