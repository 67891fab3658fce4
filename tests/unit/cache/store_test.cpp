// Memory and disk together: what one of them ends stays ended in the other.

#include "proxy/cache/partial_response.hpp"
#include "proxy/cache/store.hpp"
#include "tests/unit/cache/both_tiers.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_store {
namespace {

using namespace disk::test;
using namespace std::chrono_literals;

bool is_fresh(const stored_ptr& response) {
    return response && !response->purged_softly() && response->reusable_until() > wall_now();
}

}  // namespace

TEST_SUITE("cache/store") {
    TEST_CASE("what was purged by prefix while in memory does not go to disk as if it was not") {
        for (const bool hard : {true, false}) {
            CAPTURE(hard);
            both store{disk_write::eviction};
            const auto url = url_of(1);
            store.put(url, object(url, 100));
            REQUIRE(store.in_memory(url));
            store->purges().ban_prefix(
                "http://a.example/", "", hard ? purge_mode::hard : purge_mode::soft, wall_now());
            store.push_out(url);
            CHECK_FALSE(is_fresh(store.on_disk(url)));
            store.open();
            CHECK_FALSE(is_fresh(store.on_disk(url)));
        }
    }

    TEST_CASE(
        "what is purged when a look-up has just admitted it does not go to disk as if it was not") {
        enum class purge { hard, soft, hard_prefix, soft_prefix, none };
        for (const auto how :
             {purge::hard, purge::soft, purge::hard_prefix, purge::soft_prefix, purge::none}) {
            CAPTURE(static_cast<int>(how));
            both store{disk_write::admission};
            const auto url = url_of(1);
            const auto key = key_of(url);
            CHECK(store->put(key, url, object(url, 100), store->mark(key), standing::probation));
            const auto found = store->find(key, url, {});
            REQUIRE(found.just_admitted);
            const auto ban = [&](purge_mode mode) {
                store->purges().ban_prefix("http://a.example/", "", mode, wall_now());
            };
            switch (how) {
            case purge::hard: (void)store->invalidate(key, url); break;
            case purge::soft: (void)store->expire(key, url, wall_now()); break;
            case purge::hard_prefix: ban(purge_mode::hard); break;
            case purge::soft_prefix: ban(purge_mode::soft); break;
            case purge::none: break;
            }
            store->admitted(key, url, found.response, found.asked);
            store.settle();
            CHECK(is_fresh(store.on_disk(url)) == (how == purge::none));
            store.open();
            CHECK(is_fresh(store.on_disk(url)) == (how == purge::none));
        }
    }

    TEST_CASE("a soft purge is counted before the disk gives it a place in its log") {
        // Else what was asked for before could be written behind that place, and be fresh.
        struct watcher final : contents_listener {
            void held(holder,
                      const filter::key_hash&,
                      std::string_view,
                      wall_time) noexcept override {}
            void gone(holder, const filter::key_hash&) noexcept override {}
            void outdated(const filter::key_hash& key) noexcept override {
                was_counted = of->memory().invalidated().since(key, begun);
            }
            void loaded() noexcept override {}
            cache::store* of = nullptr;
            std::uint64_t begun = 0;
            bool was_counted = false;
        } watch;
        both store{disk_write::admission, &watch};
        const auto url = url_of(1);
        const auto before = store->mark(key_of(url));
        watch.of = store.made.get();
        watch.begun = before.count;
        (void)store->expire(key_of(url), url, wall_now());
        CHECK(watch.was_counted);
        (void)store->put(key_of(url), url, object(url, 100), before);
        store.settle();
        CHECK_FALSE(is_fresh(store.in_memory(url)));
        CHECK_FALSE(is_fresh(store.on_disk(url)));
    }

    TEST_CASE("what the disk's log has let go is written again when it leaves memory") {
        for (const bool varies : {false, true}) {
            CAPTURE(varies);
            both store{
                disk_write::eviction, nullptr, 0};  // the oldest leaves, whatever it is worth
            const auto url = url_of(1);
            const auto made_for = [&](std::string_view language, std::size_t size) {
                auto made = object(url, size);
                if (varies) {
                    const http::field line{http::field_id::vary, "Vary", "X-Lang"};
                    const http::field asked{http::field_id::unknown, "X-Lang", language};
                    made->vary = http::read_vary({&line, 1});
                    made->selecting = http::selecting_values(made->vary,
                                                             {&asked, language.empty() ? 0u : 1u});
                }
                return made;
            };
            store.put(url, made_for("", 10'000));
            REQUIRE(store.in_memory(url));
            store.push_out(url);
            const auto promote = [&] {
                const auto there = store.on_disk(url);
                REQUIRE(there);
                store->promote(key_of(url), url, there, 2, store->mark(key_of(url)));
                REQUIRE(store.in_memory(url));
            };
            // While the log has it, it is written no second time.
            const auto puts = store->disk()->figures().puts;
            promote();
            store.push_out(url);
            CHECK(store->disk()->figures().puts == puts);

            promote();
            for (unsigned i = 0; store.on_disk(url); ++i) {
                REQUIRE(i < 100);
                const auto other = "http://large.example/" + std::to_string(i);
                REQUIRE(store.put_on_disk(other, object(other, 500'000)));
                store.settle();
                if (varies && i == 15) {
                    REQUIRE(store.put_on_disk(url, made_for("br", 10'000)));
                    store.settle();
                }
            }
            // Another variant is no reason to think that this one is there.
            REQUIRE(store->disk()->may_hold(key_of(url)) == varies);
            REQUIRE(store.in_memory(url));
            store.push_out(url);
            CHECK(is_version(store.on_disk(url), url, 0));
        }
    }

    TEST_CASE("what is dropped from memory leaves nothing older behind it on disk") {
        for (const auto when : {disk_write::eviction, disk_write::admission}) {
            CAPTURE(when == disk_write::admission);
            both store{when};
            const auto url = url_of(1), other = url_of(2);
            store.put(url, object(url, 100, 1));
            REQUIRE(store.in_memory(url));
            store.push_out(url);
            REQUIRE(store.on_disk(url));
            const stored_ptr newer = object(url, 100, 2);
            {
                // It waits to be written, if it is to be.
                std::optional<disk::test::hanging_disk> hanging;
                if (when == disk_write::admission) {
                    hanging.emplace(*store.files, std::vector{disk::test::operation::write});
                    store.put(other, object(other, 100));
                    REQUIRE(eventually([&] { return hanging->is_met(); }));
                }
                store.put(url, newer);
                (void)store->drop(key_of(url), url, newer);
            }
            store.settle();
            CHECK_FALSE(store.in_memory(url));
            CHECK_FALSE(store.on_disk(url));
            store.open();
            CHECK_FALSE(store.on_disk(url));
        }
    }

    TEST_CASE("what is dropped from memory takes nothing newer from the disk") {
        for (const bool varies : {false, true}) {
            CAPTURE(varies);
            both store{disk_write::eviction};
            const auto url = url_of(1);
            const stored_ptr older = version(url, 100, 1, 0ms, 10ms);
            store.put(url, older);
            auto newer = version(url, 400'000, 2, 20ms, 30ms);
            if (varies) {
                const http::field line{http::field_id::vary, "Vary", "X-Lang"};
                newer->vary = http::read_vary({&line, 1});
                newer->selecting = http::selecting_values(newer->vary, {});
            }
            CHECK(store.put_on_disk(url, newer));
            store.settle();
            REQUIRE(store.on_disk(url));
            (void)store->drop(key_of(url), url, older);
            CHECK_FALSE(store.in_memory(url));
            store.settle();
            const auto there = store.on_disk(url);
            REQUIRE(there);
            CHECK(there->size() == 400'000);
            store.open();
            CHECK(store.on_disk(url));
        }
    }

    TEST_CASE("what was dropped comes back through no memory, before the writer knows and after") {
        for (const bool writer_hangs : {true, false}) {
            CAPTURE(writer_hangs);
            both store{disk_write::admission};
            const auto url = url_of(1), other = url_of(2);
            store.put(url, version(url, 100, 1, 0ms, 10ms));
            store.push_out(url);
            const auto found = store.on_disk(url), seen = store.on_disk(url);
            REQUIRE(found);
            REQUIRE(seen);
            auto next = drafted{seen->draft()};
            next->asked_at = version(url, 1, 1, 40ms, 40ms)->asked_at;
            next->freshness.response_time = next->asked_at + 5ms;
            next->freshness.lifetime = 2h;
            const auto mark = store->mark(key_of(url));
            {
                std::optional<disk::test::hanging_disk> hanging;
                if (writer_hangs) {
                    hanging.emplace(*store.files, std::vector{disk::test::operation::write});
                    store.put(other, object(other, 100));
                    REQUIRE(eventually([&] { return hanging->is_met(); }));
                }
                (void)store->drop(key_of(url), url, found);
                if (!writer_hangs) {
                    store.settle();
                }
                CHECK_FALSE(store.on_disk(url));
                store->promote(key_of(url), url, seen, 2, mark);
                CHECK_FALSE(store.in_memory(url));
                CHECK_FALSE(store->freshen(key_of(url), url, seen, next, mark));
                CHECK_FALSE(store.in_memory(url));
                CHECK_FALSE(store.on_disk(url));
            }
            store.settle();
            CHECK_FALSE(store.on_disk(url));
            store.put(url, version(url, 100, 2, 60ms, 70ms));
            CHECK(is_version(store.in_memory(url), url, 2));
            store.settle();
            CHECK(is_version(store.on_disk(url), url, 2));
        }
    }

    TEST_CASE("with what was found on disk its copy in memory is dropped, a freshened one is not") {
        for (const bool is_freshened : {false, true}) {
            CAPTURE(is_freshened);
            both store{disk_write::admission};
            const auto url = url_of(1);
            store.put(url, version(url, 100, 1, 0ms, 10ms));
            store.push_out(url);
            const auto found = store.on_disk(url), promoted = store.on_disk(url);
            const auto mark = store->mark(key_of(url));
            store->promote(key_of(url), url, promoted, 2, mark);
            REQUIRE(store.in_memory(url) == promoted);
            if (is_freshened) {
                auto next = drafted{promoted->draft()};
                next->asked_at = version(url, 1, 1, 40ms, 40ms)->asked_at;
                next->freshness.response_time = next->asked_at + 5ms;
                next->freshness.lifetime = 2h;
                REQUIRE(store->freshen(key_of(url), url, promoted, next, mark));
            }
            CHECK(store->drop(key_of(url), url, found));
            CHECK((store.in_memory(url) != nullptr) == is_freshened);
            CHECK_FALSE(store.on_disk(url));
        }
    }

    TEST_CASE(
        "a part of what is newer leaves nothing older behind it on disk, one of the same does") {
        for (const auto when : {disk_write::eviction, disk_write::admission}) {
            for (const std::string tag : {"\"old\"", "\"new\""}) {
                CAPTURE(tag);
                both store{when};
                const auto url = url_of(1);
                auto whole = object(url, 100, 1);
                whole->head += "ETag: \"old\"\r\n";
                index_head(whole);
                store.put(url, whole);
                REQUIRE(store.in_memory(url));
                store.push_out(url);
                REQUIRE(store.on_disk(url));
                auto part = made_of_part("HTTP/1.1 206 Partial Content\r\nETag: " + tag +
                                             "\r\nContent-Range: bytes 0-3/100\r\n",
                                         {{0, 3}, 100},
                                         test::body_of("abcd"));
                part.asked_at = resident_now();
                part.freshness = whole->freshness;
                part.freshness.response_time = resident_now();
                store.put(url, stored_response::make(part));
                store.push_out(url);
                const bool is_of_the_same = tag == "\"old\"";
                CHECK((store.on_disk(url) != nullptr) == is_of_the_same);
                store.open();
                CHECK((store.on_disk(url) != nullptr) == is_of_the_same);
            }
        }
    }

    TEST_CASE(
        "what was purged before a restart is known to have been, for what others hold of it") {
        both store{disk_write::admission};
        const auto hard = url_of(1), soft = url_of(2), never = url_of(3);
        for (const auto& url : {hard, soft, never}) {
            store.put(url, object(url, 100, 1));
        }
        store.settle();
        const auto before = steady_now();
        const auto since = [&](const std::string& url, steady_time moment) {
            return store->invalidated_since(key_of(url), url, {}, moment);
        };
        CHECK_FALSE(since(hard, before - 1h));
        (void)store->invalidate(key_of(hard), hard);
        (void)store->expire(key_of(soft), soft, wall_now());
        store.settle();
        store.open();
        CHECK(since(hard, before));
        CHECK(since(soft, before));
        CHECK_FALSE(since(never, before - 1h));
        CHECK_FALSE(since(hard, steady_now() + 2s));  // what they have from now on is welcome
        // Where purges may be lost anything may have been purged.
        store.made.reset();
        store.files->damage("/store/purges", 40, "xx");
        store.open();
        CHECK(since(never, before));
    }

    TEST_CASE("what was purged is known to have been, however far behind the clock was then") {
        both store{disk_write::admission};
        const auto url = url_of(1);
        const auto key = key_of(url);
        const auto an_hour_behind = wall_now() - 1h;
        (void)store->expire(key, url, an_hour_behind);
        store->purges().ban_prefix("http://b.example/", "", purge_mode::soft, an_hour_behind);
        // A sibling's, made ten minutes ago.
        const auto moment = steady_now() - 10min;
        CHECK(store->invalidated_since(key, url, {}, moment));
        CHECK(
            store->invalidated_since(key_of("http://b.example/"), "http://b.example/", {}, moment));
        CHECK_FALSE(store->invalidated_since(key_of(url_of(2)), url_of(2), {}, moment));
    }

    TEST_CASE(
        "a restart knows of a purge of what was nowhere here, and of no unsafe method on it") {
        both store{disk_write::admission};
        const auto first = url_of(1), by_method = url_of(2), by_order = url_of(3);
        (void)store->invalidate(key_of(first), first);
        store.settle();  // the disk knows then that its index is whole
        const auto before = steady_now();
        (void)store->invalidate(key_of(by_method), by_method);
        (void)store->purge(key_of(by_order), by_order);
        store.settle();
        CHECK(store->invalidated_since(key_of(by_method), by_method, {}, before));
        store.open();
        CHECK(store->invalidated_since(key_of(by_order), by_order, {}, before));
        CHECK_FALSE(store->invalidated_since(key_of(by_method), by_method, {}, before));
    }

    TEST_CASE(
        "what has become too large for memory outdates what is on disk, after a restart too") {
        for (const bool over : {false, true}) {
            CAPTURE(over);
            both store{disk_write::eviction};
            const auto url = url_of(1);
            const auto key = key_of(url);
            store.put(url, version(url, 100, 1, 0ms, 10ms));
            REQUIRE(store.in_memory(url));
            store.push_out(url);
            REQUIRE(is_version(store.on_disk(url), url, 1));
            store->memory().set_capacity(8'000);
            const stored_ptr larger = version(url, 10'000, 2, 20ms, 30ms);
            const bool put = over ? store->put_over(key, url, nullptr, larger, store->mark(key))
                                  : store->put(key, url, larger, store->mark(key));
            CHECK_FALSE(put);
            store.settle();
            CHECK_FALSE(store.on_disk(url));
            store.open();
            CHECK_FALSE(store.on_disk(url));
        }
    }

    TEST_CASE(
        "who lacks memory for what leaves does not keep what is on disk from being outdated") {
        both store{disk_write::eviction};
        const auto url = url_of(1);
        store.put(url, version(url, 100, 1, 0ms, 10ms));
        REQUIRE(store.in_memory(url));
        store.push_out(url);
        REQUIRE(is_version(store.on_disk(url), url, 1));
        unsigned told = 0;
        store->on_eviction([&told](const evicted_response&) {
            ++told;
            throw std::bad_alloc{};
        });
        store.put(url, version(url, memory_bytes / 2, 2, 20ms, 30ms));
        CHECK(told > 1);
        store.settle();
        CHECK_FALSE(store.on_disk(url));
    }

    TEST_CASE("what is outrun on its way from memory to the disk does not stay there") {
        enum class meanwhile { newer, older, dropped };
        for (const auto what : {meanwhile::newer, meanwhile::older, meanwhile::dropped}) {
            CAPTURE(static_cast<int>(what));
            both store{disk_write::eviction};
            const auto url = url_of(1);
            const auto key = key_of(url);
            const stored_ptr leaving = version(url, 100, 2, 20ms, 30ms);
            store.put(url, leaving);
            REQUIRE(store.in_memory(url));
            unsigned times = 0;
            store->keep_on_disk([&](std::string_view asked) {
                if (asked != url || ++times != 1) {
                    return true;
                }
                const auto put = [&](const stored_ptr& one) {
                    return store->put(key, url, one, store->mark(key));
                };
                switch (what) {
                case meanwhile::newer: CHECK(put(version(url, 100, 3, 40ms, 50ms))); break;
                case meanwhile::older: CHECK_FALSE(put(version(url, 100, 1, 0ms, 10ms))); break;
                case meanwhile::dropped: (void)store->drop(key, url, leaving); break;
                }
                return true;
            });
            store.push_out(url);
            REQUIRE(times != 0);
            // The newer one was asked for by nobody, and is not written.
            if (what == meanwhile::older) {
                CHECK(is_version(store.on_disk(url), url, 2));
            } else {
                CHECK_FALSE(store.on_disk(url));
            }
            store.open();
            CHECK((store.on_disk(url) != nullptr) == (what == meanwhile::older));
        }
    }

    TEST_CASE("what memory refuses as older, or has given up by then, is not written either") {
        for (const bool is_in_memory : {false, true}) {
            CAPTURE(is_in_memory);
            both store{disk_write::admission};
            const auto url = url_of(1);
            const auto key = key_of(url);
            unsigned times = 0;
            const auto outrun = [&] {
                if (++times == 1) {
                    CHECK(store->put(key,
                                     url,
                                     version(url, 100, 2, 20ms, 30ms),
                                     store->mark(key),
                                     standing::probation));
                }
            };
            store->keep_on_disk([&](std::string_view asked) {
                if (!is_in_memory && asked == url) {
                    outrun();
                }
                return true;
            });
            store->on_eviction([&](const evicted_response&) {
                if (is_in_memory) {
                    outrun();
                }
            });
            for (unsigned i = 0; is_in_memory && store->memory().room() > 4'000; ++i) {
                const auto other = "http://other.example/" + std::to_string(i);
                store.put(other, object(other, 1'000));
            }
            REQUIRE(times == 0);
            (void)store->put(key, url, version(url, 10'000, 1, 0ms, 10ms), store->mark(key));
            REQUIRE(times != 0);
            CHECK(is_version(store.in_memory(url), url, 2));
            store.settle();
            CHECK_FALSE(store.on_disk(url));
            store.open();
            CHECK_FALSE(store.on_disk(url));
        }
    }

    TEST_CASE("what is outrun as it is admitted out of probation is not written") {
        both store{disk_write::admission};
        const auto url = url_of(1);
        const auto key = key_of(url);
        const auto put = [&](const stored_ptr& one) {
            CHECK(store->put(key, url, one, store->mark(key), standing::probation));
        };
        put(version(url, 100, 1, 0ms, 10ms));
        const auto found = store->find(key, url, {});
        REQUIRE(found.just_admitted);
        put(version(url, 100, 2, 20ms, 30ms));
        store->admitted(key, url, found.response, found.asked);
        store.settle();
        CHECK(is_version(store.in_memory(url), url, 2));
        CHECK_FALSE(store.on_disk(url));
    }

    TEST_CASE(
        "a large body that ends late takes the place of nothing newer, and of all that is older") {
        both store{disk_write::eviction};
        const auto url = url_of(1);
        store.put(url, version(url, 100, 2, 20ms, 30ms));
        CHECK_FALSE(store.put_on_disk(url, version(url, 400'000, 1, 0ms, 10ms)));
        CHECK(is_version(store.in_memory(url), url, 2));
        CHECK(store.put_on_disk(url, version(url, 400'000, 3, 40ms, 50ms)));
        CHECK_FALSE(store.in_memory(url));
        store.settle();
        CHECK(store.on_disk(url));
    }
}

}  // namespace reprise::proxy::cache::test::of_store
