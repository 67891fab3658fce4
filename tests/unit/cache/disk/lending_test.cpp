// A store that one process hands to the next, with both in this one.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <string>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/lending") {

    namespace {

    // Enough to have used every segment of the smallest store.
    unsigned fill(disk_store& s, unsigned from) {
        const auto evicted = s->figures().evicted;
        unsigned number = from;
        while (s->figures().evicted == evicted) {
            s.put_surely(url_of(number), object(url_of(number), 12'000));
            ++number;
        }
        return number;
    }

    }  // namespace

    TEST_CASE("what was put before a store is lent is found by who has it, and here as before") {
        const auto files = std::make_shared<memory_files>();
        disk_store old{files};
        old.open();
        old.settings.write_after = 1h;
        old.open();
        REQUIRE(old.put(url_of(1), object(url_of(1), 1000)));  // waits for the writer
        REQUIRE(old->lend(tests::patience).empty());
        CHECK(old->is_lent());
        CHECK(old->figures().state == tier_state::reading);
        CHECK_FALSE(old.put(url_of(2), object(url_of(2), 1000)));
        disk_store next{files};
        next.open();
        CHECK(next.has(url_of(1)));
        CHECK(old.has(url_of(1)));
        next.put_surely(url_of(2), object(url_of(2), 1000));
        CHECK(old.has(url_of(1)));
    }

    TEST_CASE("a purge before is in the journal of who has the store; one meanwhile is answered") {
        const auto files = std::make_shared<memory_files>();
        disk_store old{files};
        old.open();
        for (const unsigned one : {1u, 2u, 3u}) {
            old.put_surely(url_of(one), object(url_of(one), 1000));
        }
        old.invalidate(url_of(1));
        REQUIRE(old->lend(tests::patience).empty());
        old.invalidate(url_of(2));  // and its call comes
        disk_store next{files};
        next.open();
        CHECK_FALSE(next.has(url_of(1)));
        CHECK(next.has(url_of(2)));  // of this it is told by other ways (server/UPGRADE.md)
        CHECK_FALSE(old.has(url_of(2)));
        CHECK(old.has(url_of(3)));
    }

    TEST_CASE("a store that is taken back is written again, and knows what was purged meanwhile") {
        const auto files = std::make_shared<memory_files>();
        disk_store old{files};
        old.open();
        for (const unsigned one : {1u, 2u}) {
            old.put_surely(url_of(one), object(url_of(one), 1000));
        }
        REQUIRE(old->lend(tests::patience).empty());
        {
            disk_store next{files};
            next.open();
            CHECK_FALSE(old->take_back());  // somebody has it
        }
        old.invalidate(url_of(1));
        REQUIRE(old->take_back());
        REQUIRE(old.put_until_found(url_of(3), 1000));
        CHECK(old->figures().state == tier_state::ready);
        CHECK(old.has(url_of(2)));
        old.invalidate(url_of(2));
        old.open();
        CHECK_FALSE(old.has(url_of(1)));
        CHECK_FALSE(old.has(url_of(2)));
        CHECK(old.has(url_of(3)));
    }

    TEST_CASE("what is stored behind a purge by who had the store is younger than that") {
        const auto files = std::make_shared<memory_files>();
        disk_store old{files, smallest_store};
        old.open();
        const auto url = url_of(1);
        old.put_surely(url, object(url, 1000, 1));
        // Whoever has the store next can't read all of it, and so begins a segment of its own.
        (void)files->open("/store/s-00000007", open_mode::make);
        REQUIRE(old->lend(tests::patience).empty());
        {
            disk_store next{files, smallest_store};
            next.open();
            next.invalidate(url);
        }
        REQUIRE(old->take_back());
        old.invalidate(url);  // it was told of it
        REQUIRE(eventually([&] { return old->figures().state == tier_state::ready; }));
        old.put_surely(url, object(url, 1000, 2));
        old.open();
        REQUIRE(old.has(url));
        CHECK(whole_body(*old.find(url).response) == body_for(url, 1000, 2));
    }

    TEST_CASE("bans behind the loan, and during it, meet what was stored by who had the store") {
        const auto files = std::make_shared<memory_files>();
        disk_store old{files};
        old.open();
        const auto ban = [](disk_store& in, unsigned number) {
            in.purges->ban_prefix(url_of(number), "", purge_mode::hard, resident_now());
            in.keep_bans();
        };
        ban(old, 9);
        old.put_surely(url_of(1), object(url_of(1), 1000));
        REQUIRE(old->lend(tests::patience).empty());
        {
            disk_store next{files};
            next.open();
            for (const unsigned number : {8u, 7u}) {
                ban(next, number);
            }
            for (const unsigned number : {2u, 3u, 4u}) {
                next.put_surely(url_of(number), object(url_of(number), 1000));
            }
            ban(old, 2);
            ban(next, 2);  // it was told of it
        }
        REQUIRE(old->take_back());
        REQUIRE(old.put_until_found(url_of(5), 1000));
        ban(old, 3);
        old.open();
        CHECK(old.has(url_of(1)));
        CHECK_FALSE(old.has(url_of(2)));
        CHECK_FALSE(old.has(url_of(3)));
        CHECK(old.has(url_of(4)));
        CHECK(old.has(url_of(5)));
        ban(old, 4);
        CHECK_FALSE(old.has(url_of(4)));
    }

    TEST_CASE("no segment is used again while who lent the store reads it, and then they are") {
        const tests::temp_dir dir;
        disk_store old{system_files(), smallest_store, dir.file("store")};
        old.open();
        const auto last = fill(old, 0);
        std::vector<std::string> kept;
        for (unsigned one = 0; one < last; ++one) {
            if (old.has(url_of(one))) {
                kept.push_back(url_of(one));
            }
        }
        REQUIRE(kept.size() > 50);
        REQUIRE(old->lend(tests::patience).empty());
        disk_store next{system_files(), smallest_store, dir.file("store")};
        next.open();
        const auto before = next->figures();
        for (unsigned one = last; one < last + 200; ++one) {  // more than the store can have
            REQUIRE(eventually([&] { return next.put(url_of(one), object(url_of(one), 12'000)); }));
        }
        REQUIRE(eventually([&] { return next->figures().queued_bytes == 0; }));
        CHECK(next->figures().skipped > before.skipped);
        CHECK(next->figures().write_errors == 0);
        for (const auto& url : kept) {
            CHECK(next.has(url));
            const auto there = old.find(url).response;
            REQUIRE(there);
            CHECK(whole_body(*there) == body_for(url, 12'000));
        }
        old.close();
        (void)fill(next, last + 200);
        CHECK(next->figures().damaged == 0);
    }

    TEST_CASE("a failed write while who lent the store reads it stops no writing for good") {
        const auto files = std::make_shared<memory_files>();
        disk_store old{files, smallest_store};
        old.open();
        const auto last = fill(old, 0);
        REQUIRE(old->lend(tests::patience).empty());
        disk_store next{files, smallest_store};
        next.open();
        std::atomic<bool> fails{true};
        files->fail_when([&fails](operation what, std::string_view path) {
            return what == operation::write && path.starts_with("/store/s-") &&
                   fails.exchange(false);
        });
        // What fails may be the going on with the last segment: then this is refused.
        (void)next.put(url_of(last), object(url_of(last), 1000));
        REQUIRE(eventually([&] { return next->figures().write_errors != 0; }));
        REQUIRE(eventually([&] { return next->figures().state == tier_state::ready; }));
        files->set_hook({});
        old.close();
        next.put_surely(url_of(last), object(url_of(last), 1000));
    }

    TEST_CASE(
        "a borrower with less room keeps the purges of what lies beyond, and removes it later") {
        constexpr auto larger = smallest_store + (1u << 20);
        const auto name = [](std::uint64_t number) {
            return "/store/" + segment_name(static_cast<std::uint32_t>(number));
        };
        const auto files = std::make_shared<memory_files>();
        disk_store old{files, larger};
        old.settings.carry = 0;
        old.open();
        unsigned number = 0;
        const auto put_until = [&number](disk_store& s, const auto& condition) {
            for (; !condition(); ++number) {
                REQUIRE(number < 5000);
                s.put_surely(url_of(number), object(url_of(number), 30'000));
            }
        };
        const auto beyond = name(old->figures().segments - 1);
        put_until(old, [&] { return !files->contents(beyond).empty(); });
        const std::string purged = "http://purged/";
        old.put_surely(purged, object(purged, 100));
        old.invalidate(purged);
        // What the borrower has room for is younger than the purge then.
        const auto header_of_last = [&] {
            return files->contents(name(plan(smallest_store).segments - 1)).substr(0, 64);
        };
        const auto before = header_of_last();
        put_until(old, [&] { return header_of_last() != before; });
        REQUIRE(old->lend(tests::patience).empty());
        disk_store next{files, smallest_store};
        next.open();
        REQUIRE(next->figures().segments < old->figures().segments);
        std::atomic<bool> fails{true};
        files->fail_when([&fails](operation what, std::string_view path) {
            return what == operation::write && path.starts_with("/store/purges") &&
                   fails.exchange(false);
        });
        next.purge("http://other/");  // the journal is written anew for it
        REQUIRE_FALSE(fails);
        files->set_hook({});
        {
            disk_store again{files->after_kill(), larger};
            again.open();
            CHECK(again->figures().segments == old->figures().segments);
            CHECK(again->figures().objects > 0);
            CHECK_FALSE(again.has(purged));
        }
        REQUIRE_FALSE(files->contents(beyond).empty());
        old.close();
        put_until(next, [&] { return files->contents(beyond).empty(); });
        next.put_surely(url_of(number), object(url_of(number), 100));
    }

    TEST_CASE("a store whose disk does not answer is not lent, and goes on") {
        const auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 1000));
        {
            const hanging_disk disk{*files, {operation::write}};
            REQUIRE(s.put(url_of(2), object(url_of(2), 1000)));
            CHECK(s->lend(20ms).find("does not answer") != std::string::npos);
            CHECK_FALSE(s->is_lent());
        }
        REQUIRE(s.put_until_found(url_of(3), 1000));
        CHECK(s.has(url_of(1)));
        REQUIRE(s->lend(tests::patience).empty());
    }
}

}  // namespace reprise::proxy::cache::disk
