// Memory that ends for a moment on one of the store's threads: the program goes on, nothing is lost but what a failing
// disk would lose, and the store comes back by itself.

#include "proxy/base/sanitized.hpp"
#include "proxy/cache/disk/files.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/cache/disk/faulty_disk.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

using meets = std::function<bool(operation, std::string_view path)>;

// A sanitizer's build tries every other allocation, for time.
constexpr unsigned step = heap_is_watched ? 2 : 1;

/// Memory ends for the thread that does the first operation to meet the condition: it allocates `still` times more, and
/// is refused then, `refused` times.
class shortage {
public:
    shortage(memory_files& files, meets condition, unsigned still, unsigned refused = 1) {
        files.set_hook([here = here_, condition = std::move(condition), still, refused](
                           operation what, std::string_view path) {
            if (condition(what, path) && !here->met.exchange(true)) {
                here->lack.emplace(still, refused);
            }
            return error_code{};
        });
    }

    [[nodiscard]] bool is_met() const { return here_->met; }

private:
    struct state {
        std::atomic<bool> met{false};
        std::optional<net::memory_ends> lack;
    };
    std::shared_ptr<state> here_ =
        std::make_shared<state>();  // the hook's too, which may outlive this
};

bool is_of_segment(std::string_view path) {
    return path.starts_with("/store/s-");
}

meets any(operation wanted) {
    return [wanted](operation what, std::string_view) { return what == wanted; };
}

drafted spoken(std::string_view url, std::string_view language) {
    auto made = object(url, 300);
    const http::field vary{http::field_id::vary, "Vary", "Accept-Language"};
    made->vary = http::read_vary({&vary, 1});
    const http::field line{http::field_id::accept_language, "Accept-Language", language};
    made->selecting = http::selecting_values(made->vary, {&line, 1});
    return made;
}

/// Nothing waits for the writer, and it writes.
bool is_idle(disk_store& s) {
    const auto now = s->figures();
    return now.state == ready && now.queued_bytes == 0 && now.queued_purges == 0 &&
           now.behind.count() == 0;
}

struct deaf final : contents_listener {
    void held(holder, const filter::key_hash&, std::string_view, wall_time) noexcept override {}
    void gone(holder, const filter::key_hash&) noexcept override {}
    void outdated(const filter::key_hash&) noexcept override {}
    void loaded() noexcept override {}
};

/// It may be the one for which memory ends: then it is put again.
bool is_put_in_the_end(disk_store& s, std::string_view url, std::size_t size) {
    return eventually([&, looks = 0u]() mutable {
        const auto found = s.find(url).response;
        if (found && found->size() == size) {
            return true;
        }
        if (looks++ % 64 == 0) {
            (void)s.put(url, object(url, size));
        }
        return false;
    });
}

bool is_fresh_now(const stored_response& one) {
    return http::fresh_until(one.freshness()) > resident_now();
}

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

}  // namespace

