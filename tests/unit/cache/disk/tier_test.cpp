#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/memory/tags.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

drafted variant(std::string_view url,
                std::string_view vary,
                http::field_list request,
                unsigned version) {
    auto made = object(url, 500, version);
    const http::field line{http::field_id::vary, "Vary", vary};
    made->vary = http::read_vary({&line, 1});
    made->selecting = http::selecting_values(made->vary, request);
    return made;
}

std::array<http::field, 1> language(std::string_view value) {
    return {http::field{http::field_id::accept_language, "Accept-Language", value}};
}

}  // namespace

TEST_SUITE("cache/disk/tier") {

    TEST_CASE("what is put is found, byte for byte and fact for fact") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        for (const std::size_t size : {0u, 1u, 1000u, 20'000u}) {
            const auto url = url_of(size);
            const auto put = object(url, size);
            s.put_surely(url, put);
            const auto got = s.find(url);
            REQUIRE(got.what == lookup::present);
            CHECK(bytes_of(*got.response->content()) == body_for(url, size));
            CHECK(got.response->head() == put->head);
            CHECK(got.response->freshness() == put->freshness);
            CHECK(got.response->reusable_until() == put->reusable_until);
            CHECK(got.response->status() == 200);
            CHECK(got.response->status_line_size() == put->status_line_size);
            CHECK(got.response->length_at() == put->length_at);
        }
        CHECK(s.find("http://a.example/never").what == lookup::absent);
        CHECK(s->figures().objects == 4);
    }

    TEST_CASE("a restart finds what there was, after a clean end and after a kill") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto secret = s->secret().seed();
        for (unsigned i = 0; i < 50; ++i) {
            s.put_surely(url_of(i), object(url_of(i), 100 * i));
        }
        const auto killed = files->after_kill();
        for (const bool kill : {false, true}) {
            CAPTURE(kill);
            s.close();
            s.files = kill ? killed : files;
            s.open();
            CHECK(s->secret().seed() == secret);
            CHECK(s->figures().objects == 50);
            for (unsigned i = 0; i < 50; ++i) {
                const auto got = s.find(url_of(i));
                REQUIRE(got.what == lookup::present);
                CHECK(bytes_of(*got.response->content()) == body_for(url_of(i), 100 * i));
            }
            s.put_surely("http://b/", object("http://b/", 10));
            CHECK(s.has("http://b/"));
        }
    }

    TEST_CASE("a later response takes the place of an earlier one, over restarts too") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        for (unsigned version = 0; version < 5; ++version) {
            s.put_surely(url_of(1), object(url_of(1), 300, version));
        }
        for (int i = 0; i < 2; ++i) {
            CHECK(bytes_of(*s.find(url_of(1)).response->content()) == body_for(url_of(1), 300, 4));
            CHECK(s->figures().objects == 1);
            s.open();
        }
    }

    TEST_CASE("uses are counted since an object was written") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 10));
        (void)s.find(url_of(1));
        const auto before = s.uses;
        (void)s.find(url_of(1));
        CHECK(s.uses == before + 1);
    }

    TEST_CASE("variants are told apart, and a response without Vary replaces them") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        const std::string url = "http://v/";
        const auto german = language("de");
        const auto english = language("en");
        for (int round = 0; round < 2; ++round) {
            REQUIRE(s.put(url, variant(url, "Accept-Language", german, 1)));
            REQUIRE(s.put(url, variant(url, "Accept-Language", english, 2)));
            REQUIRE(eventually([&] { return s.find(url, english).what == lookup::present; }));
        }
        for (int i = 0; i < 2; ++i) {
            CHECK(bytes_of(*s.find(url, german).response->content()) == body_for(url, 500, 1));
            CHECK(bytes_of(*s.find(url, english).response->content()) == body_for(url, 500, 2));
            CHECK(s.find(url, language("fr")).what == lookup::other_variant);
            s.open();
        }
        s.invalidate(url);
        CHECK(s.find(url, german).what == lookup::absent);
        REQUIRE(s.put(url, variant(url, "Accept-Language", german, 3)));
        REQUIRE(eventually([&] { return s.find(url, german).what == lookup::present; }));
        CHECK(s.find(url, english).what == lookup::other_variant);
        s.put_surely(url, object(url, 20));
        CHECK(s.find(url, german).response->vary().empty());
    }

    TEST_CASE(
        "what a fetch took comes back from disk, of small and large, after a validation too") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        for (const std::size_t size : {500u, 700'001u}) {
            CAPTURE(size);
            const auto url = url_of(size);
            auto made = object(url, size);
            made->wait = packed_wait{70ms};
            const stored_ptr response = made;
            REQUIRE(s.put(url, response));
            const auto wait_of = [&] {
                const auto there = s.find(url).response;
                return there ? there->wait() : packed_wait{};
            };
            CHECK(eventually([&] { return wait_of() == made->wait; }));
            s.open();
            CHECK(wait_of() == made->wait);
            const auto current = s.find(url).response;
            auto newer = current->draft_without_content();
            newer.freshness.lifetime = 2h;
            const auto updated = stored_response::make(newer);
            REQUIRE(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
            REQUIRE(eventually([&] {
                const auto there = s.find(url).response;
                return there && there->freshness().lifetime == 2h;
            }));
            CHECK(wait_of() == made->wait);
            s.open();
            CHECK(wait_of() == made->wait);
        }
    }

    TEST_CASE("large objects are read from any offset") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        const std::string url = "http://large/";
        const std::size_t size = 700'001;
        const auto content = body_for(url, size);
        const auto put = object(url, size);
        for (const bool known : {true, false}) {
            CAPTURE(known);
            const auto writer = s->begin(key_of(url),
                                         url,
                                         known ? std::optional{std::uint64_t{size}} : std::nullopt,
                                         "",
                                         s.mark(url));
            REQUIRE(writer);
            for (std::size_t at = 0; at < size; at += 30'000) {
                const auto part = cache::test::body_of(
                    std::string_view{content}.substr(at, 30'000));
                REQUIRE(eventually([&] { return writer->append(part->slices.front()); }));
            }
            auto draft = object(url, size);
            draft->content = nullptr;
            const stored_ptr head = draft;
            REQUIRE(writer->finish(*head));
            const auto id = head->disk_record.load();
            REQUIRE(eventually([&] {
                const auto there = s.find(url).response;
                return there && there->disk_record == id;
            }));
        }
        for (int i = 0; i < 2; ++i) {
            const auto got = s.find(url);
            REQUIRE(got.what == lookup::present);
            REQUIRE(got.response->on_disk());
            CHECK_FALSE(got.response->content());
            CHECK(got.response->size() == size);
            CHECK(whole_body(*got.response) == content);
            for (const auto& [begin, end] : {std::pair{0u, 1u},
                                             {65'535u, 65'537u},
                                             {699'999u, 700'001u},
                                             {300'000u, 500'000u}}) {
                CHECK(read(*got.response->on_disk(), begin, end) ==
                      content.substr(begin, end - begin));
            }
            s.open();
        }
    }

    TEST_CASE("a large object is found as soon as it is whole, small ones when a piece is") {
        disk_store s{std::make_shared<memory_files>()};
        s.settings.write_after = 1h;
        s.open();
        s.invalidate("http://other/");  // loading over, the writer looks once whatever waits
        const auto small = object("http://small/", 100);
        REQUIRE(s.put("http://small/", small));
        // Too little for a piece, and more than one record takes.
        const auto big = object("http://big/", 200'000);
        REQUIRE(s.put("http://big/", big));
        REQUIRE(eventually([&] { return s.has("http://big/"); }));
        CHECK(whole_body(*s.find("http://big/").response) == body_for("http://big/", 200'000));
        CHECK(s.has("http://small/"));
        REQUIRE(s.put("http://later/", object("http://later/", 100)));
        CHECK(tests::never_within_a_moment([&] { return s.has("http://later/"); }));
    }

    TEST_CASE("a body given whole that is too long for one record is large too") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        const auto big = object("http://big/", 400'000);
        s.put_surely("http://big/", big);
        CHECK(whole_body(*s.find("http://big/").response) == body_for("http://big/", 400'000));
    }

    TEST_CASE(
        "a newer head allows less where it is useful, or may be sent stale, for a shorter time") {
        using directives = http::response_directives;
        struct said {
            std::chrono::seconds lifetime{60};
            directives allowed{};
        };
        const auto with_window = [](auto window, std::chrono::seconds length) {
            directives made;
            made.*window = length;
            return made;
        };
        const auto on_error = [&](std::chrono::seconds length) {
            return with_window(&directives::stale_if_error, length);
        };
        const auto behind = [&](std::chrono::seconds length) {
            return with_window(&directives::stale_while_revalidate, length);
        };
        directives strict;
        strict.must_revalidate = true;
        auto strict_on_error = on_error(24h);
        strict_on_error.must_revalidate = true;
        struct {
            std::string_view what;
            said updated, current;
            bool less;
        } const rows[]{
            {"the same", {60s}, {60s}, false},
            {"fresh for longer", {600s}, {60s}, false},
            {"fresh for a shorter time", {10s}, {60s}, true},
            {"not stale any more", {600s, strict}, {10s}, true},
            {"nor behind an error", {600s, strict}, {10s, on_error(24h)}, true},
            {"what it says beside that counts no more", {600s, strict_on_error}, {10s}, true},
            {"it was not either", {600s, strict}, {10s, strict_on_error}, false},
            {"and may be now", {600s, on_error(24h)}, {10s, strict}, false},
            {"on error for a shorter time", {60s, on_error(1h)}, {60s, on_error(24h)}, true},
            {"on error no more", {60s}, {60s, on_error(24h)}, true},
            {"fresh for longer than that", {48h}, {60s, on_error(24h)}, false},
            {"on error for longer", {60s, on_error(25h)}, {60s, on_error(24h)}, false},
            {"behind a client's back for a shorter time",
             {60s, behind(1h)},
             {60s, behind(24h)},
             true},
            {"for as long in all", {3600s, behind(60s)}, {60s, behind(3600s)}, false},
        };
        for (const auto& row : rows) {
            CAPTURE(row.what);
            const auto made = [](const said& one) {
                auto head = object("http://a/", 10);
                head->freshness.response_time = wall_time{100s};
                head->freshness.lifetime = one.lifetime;
                head->directives = one.allowed;
                return head;
            };
            CHECK(allows_less(*made(row.updated), *made(row.current)) == row.less);
        }
    }

    TEST_CASE("a newer head of a large object does not wait for more either") {
        disk_store s{std::make_shared<memory_files>()};
        s.settings.write_after = 1h;
        s.open();
        const std::string url = "http://large/";
        REQUIRE(s.put(url, object(url, 300'000)));
        REQUIRE(eventually([&] { return s.has(url); }));
        const auto current = s.find(url).response;
        CHECK(whole_body(*current) == body_for(url, 300'000));
        auto updated = drafted{current->draft()};
        updated->freshness.lifetime = 7h;
        REQUIRE(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
        CHECK(eventually([&] { return s.find(url).response->freshness().lifetime == 7h; }));
    }

    TEST_CASE(
        "what arrives and proves small is an ordinary object; what is broken off is nothing") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        const auto small = cache::test::body_of("abc");
        const auto writer = s->begin(
            key_of("http://s/"), "http://s/", std::nullopt, "", s.mark("http://s/"));
        REQUIRE(writer->append(small->slices.front()));
        auto head = object("http://s/", 3);
        head->content = nullptr;
        REQUIRE(writer->finish(*head));
        REQUIRE(eventually([&] { return s.has("http://s/"); }));
        CHECK(bytes_of(*s.find("http://s/").response->content()) == "abc");

        const auto objects = s->figures().objects;
        {
            const auto broken = s->begin(
                key_of("http://t/"), "http://t/", std::nullopt, "", s.mark("http://t/"));
            const auto block = cache::test::body_of(body_for("http://t/", 300'000));
            REQUIRE(broken->append(block->slices.front()));
        }
        s.put_surely("http://u/", object("http://u/", 3));
        CHECK(s->figures().objects == objects + 1);
        CHECK_FALSE(s.has("http://t/"));
    }

    TEST_CASE("what is larger than may be is refused") {
        disk_store s{std::make_shared<memory_files>()};
        s.settings.max_object = 1000;
        s.open();
        CHECK_FALSE(s.put("http://a/", object("http://a/", 1001)));
        CHECK_FALSE(s->begin(key_of("http://a/"), "http://a/", 1001, "", s.mark("http://a/")));
        CHECK(s->figures().skipped == 2);
        CHECK(s->figures().overrun == 0);  // the disk keeps up
    }

    TEST_CASE(
        "a newer head is served with the old body, over restarts and wherever it is carried") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        for (const std::string url : {"http://small/", "http://large/"}) {
            const std::size_t size = url == "http://small/" ? 900 : 500'000;
            s.put_surely(url, object(url, size));
            const auto current = s.find(url).response;
            auto updated = drafted{current->draft()};
            updated->head = "HTTP/1.1 200 OK\r\nX-New: yes\r\n";
            index_head(updated);
            updated->freshness.lifetime = 7h;
            REQUIRE(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
            REQUIRE(eventually([&] { return s.find(url).response->freshness().lifetime == 7h; }));
        }
        s.open();
        for (const std::string url : {"http://small/", "http://large/"}) {
            const std::size_t size = url == "http://small/" ? 900 : 500'000;
            const auto got = s.find(url).response;
            REQUIRE(got);
            CHECK(got->head() == "HTTP/1.1 200 OK\r\nX-New: yes\r\n");
            CHECK(whole_body(*got) == body_for(url, size));
            // The refresh is not one of another response under the same URL.
            s.put_surely(url, object(url, size, 1));
            CHECK(s.find(url).response->freshness().lifetime == 1h);
        }
        auto gone = object("http://gone/", 1);
        gone->disk_record = 4711;
        CHECK_FALSE(s->freshen(
            key_of("http://gone/"), "http://gone/", *gone, *gone, s.mark("http://gone/")));
    }

    TEST_CASE("drop takes exactly one response, for good") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const stored_ptr old = object(url_of(1), 10, 0);
        s.put_surely(url_of(1), old);
        const stored_ptr now = object(url_of(1), 10, 1);
        s.put_surely(url_of(1), now);
        (void)s->drop(key_of(url_of(1)), *old);
        s.put_surely(url_of(2), object(url_of(2), 10));  // behind it in the queue
        CHECK(s.has(url_of(1)));
        (void)s->drop(key_of(url_of(1)), *now);
        REQUIRE(eventually([&] { return !s.has(url_of(1)); }));
        s.close();
        s.open();
        CHECK_FALSE(s.has(url_of(1)));
        CHECK(s.has(url_of(2)));
    }

    TEST_CASE("what was invalidated stays away, and what came later stays") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 10));
        s.put_surely(url_of(2), object(url_of(2), 10));
        s.invalidate(url_of(1));
        s.invalidate(url_of(2));
        CHECK_FALSE(s.has(url_of(1)));
        s.put_surely(url_of(2), object(url_of(2), 10, 1));
        const auto killed = files->after_kill();
        for (const auto& system : {files, killed}) {
            s.go_on_with(system);
            CHECK_FALSE(s.has(url_of(1)));
            CHECK(s.has(url_of(2)));
        }
    }

    TEST_CASE("what was asked for before an invalidation or a ban is not put after it") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        const auto asked = s.mark("http://a/b");
        s.invalidate("http://a/b");
        CHECK_FALSE(s->put(key_of("http://a/b"), "http://a/b", object("http://a/b", 1), asked));
        const auto later = s.mark("http://a/c");
        s.purges->ban_prefix("http://a/", "", purge_mode::hard, wall_now());
        CHECK_FALSE(s->put(key_of("http://a/c"), "http://a/c", object("http://a/c", 1), later));
        CHECK(s.put("http://a/c", object("http://a/c", 1)));
    }

    TEST_CASE("bans hold for what was stored before them, over restarts") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely("http://a/1", object("http://a/1", 10));
        s.put_surely("http://b/1", object("http://b/1", 10));
        auto tagged = object("http://c/1", 10);
        tagged->head.insert(tagged->status_line_size, "Cache-Tag: t\r\n");
        index_head(tagged);
        s.put_surely("http://c/1", tagged);
        s.purges->ban_prefix("http://a/", "", purge_mode::hard, wall_now());
        s.purges->ban_prefix("http://b/", "", purge_mode::soft, wall_now());
        s.purges->ban_tag(tag_hash("t"), "http://c/", purge_mode::hard, wall_now());
        s.keep_bans();
        s.put_surely("http://a/2", object("http://a/2", 10));
        for (const auto& system : {files->after_kill(), files->after_kill()}) {
            CHECK_FALSE(s.has("http://a/1"));
            CHECK(s.has("http://a/2"));
            CHECK(s.find("http://b/1").response->purged_softly());
            CHECK_FALSE(s.has("http://c/1"));
            s.go_on_with(system);
        }
        // A ban made after a restart holds for what was stored before it.
        CHECK(s.has("http://a/2"));
        s.purges->ban_prefix("http://a/2", "", purge_mode::hard, wall_now());
        CHECK_FALSE(s.has("http://a/2"));
    }

    TEST_CASE("a URL purged softly is stale, until it is stored or validated anew") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        for (const auto i : {1, 2, 3}) {
            s.put_surely(url_of(i), object(url_of(i), 10));
            std::atomic<bool> kept{false};
            s->expire(key_of(url_of(i)), wall_now(), [&] { kept = true; });
            CHECK(s.find(url_of(i)).response->purged_softly());
            REQUIRE(eventually([&] { return kept.load(); }));
        }
        s.put_surely(url_of(2), object(url_of(2), 10, 1));
        const auto current = s.find(url_of(3)).response;
        auto updated = object(url_of(3), 10);
        REQUIRE(s->freshen(key_of(url_of(3)), url_of(3), *current, *updated, s.mark(url_of(3))));
        REQUIRE(eventually([&] { return !s.find(url_of(3)).response->purged_softly(); }));
        for (const auto& system : {files->after_kill(), files->after_kill()}) {
            CHECK(s.find(url_of(1)).response->purged_softly());
            CHECK_FALSE(s.find(url_of(2)).response->purged_softly());
            CHECK_FALSE(s.find(url_of(3)).response->purged_softly());
            s.go_on_with(system);
        }
    }

    TEST_CASE(
        "what was purged softly while the clock was ahead is stale when that has been set back") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        const auto now = wall_now();
        const auto an_hour_ahead = now + 1h;
        const auto put = [&](const std::string& url, std::chrono::seconds lifetime, bool is_ended) {
            auto made = object(url, 10);
            made->freshness.response_time = now - 4h;
            made->freshness.lifetime = lifetime;
            made->purged_softly = is_ended;
            made->reusable_until = is_ended ? wall_time::min() : http::fresh_until(made->freshness);
            s.put_surely(url, made);
        };
        put("http://a/url", 24h, false);
        put("http://a/below/prefix", 24h, false);
        put("http://a/carried", 5h, true);  // written when it had ended, by the same clock
        std::atomic<bool> kept{false};
        s->expire(key_of("http://a/url"), an_hour_ahead, [&] { kept = true; });
        REQUIRE(eventually([&] { return kept.load(); }));
        s.purges->ban_prefix("http://a/below/", "", purge_mode::soft, an_hour_ahead);
        s.keep_bans();
        for (int i = 0; i < 2; ++i) {
            CAPTURE(i);
            for (const std::string url :
                 {"http://a/url", "http://a/below/prefix", "http://a/carried"}) {
                CAPTURE(url);
                const auto found = s.find(url).response;
                REQUIRE(found);
                CHECK(found->purged_softly());
                CHECK(http::remaining(found->freshness(), resident_now()) <= 0s);
            }
            s.open();
            const auto said = s.purges->judge("http://a/below/prefix", {}, 0);
            REQUIRE(said.soft);
            CHECK(*said.soft <= resident_now());
        }
    }

    TEST_CASE("what was written while the clock was ahead is stale: nobody knows how old it is") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        superblock super;
        super.segment_bytes = smallest_segment;
        const auto shape = plan(smallest_store, smallest_segment);
        core opened{s.settings, s.files, super, shape, shape.segments, *s.purges, *s.lately};
        const auto now = resident_now();
        const auto read = [&](wall_time said, wall_time written) {
            record_header header;
            header.id = opened.next_id() ^ std::uint64_t{1} << 62;  // of an earlier process
            header.written = written;
            http::freshness_facts facts;
            facts.response_time = said;
            facts.initial_age = 5s;
            facts.lifetime = 14 * 24h;
            opened.to_own_time(header, facts);
            CHECK(opened.came_at(header, said) == facts.response_time);
            return facts;
        };
        CHECK(read(now - 1h, now - 1h).response_time == now - 1h);
        CHECK(read(now - 1h, now - 1h).lifetime == 14 * 24h);
        // What that process saw of a clock set back while it lived is not what it wrote by.
        CHECK(read(now + 24h, now - 1h).response_time == now - 1h);
        CHECK(read(now + 24h, now - 1h).lifetime == 14 * 24h);
        // By little, as clocks are corrected all the time: as if it had come when the store was opened.
        CHECK(read(now + 10s, now + 10s).response_time <= now);
        CHECK(read(now + 10s, now + 10s).lifetime == 14 * 24h);
        const auto of_a_year_ahead = read(now + 365 * 24h, now + 365 * 24h);
        CHECK(of_a_year_ahead.response_time <= now);
        CHECK(http::remaining(of_a_year_ahead, now) <= 0s);
    }

    TEST_CASE("a newer head without the tag that was purged meanwhile is refused") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        for (const auto mode : {purge_mode::hard, purge_mode::soft}) {
            const auto url = url_of(mode == purge_mode::hard ? 1 : 2);
            auto tagged = object(url, 100);
            tagged->tags = {7};
            s.put_surely(url, tagged);
            const auto current = s.find(url).response;
            const auto begun = s.mark(url);
            s.purges->ban_tag(7, url, mode, wall_now());
            auto updated = object(url, 10);
            updated->tags = {8};
            CHECK_FALSE(s->freshen(key_of(url), url, *current, *updated, begun));
            const auto after = s.find(url).response;
            CHECK((!after || after->purged_softly()));
        }
    }

    TEST_CASE("a newer head that can't be read is not answered by the older one") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        s.put_surely(url, object(url, 100));
        const auto current = s.find(url).response;
        auto updated = object(url, 10);
        updated->freshness.lifetime = 0s;
        REQUIRE(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
        REQUIRE(eventually([&] { return s.find(url).response->freshness().lifetime == 0s; }));
        files->set_cold(true);
        for (int nth = 1; nth <= 2; ++nth) {
            CAPTURE(nth);
            std::atomic<int> left{nth};
            files->set_hook([&](operation what, std::string_view path) {
                return what == operation::read && path.find("s-") != std::string_view::npos &&
                               --left == 0
                           ? error_code{EIO, boost::system::system_category()}
                           : error_code{};
            });
            CHECK(s.find(url).what == lookup::absent);
            CHECK(left <= 0);
            files->set_hook({});
            CHECK(s.find(url).response->freshness().lifetime == 0s);  // it was not dropped for that
        }
    }

    TEST_CASE(
        "an object is not found without a newer head that is lost behind the one it replaced") {
        const auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        auto made = object(url, 100);
        made->freshness.response_time -= 20s;
        made->freshness.lifetime = 24h;
        s.put_surely(url, made);
        const auto is_freshened = [&](std::chrono::seconds ago) {
            const auto current = s.find(url).response;
            REQUIRE(current);
            auto updated = drafted{current->draft()};
            updated->freshness.response_time = wall_now() - ago;
            updated->freshness.lifetime = 60s;
            return s->freshen(key_of(url), url, *current, *updated, s.mark(url));
        };
        REQUIRE(is_freshened(10s));
        REQUIRE(eventually([&] {
            const auto found = s.find(url).response;
            return found && found->freshness().lifetime == 60s;
        }));
        hanging_disk disk{*files, {operation::write}};
        REQUIRE(is_freshened(5s));  // which allows no less than that
        REQUIRE(eventually([&] { return disk.is_met(); }));
        // Purges of others that can't be told from its own (loading_test.cpp).
        const auto asked = s.lately->count(key_of(url));
        auto others = key_of(url);
        others.high ^= std::uint64_t{1} << 63;
        for (unsigned i = 0; i <= 64; ++i) {
            s.lately->note(others);
        }
        REQUIRE(s.lately->since(key_of(url), asked));
        disk.let_go();
        REQUIRE(eventually([&] { return s->figures().behind == 0s; }));
        const auto found = s.find(url).response;
        CHECK((!found || found->freshness().lifetime == 60s));
    }

    TEST_CASE("look-ups and bodies outlive the tier") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        s.put_surely("http://large/", object("http://large/", 400'000));
        const auto got = s.find("http://large/").response;
        const auto reader = got->on_disk()->read_from(0, {});
        disk_lookup lookup{*s, key_of("http://large/"), "http://large/", {}};
        const auto writer = s->begin(
            key_of("http://x/"), "http://x/", std::nullopt, "", s.mark("http://x/"));
        s.close();
        CHECK(lookup.step({}));
        CHECK(lookup.result.what == lookup::absent);
        std::vector<slice> pieces;
        CHECK(reader->next(400'000, 1000, pieces) == disk_body_reader::read_result::refused);
        const auto more = cache::test::body_of(body_for("http://x/", 300'000));
        (void)writer->append(more->slices.front());
        CHECK_FALSE(writer->finish(*got));
    }
}

}  // namespace reprise::proxy::cache::disk
