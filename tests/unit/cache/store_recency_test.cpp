// Memory and disk together: which of two responses is the more recent, and what becomes of the other.

#include "proxy/cache/store.hpp"
#include "tests/unit/cache/both_tiers.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_store {
namespace {

using namespace disk::test;
using namespace std::chrono_literals;

/// The same response with this Vary, of a field that no request here has.
drafted varied(drafted made, std::string_view vary) {
    const http::field line{http::field_id::vary, "Vary", vary};
    made->vary = http::read_vary({&line, 1});
    made->selecting = http::selecting_values(made->vary, {});
    return made;
}

drafted tagged(drafted made, const std::string& tag) {
    made->head = "HTTP/1.1 200 OK\r\nETag: " + tag + "\r\nContent-Length: 100\r\n";
    index_head(made);
    return made;
}

}  // namespace

TEST_SUITE("cache/store_recency") {
    TEST_CASE("what neither tier takes ends nothing that is newer") {
        both store{disk_write::admission};
        const auto url = url_of(1);
        const auto begun = store->mark(key_of(url));
        (void)store->invalidate(key_of(url), url);
        store.put(url, object(url, 100, 2));
        REQUIRE(eventually([&] { return store.on_disk(url) != nullptr; }));
        CHECK_FALSE(store->put(key_of(url), url, object(url, 100, 1), begun));
        CHECK(store.on_disk(url));
    }

    TEST_CASE("what comes from disk is not put over what is newer") {
        both store{disk_write::admission};
        const auto url = url_of(1);
        store.put(url, object(url, 100, 1));
        store.settle();
        REQUIRE(eventually([&] { return store.on_disk(url) != nullptr; }));
        const auto older = store.on_disk(url);
        const stored_ptr newer = object(url, 100, 2);
        store.put(url, newer);
        store->promote(key_of(url), url, older, 2, store->mark(key_of(url)));
        CHECK(store.in_memory(url) == newer);
    }

    TEST_CASE("an older response takes no newer one's place in memory, whenever it ends") {
        both store{disk_write::admission};
        const auto url = url_of(1);
        const auto slow = version(url, 100, 1, 0ms, 10ms);
        store.put(url, version(url, 100, 2, 20ms, 30ms));
        CHECK_FALSE(store->put(key_of(url), url, slow, store->mark(key_of(url))));
        CHECK(is_version(store.in_memory(url), url, 2));
        store.settle();
        CHECK(is_version(store.on_disk(url), url, 2));
    }

    TEST_CASE("what is on disk alone is not outdated by what is older") {
        // On the disk that gets everything, and on one that gets what leaves memory.
        for (const auto when : {disk_write::admission, disk_write::eviction}) {
            CAPTURE(when == disk_write::eviction);
            both store{when};
            const auto url = url_of(1);
            store.put(url, version(url, 100, 2, 20ms, 30ms));
            REQUIRE(store.in_memory(url));
            store.push_out(url);
            REQUIRE(is_version(store.on_disk(url), url, 2));
            const auto slow = version(url, 100, 1, 0ms, 10ms);
            (void)store->put(key_of(url), url, slow, store->mark(key_of(url)));
            CHECK(eventually([&] { return store->variants(key_of(url), url).empty(); }));
            store.settle();
            CHECK(is_version(store.on_disk(url), url, 2));
            store.open();
            CHECK(is_version(store.on_disk(url), url, 2));
        }
    }

    TEST_CASE("however soon the disk finds it older, it does not stay in memory") {
        both store{disk_write::admission};
        for (unsigned i = 0; i < 60; ++i) {
            CAPTURE(i);
            const auto url = url_of(i);
            store.put(url, version(url, 100, 2, 20ms, 30ms));
            store.push_out(url);
            // It makes all else leave memory, which takes a while.
            const auto slow = version(url, memory_bytes / 4, 1, 0ms, 10ms);
            (void)store->put(key_of(url), url, slow, store->mark(key_of(url)));
            store.settle();
            CHECK(eventually([&] { return store->variants(key_of(url), url).empty(); }));
            CHECK(is_version(store.on_disk(url), url, 2));
        }
    }

    TEST_CASE("what memory alone has outdates what is on disk, after a restart too") {
        both store{disk_write::eviction};
        const auto url = url_of(1);
        store.put(url, version(url, 100, 1, 0ms, 10ms));
        REQUIRE(store.in_memory(url));
        store.push_out(url);
        REQUIRE(is_version(store.on_disk(url), url, 1));
        store.put(url, version(url, 100, 2, 20ms, 30ms));
        store.settle();
        CHECK_FALSE(store.on_disk(url));
        store.open();
        CHECK_FALSE(store.on_disk(url));
    }

    TEST_CASE("what an earlier process stored is older than all that is asked for now") {
        both store{disk_write::admission};
        const auto url = url_of(1);
        // Its clock was ahead by a day.
        store.put(url, version(url, 100, 1, 24h, 24h + 10ms));
        store.settle();
        REQUIRE(is_version(store.on_disk(url), url, 1));
        store.open();
        const auto known = store.on_disk(url);
        REQUIRE(is_version(known, url, 1));
        CHECK(known->freshness().response_time <= resident_now());
        auto newer = object(url, 100, 2);
        newer->asked_at = newer->freshness.response_time = resident_now();
        store.put(url, newer);
        store.settle();
        CHECK(is_version(store.on_disk(url), url, 2));
    }

    // What comes between a response's leaving memory, or its coming in, and its being given to the disk:
    // whether it belongs there is asked then, and whoever leaves is told of then.
    TEST_CASE("what is stored ends what its request had by another Vary, in memory and on disk") {
        for (const bool is_large : {false, true}) {
            for (const bool is_older : {false, true}) {
                CAPTURE(is_large);
                CAPTURE(is_older);
                both store{disk_write::admission};
                const auto url = url_of(1);
                const auto key = key_of(url);
                const stored_ptr first = varied(version(url, 100, 1, 20ms, 30ms), "X-Lang");
                const auto asked = is_older ? 0ms : 40ms;
                const stored_ptr next = varied(
                    version(url, is_large ? 400'000 : 200, 2, asked, asked + 10ms), "X-Kind");
                store.put(url, first);
                store.settle();
                if (is_large) {
                    CHECK(store.put_on_disk(url, next));
                } else {
                    store.put(url, next);
                }
                store->end_older(key, url, {*next, {}, true}, nullptr);
                store.settle();
                if (!is_older) {  // were the first there, it would be found once this is not
                    const auto newest = is_large ? store.on_disk(url) : next;
                    REQUIRE(newest);
                    CHECK(store->drop(key, url, newest));
                    store.settle();
                }
                CHECK((store.in_memory(url) == first) == is_older);
                CHECK((store.on_disk(url) != nullptr) == is_older);
                store.open();
                CHECK((store.on_disk(url) != nullptr) == is_older);
            }
        }
    }

    TEST_CASE("what ends an older one by another Vary is not taken from the disk with it") {
        both store{disk_write::eviction};
        const auto url = url_of(1);
        store.put(url, version(url, 100, 1, 0ms, 10ms));  // in memory alone
        const stored_ptr next = varied(version(url, 400'000, 2, 20ms, 30ms), "X-Lang");
        CHECK(store.put_on_disk(url, next));
        store.settle();
        REQUIRE(store.on_disk(url));
        store->end_older(key_of(url), url, {*next, {}, true}, nullptr);
        CHECK_FALSE(store.in_memory(url));
        store.settle();
        REQUIRE(store.on_disk(url));
        CHECK(store.on_disk(url)->size() == 400'000);
    }

    TEST_CASE("the very same under another Vary goes too: the disk could give it back later") {
        for (const auto when : {disk_write::admission, disk_write::eviction}) {
            both store{when};
            const auto url = url_of(1);
            const stored_ptr first = tagged(version(url, 100, 1, 0ms, 10ms), "\"1\"");
            const stored_ptr next = varied(tagged(version(url, 100, 2, 20ms, 30ms), "\"1\""),
                                           "X-Lang");
            store.put(url, first);
            store.put(url, next);
            store->end_older(key_of(url), url, {*next, {}, true}, first);
            CHECK(store->drop(key_of(url), url, next));
            store.settle();
            CHECK_FALSE(store.in_memory(url));
            CHECK_FALSE(store.on_disk(url));
        }
    }

    TEST_CASE("what neither tier takes ends what its request had, but no copy of the very same") {
        for (const bool is_on_disk_alone : {false, true}) {
            for (const bool is_same : {false, true}) {
                CAPTURE(is_on_disk_alone);
                CAPTURE(is_same);
                both store{disk_write::admission};
                const auto url = url_of(1);
                const stored_ptr first = tagged(version(url, 100, 1, 0ms, 10ms), "\"1\"");
                store.put(url, first);
                store.settle();
                if (is_on_disk_alone) {
                    store.push_out(url);
                }
                const auto found = is_on_disk_alone ? store.on_disk(url) : first;
                REQUIRE(found);
                const stored_ptr next = tagged(version(url, 100, 2, 20ms, 30ms),
                                               is_same ? "\"1\"" : "\"2\"");
                store->end_older(key_of(url), url, {*next, {}, false}, found);
                store.settle();
                CHECK((store.in_memory(url) != nullptr) == (is_same && !is_on_disk_alone));
                CHECK((store.on_disk(url) != nullptr) == is_same);
                store.open();
                CHECK((store.on_disk(url) != nullptr) == is_same);
            }
        }
    }

    TEST_CASE("what the disk had is not promoted over a large newer one that it gets meanwhile") {
        for (const bool is_written : {false, true}) {
            CAPTURE(is_written);
            both store{disk_write::admission};
            const auto url = url_of(1);
            store.put(url, version(url, 100, 1, 0ms, 10ms));
            store.push_out(url);
            const auto found = store.on_disk(url);
            REQUIRE(is_version(found, url, 1));
            const auto mark = store->mark(key_of(url));
            {
                std::optional<disk::test::hanging_disk> hanging;
                if (!is_written) {
                    hanging.emplace(*store.files, std::vector{disk::test::operation::write});
                }
                CHECK(store.put_on_disk(url, version(url, 400'000, 2, 20ms, 30ms)));
                if (is_written) {
                    REQUIRE(eventually([&] { return store.on_disk(url) != nullptr; }));
                }
                store->promote(key_of(url), url, found, 2, mark);
                CHECK_FALSE(store.in_memory(url));
            }
            REQUIRE(eventually([&] { return store.on_disk(url) != nullptr; }));
            CHECK(store.on_disk(url)->size() == 400'000);
        }
    }

    TEST_CASE("a 304's new tag that the disk does not take leaves no head without it") {
        both store{disk_write::admission};
        const auto url = url_of(1), other = url_of(2);
        store.put(url, version(url, 100, 1, 0ms, 10ms));
        store.push_out(url);
        const auto current = store.on_disk(url);
        REQUIRE(current);
        store.files->fail_when([](disk::test::operation what, std::string_view path) {
            return what == disk::test::operation::write && path.starts_with("/store/s-");
        });
        store.put(other, object(other, 100));
        REQUIRE(eventually(
            [&] { return store->disk()->figures().state == disk::tier_state::reading; }));
        auto next = drafted{current->draft()};
        next->tags = {7};
        next->asked_at = version(url, 1, 1, 40ms, 40ms)->asked_at;
        next->freshness.response_time = next->asked_at + 5ms;
        (void)store->freshen(key_of(url), url, current, next, store->mark(key_of(url)));
        CHECK_FALSE(store.on_disk(url));
        store.settle();
        store.files->set_hook({});
        store.open();
        CHECK_FALSE(store.on_disk(url));
    }

    TEST_CASE("of two 304s to what is on disk the later one's head stays, whichever is put last") {
        both store{disk_write::eviction};
        const auto url = url_of(1);
        store.put(url, version(url, 100, 1, 0ms, 10ms));
        REQUIRE(store.in_memory(url));
        store.push_out(url);
        const auto current = store.on_disk(url);
        REQUIRE(current);
        const auto freshened = [&](std::chrono::milliseconds asked, std::chrono::hours lifetime) {
            auto next = drafted{current->draft()};
            next->asked_at = version(url, 1, 1, asked, asked)->asked_at;
            next->freshness.response_time = next->asked_at + 5ms;
            next->freshness.lifetime = lifetime;
            return next;
        };
        CHECK(store->freshen(
            key_of(url), url, current, freshened(40ms, 2h), store->mark(key_of(url))));
        store.settle();
        REQUIRE(store.on_disk(url)->freshness().lifetime == 2h);
        (void)store->freshen(
            key_of(url), url, current, freshened(20ms, 3h), store->mark(key_of(url)));
        store.settle();
        CHECK(store.on_disk(url)->freshness().lifetime == 2h);
        CHECK(store.in_memory(url)->freshness().lifetime == 2h);
    }
}

}  // namespace reprise::proxy::cache::test::of_store