TEST_SUITE("cache/disk/no_memory") {

    TEST_CASE("an operation of the writer's that lacks memory is trouble, and is over soon") {
        for (const auto what :
             {operation::open, operation::write, operation::sync, operation::reserve}) {
            CAPTURE(static_cast<int>(what));
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.settings.retry_after = s.settings.retry_at_most = 500ms;
            s.open();
            const shortage lack{*files, any(what), 0};
            (void)s.put(url_of(1), object(url_of(1), 100));
            REQUIRE(eventually([&] { return s->figures().write_errors == 1; }));
            CHECK(lack.is_met());
            REQUIRE(eventually([&] { return is_idle(s); }));
            CHECK(s->figures().trouble.empty());
            s.put_surely(url_of(1), object(url_of(1), 100));
            s.open();
            CHECK(s.has(url_of(1)));
        }
    }

    TEST_CASE(
        "whichever allocation fails on the writer's thread, it goes on, and nothing is lost") {
        unsigned troubled = 0;
        for (unsigned still = 0; still < 90; still += step) {  // of about 60
            CAPTURE(still);
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.settings.retry_after = s.settings.retry_at_most = 1ms;
            s.tells(std::make_shared<deaf>());
            s.open();
            for (unsigned i = 0; i < 6; ++i) {
                s.put_surely(url_of(i), object(url_of(i), 100 + 2000 * i));
            }
            const auto current = s.find(url_of(1)).response;
            const auto dropped = s.find(url_of(3)).response;
            REQUIRE((current && dropped));
            const shortage lack{*files, any(operation::write), still};

            // One of everything that the writer does.
            std::atomic<unsigned> kept{0};
            const auto count = [&kept] { ++kept; };
            (void)s.put(url_of(10), object(url_of(10), 3000));
            (void)s.put(url_of(11), object(url_of(11), 100'000));
            (void)s.put(url_of(12), spoken(url_of(12), "de"));
            (void)s.put(url_of(12), spoken(url_of(12), "en"));
            auto newer = drafted{current->draft()};
            newer->freshness.lifetime = 1min;
            const bool is_taken = s->freshen(
                key_of(url_of(1)), url_of(1), *current, *newer, s.mark(url_of(1)));
            s->outdate(key_of(url_of(0)), url_of(0), object(url_of(0), 10, 1));
            s.lately->note(key_of(url_of(2)));
            s->invalidate(key_of(url_of(2)), count);
            (void)s->drop(key_of(url_of(3)), *dropped);
            s->purge(key_of(url_of(4)), count);
            s->expire(key_of(url_of(5)), resident_now(), count);
            s.purges->ban_prefix("http://b/", "", purge_mode::hard, wall_now());
            s->keep_bans(count);
            (void)s.put(url_of(2), object(url_of(2), 700, 1));

            REQUIRE(eventually([&] { return kept == 4; }));
            REQUIRE(eventually([&] { return is_idle(s); }));
            troubled += s->figures().write_errors != 0 ? 1 : 0;
            CHECK(s->figures().damaged == 0);
            const auto is_as_it_was_left = [&](bool restarted) {
                CAPTURE(restarted);
                CHECK_FALSE(s.has(url_of(3)));
                CHECK_FALSE(s.has(url_of(4)));
                const auto again = s.find(url_of(2)).response;
                CHECK((!again || bytes_of(*again->content()) == body_for(url_of(2), 700, 1)));
                const auto fresh = s.find(url_of(1)).response;
                CHECK((!fresh || !is_taken || fresh->freshness().lifetime == 1min));
                const auto stale = s.find(url_of(5)).response;
                CHECK((!stale || !is_fresh_now(*stale)));
                CHECK_FALSE(s.has(url_of(0)));
                CHECK(s->figures().damaged == 0);
            };
            is_as_it_was_left(false);
            // What was under way is not hidden for good.
            REQUIRE(is_put_in_the_end(s, url_of(10), 500));
            REQUIRE(is_put_in_the_end(s, url_of(11), 90'000));
            s.close();
            s.files = files->after_kill();
            s.open();
            is_as_it_was_left(true);
            const auto small = s.find(url_of(10)).response;
            const auto extended = s.find(url_of(11)).response;
            REQUIRE((small && extended));
            CHECK(whole_body(*small) == body_for(url_of(10), 500));
            CHECK(whole_body(*extended) == body_for(url_of(11), 90'000));
        }
        CHECK(troubled > 20);
    }

    TEST_CASE(
        "whichever fails where room is to be had from what is stored, room is had in the end") {
        unsigned troubled = 0;
        for (const auto still : {0u, 1u, 2u, 3u, 5u, 8u, 13u, 21u, 34u, 55u, 89u}) {
            CAPTURE(still);
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.settings.write_queue = 256u << 10;
            s.settings.carry = 0.5;
            s.settings.retry_after = s.settings.retry_at_most = 1ms;
            s.open();
            unsigned next = 0;
            const auto last = "/store/" + segment_name(s->figures().segments - 1);
            REQUIRE(eventually([&] {
                for (unsigned i = 0; i < 16; ++i) {
                    put_more(s, next);
                }
                return !files->contents(last).empty();
            }));
            const shortage lack{*files, any(operation::open), still};
            const auto until = files->written_bytes() + 3 * (256u << 10);
            REQUIRE(eventually([&] {
                put_more(s, next);
                return files->written_bytes() > until;
            }));
            CHECK(lack.is_met());
            REQUIRE(s.put_until_found("http://b/", 100));
            REQUIRE(eventually([&] { return is_idle(s); }));
            troubled += s->figures().write_errors != 0 ? 1 : 0;
            s.open();
            CHECK(s.has("http://b/"));
            CHECK(s->figures().damaged == 0);
            CHECK(s->figures().objects > 100);
        }
        CHECK(troubled > 2);
    }

    TEST_CASE("a purge that memory ends for just before the end is kept") {
        for (unsigned still = 0; still < 40; ++still) {
            CAPTURE(still);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            s.put_surely(url_of(2), object(url_of(2), 100));
            const shortage lack{*files, any(operation::write), still};
            (void)s.put(url_of(3), object(url_of(3), 100));
            s.lately->note(key_of(url_of(1)));
            s->invalidate(key_of(url_of(1)));
            s.open();
            CHECK(lack.is_met());
            CHECK_FALSE(s.has(url_of(1)));
            CHECK(s.has(url_of(2)));
        }
    }

    TEST_CASE(
        "whoever asks for the store while memory ends has it, or hears that it is not to be had") {
        unsigned lent = 0;
        for (unsigned still = 0; still < 40; still += 3) {
            CAPTURE(still);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.settings.retry_after = s.settings.retry_at_most = 1ms;
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            const shortage lack{*files, any(operation::write), still};
            (void)s.put(url_of(2), object(url_of(2), 100));
            if (s->lend(tests::patience).empty()) {
                ++lent;
                REQUIRE(s->take_back());
            }
            REQUIRE(s.put_until_found("http://b/", 100));
            CHECK(s.has(url_of(1)));
        }
        CHECK(lent > 0);
    }

    TEST_CASE("what there is no memory to load is loaded when there is some") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.tells(std::make_shared<deaf>());
        s.open();
        for (unsigned i = 0; i < 60; ++i) {
            s.put_surely(url_of(i), object(url_of(i), 10'000));
        }
        for (unsigned still = 0; still < 100; still += 1 + still / 16) {
            CAPTURE(still);
            s.close();
            const shortage lack{*files,
                                [](operation what, std::string_view path) {
                                    return what == operation::open && is_of_segment(path);
                                },
                                still,
                                3};
            s.open();
            CHECK(lack.is_met());
            CHECK(s->figures().objects == 60);
            CHECK(s->figures().read_errors == 0);
            for (unsigned i = 0; i < 60; i += 7) {
                CHECK(s.has(url_of(i)));
            }
            files->set_hook({});
        }
    }

    TEST_CASE("a read that lacks memory is absent, and there the next time") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, 64u << 20};
        s.open();
        const std::string of_extents = "http://large/";
        const auto content = body_for(of_extents, 600'000);
        s.put_surely(url_of(1), object(url_of(1), 5000));
        s.put_surely(of_extents, object(of_extents, content.size()));
        files->set_cold(true);
        unsigned failed = 0;
        for (unsigned still = 0; still < 20; ++still) {
            CAPTURE(still);
            // Each read but the first takes memory of the thread that does it.
            const shortage lack{*files, any(operation::read), still};
            for (unsigned i = 0; i < 10; ++i) {
                const auto got = s.find(url_of(1)).response;
                failed += got ? 0 : 1;
                CHECK((!got || bytes_of(*got->content()) == body_for(url_of(1), 5000)));
            }
            CHECK(lack.is_met());
            CHECK(eventually([&] { return s.has(url_of(1)); }));
            const auto head = s.find(of_extents).response;
            const auto body = head ? whole_body(*head) : std::nullopt;
            CHECK((!body || *body == content));
            CHECK(eventually([&] {
                const auto again = s.find(of_extents).response;
                return again && whole_body(*again) == content;
            }));
        }
        CHECK(failed > 0);
        CHECK(s->figures().damaged == 0);
    }

    TEST_CASE("a drop that there is no memory for is refused, as one that there is no room for") {
        unsigned refused = 0;
        for (unsigned still = 0; still < 8; ++still) {
            CAPTURE(still);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            const auto found = s.find(url_of(1)).response;
            REQUIRE(found);
            const auto key = key_of(url_of(1));
            bool is_dropped = false;
            bool threw = false;
            {
                const net::memory_ends lack{still, 1};
                try {
                    is_dropped = s->drop(key, *found);
                } catch (const std::bad_alloc&) {
                    threw = true;
                }
            }
            CHECK_FALSE(threw);
            refused += is_dropped ? 0 : 1;
            if (!is_dropped) {
                s.invalidate(url_of(1));
            }
            REQUIRE(eventually([&] { return is_idle(s); }));
            s.open();
            CHECK_FALSE(s.has(url_of(1)));
        }
        CHECK(refused > 0);
    }

    TEST_CASE("a purge that there is no memory to note is noted whole, or not at all") {
        unsigned threw = 0;
        for (unsigned still = 0; still < 20; ++still) {
            CAPTURE(still);
            const bool is_soft = still % 2 == 0;
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            std::atomic<unsigned> kept{0};
            std::function<void()> count = [&kept] { ++kept; };
            const auto key = key_of(url_of(1));
            const auto now = resident_now();
            bool is_noted = true;
            {
                const net::memory_ends lack{still / 2, 1};
                try {
                    if (is_soft) {
                        s->expire(key, now, std::move(count));
                    } else {
                        s->purge(key, std::move(count));
                    }
                } catch (const std::bad_alloc&) {
                    is_noted = false;
                }
            }
            // It holds all the same.
            const auto found = s.find(url_of(1)).response;
            CHECK((!found || (is_soft && !is_fresh_now(*found))));
            CHECK(eventually([&] { return s->figures().queued_purges == 0; }));
            CHECK(eventually([&] { return kept == (is_noted ? 1 : 0); }));
            threw += is_noted ? 0 : 1;
            // And concerns nothing that comes later.
            s.put_surely(url_of(1), object(url_of(1), 100));
            CHECK(is_fresh_now(*s.find(url_of(1)).response));
        }
        CHECK(threw > 0);
    }

    TEST_CASE(
        "what was taken in when memory ended takes the place of what is older at a stop too") {
        unsigned newer = 0;
        for (unsigned still = 0; still < 12; still += step) {
            CAPTURE(still);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.settings.write_after = 200ms;  // so that both are written in one go
            s.settings.retry_after = s.settings.retry_at_most = 1h;
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            s.put_surely(url_of(2), object(url_of(2), 100));
            // The writer reads what there is of each before it takes in what is newer.
            const shortage lack{*files,
                                [reads = std::make_shared<std::atomic<unsigned>>(0)](
                                    operation what, std::string_view path) {
                                    return what == operation::read && is_of_segment(path) &&
                                           ++*reads == 2;
                                },
                                still};
            (void)s.put(url_of(1), object(url_of(1), 100, 1));
            (void)s.put(url_of(2), object(url_of(2), 100, 1));
            REQUIRE(eventually([&] { return s->figures().queued_bytes == 0; }));
            s.open();
            CHECK(lack.is_met());
            const auto first = s.find(url_of(1)).response;
            const auto second = s.find(url_of(2)).response;
            CHECK((!first || bytes_of(*first->content()) == body_for(url_of(1), 100, 1)));
            CHECK((!second || bytes_of(*second->content()) == body_for(url_of(2), 100, 1)));
            newer += first ? 1 : 0;
        }
        CHECK(newer > 0);
    }

    TEST_CASE(
        "what a failed write takes along goes at a stop, though memory ended before it went") {
        for (unsigned refused = 1; refused < 8; ++refused) {
            CAPTURE(refused);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.settings.retry_after = s.settings.retry_at_most = 1h;
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            // The write that meets this fails for that itself.
            const shortage lack{*files,
                                [](operation what, std::string_view path) {
                                    return what == operation::write && is_of_segment(path);
                                },
                                0,
                                refused};
            (void)s.put(url_of(1), object(url_of(1), 100, 1));
            REQUIRE(eventually([&] { return s->figures().write_errors != 0; }));
            s.open();
            CHECK(lack.is_met());
            CHECK_FALSE(s.has(url_of(1)));
        }
    }

    TEST_CASE("what the system itself lacks memory for says nothing of the store") {
        const auto lacks_twice = [](memory_files& files, const meets& condition) {
            files.fail_when(
                [condition, times = std::make_shared<std::atomic<unsigned>>(0)](
                    operation what, std::string_view path) {
                    return condition(what, path) && times->fetch_add(1) < 2;
                },
                boost::system::errc::not_enough_memory);
        };
        for (const auto wanted : {operation::open, operation::read}) {
            CAPTURE(static_cast<int>(wanted));
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.open();
            for (unsigned i = 0; i < 60; ++i) {
                s.put_surely(url_of(i), object(url_of(i), 10'000));
            }
            s.close();
            lacks_twice(*files, [wanted](operation what, std::string_view path) {
                return what == wanted && is_of_segment(path);
            });
            s.open();
            CHECK(s->figures().objects == 60);
            CHECK(s->figures().read_errors == 0);
        }
        // The journal, which a failure has made to be written anew.
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        s.put_surely(url_of(2), object(url_of(2), 100));
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::write && path.starts_with("/store/purges");
        });
        s->purge(key_of(url_of(1)));
        REQUIRE(eventually([&] { return s->figures().write_errors != 0; }));
        const auto any_of_journal = [](operation what, std::string_view path) {
            return what == operation::read && path == "/store/purges";
        };
        lacks_twice(*files, any_of_journal);
        REQUIRE(eventually([&] { return is_idle(s); }));
        s.open();
        CHECK_FALSE(s.has(url_of(1)));
        CHECK(s.has(url_of(2)));
        s.close();
        files->fail_when(any_of_journal, boost::system::errc::not_enough_memory);
        CHECK_THROWS_AS(s.begin_to_open(), std::bad_alloc);
        for (const std::string super : {"/store/store", "/store/store.copy"}) {
            CAPTURE(super);
            files->fail_when(
                [&super](operation what, std::string_view path) {
                    return what == operation::read && path == super;
                },
                boost::system::errc::not_enough_memory);
            CHECK_THROWS_AS(s.begin_to_open(), std::bad_alloc);
            files->set_hook({});
        }
        s.open();
        CHECK(s.has(url_of(2)));
    }

    TEST_CASE("what is worth it is carried in time though memory ended when it was to be chosen") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.settings.retry_after = s.settings.retry_at_most = 1ms;
        s.open();
        s.put_surely("http://hot/", object("http://hot/", 5000));
        for (unsigned i = 0; i < 8; ++i) {
            CHECK(s.has("http://hot/"));
        }
        // Nothing else reads while nothing is looked up.
        const shortage lack{*files,
                            [](operation what, std::string_view path) {
                                return what == operation::read && is_of_segment(path);
                            },
                            0};
        unsigned next = 0;
        REQUIRE(eventually([&] {
            put_more(s, next);
            return lack.is_met();
        }));
        REQUIRE(eventually([&] { return is_idle(s); }));
        const auto until = files->written_bytes() + 2 * (256u << 10);
        REQUIRE(eventually([&] {
            put_more(s, next);
            return files->written_bytes() > until;
        }));
        CHECK(s->figures().carried > 0);
        CHECK(s.has("http://hot/"));
    }

    TEST_CASE("a file or a list that there is no memory for leaves no descriptor open") {
        const tests::temp_dir here;
        const auto path = here.write("file", "text");
        const auto files = system_files();
        const auto directory = here.path().string();
        unsigned refused = 0;
        const auto before = open_descriptors();
        for (unsigned still = 0; still < 6; ++still) {
            const net::memory_ends lack{still, 1};
            try {
                (void)files->open(path, open_mode::update);
                (void)files->list(directory);
            } catch (const std::bad_alloc&) {
                ++refused;
            }
        }
        CHECK(refused > 0);
        CHECK(open_descriptors() == before);
    }
}

}  // namespace reprise::proxy::cache::disk
