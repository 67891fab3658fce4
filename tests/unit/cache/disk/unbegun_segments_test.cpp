// Segments that can not be begun anew, or read at a start: what lay in them does not come back.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/faulty_disk.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

/// Stops it while its loader is held up, and lets that go then.
void stop_held_up(disk_store& s, hanging_disk& disk) {
    std::thread stop{[&s] { s->stop(); }};
    // That it has begun to stop shows in nothing but what follows.
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    disk.let_go();
    stop.join();
}

}  // namespace

TEST_SUITE("cache/disk/unbegun_segments") {

    TEST_CASE("what lay in a segment that could not be begun anew does not come back") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.settings.carry = 0;
        s.open();
        const auto url = url_of(0);
        s.put_surely(url, object(url, 100, 1));
        unsigned next = 1;
        fill_up(s, *files, next);
        std::atomic<bool> met{false};
        files->set_hook([&](operation what, std::string_view path) {
            if (what == operation::write && path == "/store/s-00000000") {
                met = true;
                return failing(boost::system::errc::io_error);
            }
            return error_code{};
        });
        REQUIRE(eventually([&] {
            put_more(s, next);
            return met.load();
        }));
        REQUIRE(eventually([&] { return s->figures().state == tier_state::ready; }));
        CHECK_FALSE(s.has(url));
        files->set_hook({});
        s.go_on_with(files->after_kill());
        CHECK_FALSE(s.has(url));
        CHECK(s->figures().objects > 0);
    }

    TEST_CASE("what lies in a segment that could not be begun anew stays purged") {
        // Reclaimed, but its file is as it was: a restart finds its records, and needs the journal.
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.settings.carry = 0;
        s.open();
        for (const auto* url : {"http://hard/", "http://soft/", "http://there/"}) {
            s.put_surely(url, object(url, 100));
        }
        s.invalidate("http://hard/");
        std::promise<void> kept;
        s->expire(key_of("http://soft/"), wall_now(), [&kept] { kept.set_value(); });
        REQUIRE(kept.get_future().wait_for(tests::patience) == std::future_status::ready);
        unsigned next = 0;
        fill_up(s, *files, next);
        std::atomic<bool> met{false};
        std::atomic<bool> journal_fails{true};
        files->set_hook([&](operation what, std::string_view path) {
            const bool first = path == "/store/s-00000000";
            if (what == operation::write && first) {
                met = true;
                return failing(boost::system::errc::io_error);
            }
            return what == operation::write && path.starts_with("/store/purges") && met &&
                           journal_fails.exchange(false)
                       ? failing(boost::system::errc::io_error)
                       : error_code{};
        });
        REQUIRE(eventually([&] {
            put_more(s, next);
            return met.load();
        }));
        s.purge("http://other/");  // the journal is written anew for it
        REQUIRE_FALSE(journal_fails);
        CHECK_FALSE(s.has("http://there/"));
        files->set_hook({});
        s.go_on_with(files->after_kill());
        // Nor does what was let go come back: something newer may have taken its place.
        CHECK_FALSE(s.has("http://there/"));
        CHECK_FALSE(s.has("http://hard/"));
        CHECK_FALSE(s.has("http://soft/"));
    }

    TEST_CASE("a segment whose beginning failed leaves its number to nobody") {
        auto files = std::make_shared<memory_files>();
        std::atomic<bool> met{false};
        files->fail_when([&](operation what, std::string_view path) {
            return what == operation::sync && path == "/store/s-00000000" && !met.exchange(true);
        });
        disk_store s{files, smallest_store};
        s.open();
        const auto url = url_of(1);
        REQUIRE(s.put_until_found(url_of(0), 30'000));
        REQUIRE(met);
        s.put_surely(url, object(url, 100));
        s.go_on_with(files->after_kill());
        REQUIRE(s.has(url));
        std::promise<void> kept;
        s->expire(key_of(url), wall_now(), [&kept] { kept.set_value(); });
        REQUIRE(kept.get_future().wait_for(tests::patience) == std::future_status::ready);
        CHECK(s.find(url).response->purged_softly());
        s.invalidate(url);
        s.open();
        CHECK_FALSE(s.has(url));
    }

    TEST_CASE("the newest segment that a start can't read brings back nothing changed since") {
        const std::string newest = "/store/s-00000000";
        for (const bool is_damaged : {false, true}) {
            CAPTURE(is_damaged);
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.open();
            s.put_surely("http://first/", object("http://first/", 100));
            s.put_surely("http://purged/", object("http://purged/", 100));
            s.put_surely("http://new/", object("http://new/", 100, 1));
            s.close();
            REQUIRE(!files->contents(newest).empty());
            if (is_damaged) {
                files->damage(newest, 30, "x");
            } else {
                files->fail_when([&newest](operation what, std::string_view path) {
                    return what == operation::read && path == newest;
                });
            }
            s.open();
            CHECK_FALSE(s.has("http://new/"));
            s.invalidate("http://purged/");
            s.put_surely("http://new/", object("http://new/", 100, 2));
            const auto killed = files->after_kill();
            s.close();
            files->set_hook({});
            s.files = is_damaged
                          ? killed
                          : files;  // of what can't be read it is not known when it is written
            s.open();
            CHECK_FALSE(s.has("http://purged/"));
            const auto found = s.find("http://new/");
            REQUIRE(found.what == lookup::present);
            CHECK(whole_body(*found.response) == body_for("http://new/", 100, 2));
        }
    }

    TEST_CASE("what lies in a segment that could not be read at a start stays purged") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.open();
        s.put_surely("http://hard/", object("http://hard/", 100));
        s.put_surely("http://there/", object("http://there/", 100));
        s.invalidate("http://hard/");
        for (unsigned i = 0; files->contents("/store/s-00000002").empty(); ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        for (const auto failing_now : {operation::open, operation::read}) {
            files->fail_when([failing_now](operation what, std::string_view path) {
                return what == failing_now && path == "/store/s-00000000";
            });
            s.open();
            CHECK_FALSE(s.has("http://there/"));
            std::atomic<bool> journal_fails{true};
            files->fail_when([&](operation what, std::string_view path) {
                return what == operation::write && path.starts_with("/store/purges") &&
                       journal_fails.exchange(false);
            });
            s.purge("http://other/");
            REQUIRE_FALSE(journal_fails);
            files->set_hook({});
        }
        s.go_on_with(files->after_kill());
        CHECK(s.has("http://there/"));
        CHECK_FALSE(s.has("http://hard/"));
    }

    TEST_CASE("what was replaced, of a segment that could not be read, does not come back later") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.settings.carry = 0;
        s.open();
        const std::string url = "http://replaced/";
        s.put_surely(url, object(url, 100, 1));
        unsigned next = 0;
        REQUIRE(eventually([&] {
            put_more(s, next);
            return !files->contents("/store/s-00000001").empty();
        }));
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::open && path == "/store/s-00000000";
        });
        s.open();
        CHECK_FALSE(s.has(url));
        s.put_surely(url, object(url, 100, 2));
        REQUIRE(eventually([&] {
            put_more(s, next);
            return is_ready(s) && !s.has(url);
        }));
        s.go_on_with(files->after_kill());
        CHECK(s->figures().objects > 0);
        CHECK_FALSE(s.has(url));
    }

    TEST_CASE(
        "a journal that fails as a segment is begun is written anew, and keeps purges again") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.settings.carry = 0;
        s.open();
        unsigned next = 0;
        fill_up(s, *files, next);
        s.close();
        // While one segment is unread, each that is begun has to be in the journal first.
        std::atomic<bool> journal_fails{false};
        files->fail_when([&](operation what, std::string_view path) {
            return (what == operation::open && path == "/store/s-00000000") ||
                   (what == operation::write && path.starts_with("/store/purges") &&
                    journal_fails.exchange(false));
        });
        s.open();
        const std::string url = "http://purged/";
        REQUIRE(s.put_until_found(url, 100));
        journal_fails = true;
        REQUIRE(eventually([&] {
            put_more(s, next);
            return !journal_fails;
        }));
        s.invalidate(url);
        REQUIRE(eventually([&] { return is_ready(s); }));
        files->set_hook({});
        s.go_on_with(files->after_kill());
        CHECK(s->figures().objects > 0);
        CHECK_FALSE(s.has(url));
    }

    TEST_CASE("what is purged while segments are found stays so, and none is taken for free") {
        for (const unsigned looked_at : {0u, 1u}) {
            CAPTURE(looked_at);
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.open();
            s.put_surely("http://purged/", object("http://purged/", 100));
            s.put_surely("http://there/", object("http://there/", 100));
            const std::string outdated = "http://outdated/";
            s.put_surely(outdated, object(outdated, 100, 1));
            unsigned next = 0;
            REQUIRE(eventually([&] {
                put_more(s, next);
                return !files->contents("/store/s-00000001").empty();
            }));
            s.close();
            hanging_disk disk{*files, [looked_at](operation what, std::string_view path) {
                                  return what == operation::open &&
                                         path == "/store/" + segment_name(looked_at);
                              }};
            s.begin_to_open();
            REQUIRE(eventually([&] { return disk.is_met(); }));
            s.lately->note(key_of("http://purged/"));
            s->invalidate(key_of("http://purged/"));
            (void)s.put("http://late/", object("http://late/", 100));
            s->outdate(key_of(outdated), outdated, object(outdated, 100, 2));
            stop_held_up(s, disk);
            files->set_hook({});
            s.open();
            CHECK_FALSE(s.has("http://purged/"));
            CHECK_FALSE(s.has(outdated));
            CHECK(s.has("http://there/"));
        }
    }

    TEST_CASE("what waits for room is written where a stop comes as the last segment is found") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.open();
        unsigned next = 0;
        fill_up(s, *files, next);
        s.close();
        // At the second read of the oldest segment, which is found last.
        hanging_disk disk{
            *files,
            [reads = std::make_shared<std::atomic<int>>(0)](operation what, std::string_view path) {
                return what == operation::read && path == "/store/s-00000000" && ++*reads == 2;
            }};
        s.begin_to_open();
        REQUIRE(eventually([&] { return disk.is_met(); }));
        // More than the newest segment has room for.
        const auto bytes = s.tiers->figures().capacity / s.tiers->figures().segments;
        std::string last;
        for (std::uint64_t put = 0; put <= bytes; put += 10'000) {
            last = url_of(next++);
            REQUIRE(s.put(last, object(last, 10'000)));
        }
        stop_held_up(s, disk);
        files->set_hook({});
        s.open();
        CHECK(s.has(last));
    }
}

}  // namespace reprise::proxy::cache::disk
