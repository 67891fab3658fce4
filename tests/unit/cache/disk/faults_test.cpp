// A disk that fails, fills or goes away: traffic goes on, nothing wrong is served, and the store comes
// back by itself.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/faulty_disk.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/faults") {

    TEST_CASE("reads and writes that do less than they are asked are gone on with") {
        auto files = std::make_shared<memory_files>();
        files->set_short_transfers(true);
        disk_store s{files};
        s.open();
        for (unsigned i = 0; i < 20; ++i) {
            s.put_surely(url_of(i), object(url_of(i), 1000 * i));
        }
        s.invalidate(url_of(3));
        s.open();
        for (unsigned i = 0; i < 20; ++i) {
            const auto got = s.find(url_of(i)).response;
            REQUIRE(bool{got} == (i != 3));
            CHECK((i == 3 || bytes_of(*got->content()) == body_for(url_of(i), 1000 * i)));
        }
    }

    TEST_CASE("what fails to be written is skipped, what is there is served, and it comes back") {
        for (const auto how : {boost::system::errc::io_error,
                               boost::system::errc::no_space_on_device,
                               boost::system::errc::read_only_file_system}) {
            CAPTURE(static_cast<int>(how));
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            files->fail_when(
                [](operation what, std::string_view) {
                    return what == operation::write || what == operation::reserve;
                },
                how);
            REQUIRE(s.put(url_of(2), object(url_of(2), 100)));
            REQUIRE(eventually([&] { return s->figures().state == tier_state::reading; }));
            CHECK_FALSE(s->figures().trouble.empty());
            CHECK(s->figures().write_errors > 0);
            CHECK_FALSE(s.put(url_of(3), object(url_of(3), 100)));
            const auto tries = s->figures().write_errors;
            REQUIRE(eventually([&] { return s->figures().write_errors > tries + 2; }));
            CHECK(s.has(url_of(1)));
            CHECK_FALSE(s.has(url_of(2)));
            files->set_hook({});
            REQUIRE(eventually([&] { return is_ready(s); }));
            s.put_surely(url_of(3), object(url_of(3), 100));
            CHECK(s->figures().trouble.empty());
            s.open();
            CHECK(s.has(url_of(1)));
            CHECK(s.has(url_of(3)));
        }
    }

    TEST_CASE("whichever operation fails, nothing wrong is served and all works again after it") {
        // The n-th operation fails, and all for a little while after it.
        for (unsigned n = 1; n <= 60; ++n) {
            CAPTURE(n);
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.settings.retry_after = s.settings.retry_at_most = 1ms;
            s.open();
            std::atomic<unsigned> seen{0};
            files->set_hook([&seen, n](operation what, std::string_view) {
                if (what == operation::read_cached) {
                    return error_code{};
                }
                const auto now = ++seen;
                return now >= n && now < n + 5 ? failing(boost::system::errc::io_error)
                                               : error_code{};
            });
            for (unsigned i = 0; i < 40; ++i) {
                (void)s.put(url_of(i), object(url_of(i), 3000 + 500 * i));
                if (i % 10 == 9) {
                    s.invalidate(url_of(i - 5));  // kept in the end
                }
                const auto got = s.find(url_of(i / 2)).response;
                CHECK((!got ||
                       bytes_of(*got->content()) == body_for(url_of(i / 2), 3000 + 500 * (i / 2))));
            }
            files->set_hook({});
            // It may look ready before what has failed shows; then what waits is skipped.
            REQUIRE(s.put_until_found("http://b/", 100));
            s.close();
            s.files = files->after_kill();
            s.open();
            CHECK(s.has("http://b/"));
            for (const auto i : {4u, 14u, 24u, 34u}) {
                CHECK_FALSE(s.has(url_of(i)));
            }
        }
    }

    TEST_CASE("a newer response that no segment can be begun for takes the older along") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.retry_after = s.settings.retry_at_most = 1ms;
        s.open();
        std::atomic<bool> is_full{false};
        files->fail_when(
            [&is_full](operation what, std::string_view) {
                return is_full && what == operation::open;
            },
            boost::system::errc::no_space_on_device);
        const auto url = url_of(1);
        unsigned lost = 0;
        for (unsigned version = 1; version < 1000 && lost < 5; ++version) {
            // What comes between decides which record it is that needs another segment.
            s.put_surely(url_of(2), object(url_of(2), 1000 * (version % 37)));
            s.put_surely(url, object(url, 20'000, 0));
            is_full = true;
            CHECK(s.put(url, object(url, 20'000, version)));
            REQUIRE(eventually(
                [&] { return s.has(url) || s->figures().state == tier_state::reading; }));
            is_full = false;
            REQUIRE(eventually([&] { return is_ready(s); }));
            const auto found = s.find(url).response;
            CHECK((!found || bytes_of(*found->content()) == body_for(url, 20'000, version)));
            lost += found ? 0 : 1;
            if (!found) {
                REQUIRE(eventually([&] { return s->figures().queued_purges == 0; }));
                s.open();
                CHECK_FALSE(s.has(url));
            }
        }
        CHECK(lost == 5);
    }

    TEST_CASE("what a failed write takes along is not found after a restart either") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.retry_after = s.settings.retry_at_most = 1ms;
        s.open();
        const auto url = url_of(1);
        s.put_surely(url, object(url, 20'000, 1));
        std::atomic<bool> fails{true};
        files->fail_when([&fails](operation what, std::string_view file) {
            return fails && what == operation::write &&
                   file.find("purges") == std::string_view::npos;
        });
        REQUIRE(s.put(url, object(url, 20'000, 2)));
        REQUIRE(eventually([&] { return s->figures().state == tier_state::reading; }));
        fails = false;
        REQUIRE(eventually([&] { return is_ready(s); }));
        CHECK_FALSE(s.has(url));
        REQUIRE(eventually([&] { return s->figures().queued_purges == 0; }));
        s.open();
        CHECK_FALSE(s.has(url));
    }

    TEST_CASE("what is taken in before the journal fails is found while it fails") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.settings.write_after = 200ms;  // so that both are written in one go
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        // While the first is taken in a purge comes, which is kept before the second is.
        files->set_hook([&s, come = std::make_shared<std::atomic<bool>>(false)](
                            operation what, std::string_view path) {
            if (what == operation::read && path.starts_with("/store/s-") && !come->exchange(true)) {
                s->purge(key_of("http://b/"));
            }
            return what == operation::write && path.starts_with("/store/purges")
                       ? failing(boost::system::errc::io_error)
                       : error_code{};
        });
        (void)s.put(url_of(1), object(url_of(1), 100, 1));
        (void)s.put(url_of(2), object(url_of(2), 100));
        REQUIRE(eventually([&] { return s->figures().write_errors != 0; }));
        CHECK(eventually([&] {
            const auto found = s.find(url_of(1)).response;
            return found && bytes_of(*found->content()) == body_for(url_of(1), 100, 1);
        }));
        s.open();
        const auto found = s.find(url_of(1)).response;
        CHECK((!found || bytes_of(*found->content()) == body_for(url_of(1), 100, 1)));
    }

    TEST_CASE("a newer head that fails to be written takes the older along where it allows less") {
        enum class change { shorter, tagged, longer };
        for (const auto what : {change::shorter, change::tagged, change::longer}) {
            CAPTURE(static_cast<int>(what));
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.settings.retry_after = s.settings.retry_at_most = 1ms;
            s.open();
            const auto url = url_of(1);
            s.put_surely(url, object(url, 100));
            const auto older = s.find(url).response;
            auto newer = drafted{older->draft()};
            switch (what) {
            case change::shorter: newer->freshness.lifetime = 1min; break;
            case change::tagged: newer->tags = {7}; break;
            case change::longer: newer->freshness.lifetime = 2h; break;
            }
            std::atomic<bool> fails{true};
            files->fail_when([&fails](operation how, std::string_view file) {
                return fails && how == operation::write &&
                       file.find("purges") == std::string_view::npos;
            });
            REQUIRE(s->freshen(key_of(url), url, *older, *newer, s.mark(url)));
            REQUIRE(eventually([&] { return s->figures().state == tier_state::reading; }));
            fails = false;
            REQUIRE(eventually([&] { return is_ready(s); }));
            CHECK(s.has(url) == (what == change::longer));
            REQUIRE(eventually([&] { return s->figures().queued_purges == 0; }));
            s.open();
            CHECK(s.has(url) == (what == change::longer));
        }
    }

    TEST_CASE("a newer head of what can't be read takes that along, over a restart too") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        s.put_surely(url, object(url, 100));
        const auto older = s.find(url).response;
        auto newer = drafted{older->draft()};
        newer->freshness.lifetime = 1min;
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::read && path.starts_with("/store/s-");
        });
        REQUIRE(s->freshen(key_of(url), url, *older, *newer, s.mark(url)));
        REQUIRE(eventually([&] { return s->figures().queued_bytes == 0; }));
        files->set_hook({});
        CHECK_FALSE(s.has(url));
        REQUIRE(eventually([&] { return s->figures().queued_purges == 0; }));
        s.open();
        CHECK_FALSE(s.has(url));
    }

    TEST_CASE("a purge that can't be kept now is kept when it can, and only then said to be") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        s.put_surely(url_of(2), object(url_of(2), 100));
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::sync && path.find("purges") != std::string_view::npos;
        });
        std::atomic<bool> kept{false};
        s.lately->note(key_of(url_of(1)));
        s->invalidate(key_of(url_of(1)), [&kept] { kept = true; });
        REQUIRE(eventually([&] { return s->figures().state == tier_state::reading; }));
        CHECK_FALSE(kept.load());
        CHECK_FALSE(s.has(url_of(1)));
        CHECK(s.has(url_of(2)));
        files->set_hook({});
        REQUIRE(eventually([&] { return kept.load(); }));
        const auto after = files->cut(3);
        s.go_on_with(after);
        CHECK_FALSE(s.has(url_of(1)));
    }

    TEST_CASE("what is invalidated after its writing failed stays away, though its bytes are in") {
        for (const bool is_invalidated : {false, true}) {
            CAPTURE(is_invalidated);
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.settings.retry_after = s.settings.retry_at_most = 1ms;
            s.open();
            s.put_surely(url_of(2), object(url_of(2), 10));
            s.invalidate("http://other/");  // the writer knows then that the index is whole
            // The first third of a page is written, and the rest fails: the record is in the first.
            const auto url = url_of(1);
            files->set_short_transfers(true);
            std::atomic<unsigned> writes{0};
            files->fail_when([&writes](operation what, std::string_view path) {
                return what == operation::write && path.starts_with("/store/s-") && ++writes == 2;
            });
            REQUIRE(s.put(url, object(url, 10)));
            REQUIRE(eventually([&] { return s->figures().write_errors != 0; }));
            files->set_short_transfers(false);
            files->set_hook({});
            REQUIRE(eventually([&] { return is_ready(s); }));
            CHECK_FALSE(s.has(url));
            if (is_invalidated) {
                s.invalidate(url);
            }
            s.go_on_with(files->after_kill());
            CHECK(s.has(url) == !is_invalidated);
        }
    }

    TEST_CASE("what is invalidated while its record can't be made out stays away when it can") {
        for (const bool is_invalidated : {false, true}) {
            CAPTURE(is_invalidated);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            const auto url = url_of(1);
            s.put_surely(url, object(url, 5000));
            s.invalidate("http://other/");  // the writer knows then that the index is whole
            const std::string path = "/store/s-00000000";
            const auto segment = files->contents(path);
            const auto at = segment.find(body_for(url, 5000).substr(0, 64));
            REQUIRE(at != std::string::npos);
            files->damage(path, at + 4000, "oops");
            CHECK_FALSE(s.has(url));
            files->damage(path, at + 4000, segment.substr(at + 4000, 4));
            CHECK_FALSE(s.has(url));  // it has left the index
            if (is_invalidated) {
                s.invalidate(url);
            }
            s.go_on_with(files->after_kill());
            CHECK(s.has(url) == !is_invalidated);
        }
    }

    TEST_CASE(
        "a directory that goes away is waited for, and one that is another's is not written to") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.open();
        s.put_surely(url_of(0), object(url_of(0), 100));
        std::atomic<bool> gone{true};
        files->fail_when(
            [&gone](operation what, std::string_view) { return gone && what == operation::open; },
            boost::system::errc::no_such_file_or_directory);
        REQUIRE(eventually([&, i = 1u]() mutable {
            (void)s.put(url_of(i), object(url_of(i), 10'000));
            ++i;
            return s->figures().state == tier_state::reading;
        }));
        CHECK(s.has(url_of(0)));
        gone = false;
        REQUIRE(eventually([&] { return is_ready(s); }));
        s.put_surely("http://b/", object("http://b/", 100));
    }

    TEST_CASE("with room for a few segments only, those are used again and again") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        std::atomic<unsigned> made{0};
        files->fail_when(
            [&made](operation what, std::string_view) {
                return what == operation::reserve && ++made > 5;
            },
            boost::system::errc::no_space_on_device);
        s.settings.write_queue = 128u << 10;
        s.open();
        for (unsigned i = 0; i < 400; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        s.put_surely("http://b/", object("http://b/", 100));
        CHECK(is_ready(s));
        CHECK(files->taken() < 6 * (256u << 10) + (256u << 10));
    }

    TEST_CASE("so they are where it is a new segment's header that finds no room") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        static constexpr std::string_view first_without = "/store/s-00000005";
        files->fail_when(
            [](operation what, std::string_view path) {
                return what == operation::write && path.starts_with("/store/s-") &&
                       path >= first_without;
            },
            boost::system::errc::no_space_on_device);
        s.settings.write_queue = 128u << 10;
        s.open();
        for (unsigned i = 0; i < 400; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        s.put_surely("http://b/", object("http://b/", 100));
        CHECK(is_ready(s));
        CHECK(s->figures().write_errors == 0);
        CHECK(files->contents(std::string{first_without}).empty());
    }

    TEST_CASE("a segment that can't be written is left alone when the others can") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.settings.retry_after = s.settings.retry_at_most = 1ms;
        s.open();
        const auto segments = s->figures().segments;
        const auto put_enough_for = [&](std::uint64_t count) {
            const auto until = files->written_bytes() + (count << 18);
            REQUIRE(eventually([&, i = 0u]() mutable {
                const auto url = url_of(i++ % 2000);
                (void)s.put(url, object(url, 10'000));
                return files->written_bytes() > until;
            }));
        };
        put_enough_for(segments + 1);
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::write &&
                   (path == "/store/s-00000004" || path == "/store/s-00000005");
        });
        put_enough_for(3 * segments);
        REQUIRE(eventually([&] { return is_ready(s); }));
        CHECK(s->figures().write_errors > 0);
        CHECK(s->figures().write_errors < 20);
        files->set_hook({});
        put_enough_for(2 * segments);  // it comes round, and they are used again
        CHECK(s->figures().write_errors < 20);
    }

    TEST_CASE("a full store whose disk takes no writes keeps what it has, however often it tries") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.settings.retry_after = s.settings.retry_at_most = 1ms;
        s.open();
        const auto until = files->written_bytes() + 2 * smallest_store;
        unsigned next = 0;
        const auto put_more = [&] {
            const auto url = url_of(next++);
            (void)s.put(url, object(url, 10'000));
        };
        REQUIRE(eventually([&] {
            put_more();
            return files->written_bytes() > until;
        }));
        files->fail_when([](operation what, std::string_view) { return what == operation::write; });
        REQUIRE(eventually([&] {
            put_more();
            return s->figures().state == tier_state::reading;
        }));
        const auto before = s->figures().objects;
        const auto tries = s->figures().write_errors;
        REQUIRE(eventually([&] { return s->figures().write_errors > tries + 20; }));
        CHECK(s->figures().objects + 60 > before);  // two segments' at most
        files->set_hook({});
        REQUIRE(eventually([&] { return is_ready(s); }));
        s.put_surely("http://b/", object("http://b/", 100));
    }

    TEST_CASE("purges without end while the journal fails take bounded memory, and hold") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, std::uint64_t{1} << 30};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        s.put_surely(url_of(2), object(url_of(2), 100));
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::write && path.find("purges") != std::string_view::npos;
        });
        for (unsigned i = 0; i < 70'000; ++i) {
            s->purge(key_of(i == 100 ? url_of(1) : "http://other/" + std::to_string(i)));
        }
        const auto tries = s->figures().write_errors;
        REQUIRE(eventually([&] { return s->figures().write_errors > tries + 2; }));
        CHECK(s.has(url_of(2)));
        files->set_hook({});
        REQUIRE(eventually([&] { return is_ready(s); }));
        s.invalidate("http://other/");
        CHECK(files->contents("/store/purges").size() < 1u << 20);
        CHECK(s.has(url_of(2)));
        s.open();
        CHECK_FALSE(s.has(url_of(1)));
        CHECK_FALSE(s.has(url_of(2)));  // of so many it is not known which they were
    }
}

}  // namespace reprise::proxy::cache::disk
