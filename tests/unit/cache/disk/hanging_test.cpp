// A disk that hangs: what waits for it, and who does not.

#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/faulty_disk.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/hanging") {

    TEST_CASE("a disk that hangs holds up nobody for long, and a full queue nobody at all") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.settings.patience = 20ms;
        s.settings.read_queue = 4;
        s.open();
        for (unsigned i = 0; i < 20; ++i) {
            s.put_surely(url_of(i), object(url_of(i), 100));
        }
        hanging_disk disk{*files, {operation::read}};
        files->set_cold(true);
        std::vector<std::unique_ptr<disk_lookup>> all;
        std::vector<std::string> urls;
        for (unsigned i = 0; i < 20; ++i) {
            urls.push_back(url_of(i));
        }
        for (const auto& url : urls) {
            all.push_back(
                std::make_unique<disk_lookup>(*s, key_of(url), url, net::wakeup::signal{}));
        }
        unsigned at_once = 0;
        for (const auto& one : all) {
            at_once += one->step({}) ? 1 : 0;
        }
        CHECK(at_once >= 20 - 4 - 2);  // neither in the queue nor with a thread
        CHECK(s->figures().refused >= at_once);
        REQUIRE(eventually([&] {
            return std::all_of(
                all.begin(), all.end(), [](const auto& one) { return one->step({}); });
        }));
        for (const auto& one : all) {
            CHECK(one->result.what == lookup::absent);
        }
        // With every thread held up nobody waits at all; what is cached is still served.
        CHECK(eventually([&] {
            disk_lookup next{*s, key_of(urls[0]), urls[0], {}};
            return next.step({});
        }));
        files->set_cold(false);
        CHECK(s.has(urls[0]));
        disk.let_go();
        files->set_cold(true);
        REQUIRE(eventually([&] { return s.has(urls[1]); }));
    }

    TEST_CASE("while a newer response waits to be written, no older one is found") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        s.put_surely(url, object(url, 100, 1));
        hanging_disk disk{*files, {operation::write}};
        (void)s.put(url_of(2), object(url_of(2), 4000));
        REQUIRE(eventually([&] { return disk.is_met(); }));
        const auto newer = object(url, 100, 2);
        REQUIRE(s.put(url, newer));
        CHECK_FALSE(s.has(url));
        disk.let_go();
        REQUIRE(eventually([&] { return s.has(url); }));
        CHECK(bytes_of(*s.find(url).response->content()) == body_for(url, 100, 2));
    }

    TEST_CASE("the newer head of what is being written is kept with it") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        const stored_ptr current = object(url, 4000, 1);
        {
            hanging_disk disk{*files, {operation::write}};
            REQUIRE(s.put(url, current));
            REQUIRE(eventually([&] { return disk.is_met(); }));
            auto updated = drafted{current->draft()};
            updated->freshness.lifetime = 7h;
            CHECK(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
        }
        s.put_surely("http://b/", object("http://b/", 100));
        s.open();
        const auto found = s.find(url).response;
        REQUIRE(found);
        CHECK(found->freshness().lifetime == 7h);
    }

    TEST_CASE("a large object that waits for the disk is known by its strong entity tag") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const std::string url = "http://l/";
        const auto key = key_of(url);
        const auto write = [&](unsigned length, std::string_view etag) {
            const auto writer = s->begin(key, url, length, etag, s.mark(url));
            REQUIRE(writer);
            const auto content = cache::test::body_of(body_for(url, length));
            for (const auto& piece : content->slices) {
                REQUIRE(writer->append(piece));
            }
            auto head = object(url, length);
            head->content = nullptr;
            REQUIRE(writer->finish(*head));
        };
        CHECK_FALSE(s->is_being_written(key, "\"1\""));
        hanging_disk disk{*files, {operation::write}};
        write(400'000, "\"1\"");
        CHECK(s->is_being_written(key, "\"1\""));
        CHECK_FALSE(s->is_being_written(key, "\"2\""));
        CHECK_FALSE(s->is_being_written(key, ""));
        CHECK_FALSE(s->is_being_written(key_of("http://m/"), "\"1\""));
        // What was purged is written no more: a new copy is.
        s.lately->note(key);
        s->invalidate(key);
        CHECK_FALSE(s->is_being_written(key, "\"1\""));
        write(400'000, "\"1\"");
        CHECK(s->is_being_written(key, "\"1\""));
        disk.let_go();
        REQUIRE(eventually([&] { return s.has(url); }));
        CHECK_FALSE(s->is_being_written(key, "\"1\""));
        CHECK(whole_body(*s.find(url).response) == body_for(url, 400'000));
    }

    TEST_CASE("what is put whole is taken whole or not at all, and is no larger than what can be "
              "written") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.settings.write_queue = 128u << 10;
        s.open();
        // Larger than the queue, which is empty: it leaves memory once, and would be in no tier then.
        const auto first = url_of(1);
        REQUIRE(s.put(first, object(first, 400'000)));
        REQUIRE(eventually([&] { return s.has(first); }));
        CHECK(whole_body(*s.find(first).response) == body_for(first, 400'000));
        REQUIRE(eventually([&] { return s->queued_bytes() == 0; }));

        hanging_disk disk{*files, {operation::write}};
        (void)s.put(url_of(2), object(url_of(2), 4000));
        REQUIRE(eventually([&] { return disk.is_met(); }));
        // The second is more than the queue holds beside the first: of that one nothing waits to be written.
        const auto taken = url_of(3);
        const auto refused = url_of(4);
        REQUIRE(s.put(taken, object(taken, 300'000)));
        const auto waiting = s->queued_bytes();
        CHECK(waiting > s.settings.write_queue);
        const auto before = s->figures().skipped;
        CHECK_FALSE(s.put(refused, object(refused, 300'000)));
        CHECK(s->figures().skipped == before + 1);
        CHECK(s->queued_bytes() == waiting);
        disk.let_go();
        REQUIRE(eventually([&] { return s.has(taken); }));
        REQUIRE(eventually([&] { return s->queued_bytes() == 0; }));
        CHECK(whole_body(*s.find(taken).response) == body_for(taken, 300'000));
        CHECK_FALSE(s.has(refused));
        // What was promised and not used is given back: there is room again.
        REQUIRE(s.put(refused, object(refused, 300'000)));
        CHECK(eventually([&] { return s.has(refused); }));
    }

    TEST_CASE("what waits to be written is not, when a newer one came that was not taken") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.settings.write_queue = 32u << 10;
        s.open();
        hanging_disk disk{*files, {operation::write}};
        (void)s.put(url_of(2), object(url_of(2), 4000));
        REQUIRE(eventually([&] { return disk.is_met(); }));
        const auto url = url_of(1);
        REQUIRE(s.put(url, object(url, 100, 1)));
        for (unsigned i = 3; s.put(url_of(i), object(url_of(i), 1000));) {
            ++i;
        }
        const auto newer = object(url, 4000, 2);
        REQUIRE_FALSE(s.put(url, newer));
        s->outdate(key_of(url), url, newer);
        disk.let_go();
        s.put_surely("http://b/", object("http://b/", 100));
        CHECK_FALSE(s.has(url));
    }

    TEST_CASE("what is being written is not found, when a newer one came that was not taken") {
        for (const bool notes_are_full : {false, true}) {
            CAPTURE(notes_are_full);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.settings.write_queue = 32u << 10;
            s.settings.purge_queue = 50;
            s.open();
            const auto noted = url_of(3);
            s.put_surely(noted, object(noted, 100));
            const auto dropped = s.find(noted).response;
            hanging_disk disk{*files, {operation::write}};
            const std::vector<std::string> urls{url_of(1), url_of(2)};
            for (const auto& url : urls) {
                REQUIRE(s.put(url, object(url, 100, 1)));
            }
            REQUIRE(eventually([&] { return disk.is_met(); }));
            // So small that no note of a newer one has room either.
            for (unsigned i = 4; s.put(url_of(i), object(url_of(i), 1));) {
                ++i;
            }
            while (notes_are_full && s->drop(key_of(noted), *dropped)) {
            }
            for (const auto& url : urls) {
                const stored_ptr newer = object(url, 4000, 2);
                REQUIRE_FALSE(s.put(url, newer));
                s->outdate(key_of(url), url, newer);
            }
            disk.let_go();
            s.put_surely("http://b/", object("http://b/", 100));
            for (const auto& url : urls) {
                CHECK_FALSE(s.has(url));
            }
            REQUIRE(eventually([&] { return s->figures().queued_purges == 0; }));
            s.open();
            for (const auto& url : urls) {
                CHECK_FALSE(s.has(url));
            }
        }
    }

    TEST_CASE("what is invalidated while it is written stays away, whenever the disk hears of it") {
        for (const bool is_late : {false, true}) {
            CAPTURE(is_late);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            s.put_surely(url_of(2), object(url_of(2), 100));
            s.invalidate("http://other/");  // the writer knows then that the index is whole
            const auto url = url_of(1);
            const auto key = key_of(url);
            {
                hanging_disk disk{*files, {operation::write}};
                REQUIRE(s.put(url, object(url, 100)));
                REQUIRE(eventually([&] { return disk.is_met(); }));
                s.lately->note(key);  // as memory does before the disk is told
                if (!is_late) {
                    s->invalidate(key);
                }
            }
            // Its record is in the file, and has left the index as soon as it had come.
            REQUIRE(eventually([&] { return s->figures().behind == 0s; }));
            CHECK_FALSE(s.has(url));
            if (is_late) {
                s->invalidate(key);
            }
            s.keep_bans();  // and all that was noted before
            s.go_on_with(files->after_kill());
            CHECK_FALSE(s.has(url));
            CHECK(s.has(url_of(2)));
        }
    }

    TEST_CASE("purges of others that can't be told from its own bring back nothing older") {
        for (const bool is_being_written : {false, true}) {
            for (const bool is_head : {false, true}) {
                CAPTURE(is_being_written);
                CAPTURE(is_head);
                auto files = std::make_shared<memory_files>();
                disk_store s{files};
                s.open();
                const auto url = url_of(1);
                s.put_surely(url, object(url, 100, 1));
                const auto older = s.find(url).response;
                hanging_disk disk{*files, {operation::write}};
                if (!is_being_written) {
                    (void)s.put(url_of(2), object(url_of(2), 4000));
                    REQUIRE(eventually([&] { return disk.is_met(); }));
                }
                if (is_head) {
                    auto newer = drafted{older->draft()};
                    newer->freshness.lifetime = 1min;
                    REQUIRE(s->freshen(key_of(url), url, *older, *newer, s.mark(url)));
                } else {
                    REQUIRE(s.put(url, object(url, 100, 2)));
                }
                REQUIRE(eventually([&] { return disk.is_met(); }));
                const auto asked = s.lately->count(key_of(url));
                // Of its stripe and its slot (invalidations.hpp), more than are known one by one.
                auto others = key_of(url);
                others.high ^= std::uint64_t{1} << 63;
                for (unsigned i = 0; i <= 64; ++i) {
                    s.lately->note(others);
                }
                REQUIRE(s.lately->since(key_of(url), asked));
                disk.let_go();
                s.put_surely("http://b/", object("http://b/", 100));
                const auto is_older = [&](const stored_ptr& one) {
                    return one && one->freshness().lifetime == 1h &&
                           whole_body(*one) == body_for(url, 100, 1);
                };
                CHECK_FALSE(is_older(s.find(url).response));
                REQUIRE(eventually([&] { return s->figures().queued_purges == 0; }));
                s.open();
                CHECK_FALSE(is_older(s.find(url).response));
            }
        }
    }

    TEST_CASE("a disk that hangs while writing lets puts be skipped, and takes them again later") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.settings.write_queue = 64u << 10;
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        hanging_disk disk{*files, {operation::write}};
        // What comes before it hangs is on its way already, and takes no room in the queue.
        (void)s.put(url_of(2), object(url_of(2), 4000));
        REQUIRE(eventually([&] { return disk.is_met(); }));
        unsigned taken = 0;
        for (unsigned i = 3; i < 100; ++i) {
            taken += s.put(url_of(i), object(url_of(i), 4000)) ? 1 : 0;
        }
        CHECK(taken < 60);
        CHECK(s->figures().skipped > 40);
        CHECK(s->figures().overrun == s->figures().skipped);  // it was slow, and nothing else
        CHECK(s.has(url_of(1)));
        disk.let_go();
        s.put_surely("http://b/", object("http://b/", 100));
    }

    TEST_CASE("how far the writer is behind is the age of the oldest that is in no file") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto is_written = [&] { return s->figures().behind == 0s; };
        s.put_surely(url_of(1), object(url_of(1), 100));
        REQUIRE(eventually(is_written));
        hanging_disk disk{*files, {operation::write}};
        const auto begun = steady_now();
        REQUIRE(s.put(url_of(2), object(url_of(2), 4000)));
        const auto put = steady_now();
        REQUIRE(eventually([&] { return disk.is_met(); }));
        for (unsigned i = 3; i < 6; ++i) {
            REQUIRE(s.put(url_of(i), object(url_of(i), 4000)));  // younger ones
        }
        const auto least = steady_now() - put;
        const auto behind = s->figures().behind;
        CHECK(behind >= least);
        CHECK(behind <= steady_now() - begun);
        disk.let_go();
        CHECK(eventually(is_written));
        CHECK(s.has(url_of(5)));
    }

    TEST_CASE("purges without end while the disk hangs take bounded memory, and hold") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.settings.purge_queue = 50;
        s.open();
        for (unsigned i = 0; i < 200; ++i) {
            s.put_surely(url_of(i), object(url_of(i), 100));
        }
        const auto dropped = s.find(url_of(150)).response;
        hanging_disk disk{*files, {operation::write, operation::sync}};
        std::atomic<unsigned> kept{0};
        s->purge(key_of("http://first/"), [&kept] { ++kept; });
        REQUIRE(eventually([&] { return disk.is_met(); }));
        for (unsigned round = 0; round < 20; ++round) {
            for (unsigned i = 0; i < 100; ++i) {
                s.lately->note(key_of(url_of(i)));
                s->invalidate(key_of(url_of(i)), [&kept] { ++kept; });
                CHECK(s->figures().queued_purges <= 2 * s.settings.purge_queue);
            }
            s->expire(key_of(url_of(100)), wall_now());
        }
        CHECK(s->figures().purge_overflows == 1);
        CHECK(kept == 0);
        unsigned taken = 0;
        while (s->drop(key_of(url_of(150)), *dropped)) {
            REQUIRE(++taken <= s.settings.purge_queue);
        }
        for (unsigned i = 0; i < 101; ++i) {
            const auto got = s.find(url_of(i)).response;
            CHECK((!got || (i == 100 && got->purged_softly())));
        }
        disk.let_go();
        REQUIRE(eventually([&] { return kept > 1; }));
        REQUIRE(eventually([&] { return s->figures().queued_purges == 0; }));
        // This process goes on with what was not purged, and what was can be stored anew.
        CHECK(s.has(url_of(199)));
        CHECK_FALSE(s.has(url_of(150)));
        CHECK_FALSE(s.has(url_of(1)));
        s.put_surely(url_of(1), object(url_of(1), 100, 1));
        s.put_surely(url_of(100), object(url_of(100), 100, 1));
        s.open();
        CHECK(s.has(url_of(1)));
        CHECK(s.has(url_of(100)));
        for (unsigned i = 2; i < 100; ++i) {
            CHECK_FALSE(s.has(url_of(i)));
        }
        CHECK_FALSE(s.has(url_of(150)));
        CHECK_FALSE(s.has(url_of(199)));  // the price, and the log said it
    }
}

}  // namespace reprise::proxy::cache::disk
