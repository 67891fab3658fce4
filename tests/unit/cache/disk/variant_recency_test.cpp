// A response without Vary and the directory of a URL's variants have one place on disk. Which of them stays
// is decided by which is the more recent, and not by which is written, or dropped, last.

#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

constexpr std::size_t small = 500, large = 400'000;

std::array<http::field, 1> accepts(std::string_view value) {
    return {http::field{http::field_id::accept_language, "Accept-Language", value}};
}

/// Without Vary; asked for so long after the start of the test, and come 10 ms later.
drafted plain(std::string_view url,
              std::size_t size,
              unsigned version,
              std::chrono::milliseconds asked) {
    static const auto start = resident_now();
    auto made = object(url, size, version);
    made->asked_at = start + asked;
    made->freshness.response_time = made->asked_at + 10ms;
    return made;
}

/// The same for a request with these fields, by which it varies.
drafted variant(std::string_view url,
                std::size_t size,
                http::field_list request,
                unsigned version,
                std::chrono::milliseconds asked) {
    auto made = plain(url, size, version, asked);
    const http::field line{http::field_id::vary, "Vary", "Accept-Language"};
    made->vary = http::read_vary({&line, 1});
    made->selecting = http::selecting_values(made->vary, request);
    return made;
}

bool is_version(const stored_ptr& found, std::string_view url, unsigned version) {
    return found && whole_body(*found) == body_for(url, found->size(), version);
}

void put_and_find(disk_store& s,
                  std::string_view url,
                  http::field_list request,
                  const drafted& made) {
    const stored_ptr response = made;
    REQUIRE(s.put(url, response));
    const auto id = response->disk_record.load();
    REQUIRE(eventually([&] {
        const auto there = s.find(url, request).response;
        return there && there->disk_record.load() == id;
    }));
}

/// What is put and dropped behind this waits until `disk` is let go.
void hold_up(disk_store& s, const hanging_disk& disk) {
    REQUIRE(s.put(url_of(2), object(url_of(2), 4000)));
    REQUIRE(eventually([&] { return disk.is_met(); }));
}

/// All that was put, dropped and outdated before has been carried out.
void settle(disk_store& s) {
    s.put_surely(url_of(3), object(url_of(3), 100));
}

}  // namespace

TEST_SUITE("cache/disk/variant_recency") {

    TEST_CASE("a response without Vary that is dropped on its way takes no newer variant along") {
        for (const auto size : {small, large}) {
            CAPTURE(size);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            const auto url = url_of(1);
            const auto german = accepts("de");
            const stored_ptr late = plain(url, size, 1, 0ms);
            {
                hanging_disk disk{*files, {operation::write}};
                hold_up(s, disk);
                REQUIRE(s.put(url, variant(url, small, german, 2, 20ms)));
                REQUIRE(s.put(url, late));
                REQUIRE(s->drop(key_of(url), *late));
            }
            settle(s);
            CHECK(is_version(s.find(url, german).response, url, 2));
            s.open();
            CHECK(is_version(s.find(url, german).response, url, 2));
        }
    }

    TEST_CASE("a response without Vary that is dropped on its way takes older variants along") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        const auto german = accepts("de");
        const stored_ptr newer = plain(url, small, 2, 20ms);
        {
            hanging_disk disk{*files, {operation::write}};
            hold_up(s, disk);
            REQUIRE(s.put(url, variant(url, small, german, 1, 0ms)));
            REQUIRE(s.put(url, newer));
            REQUIRE(s->drop(key_of(url), *newer));
        }
        settle(s);
        CHECK(s.find(url, german).what == lookup::absent);
        s.open();
        CHECK(s.find(url, german).what == lookup::absent);
    }

    TEST_CASE("what memory alone has outdates the variants that are older, and no newer one") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        std::atomic<unsigned> told{0};
        s->on_outdated(
            [&told](const filter::key_hash&, std::string_view, const stored_ptr&) { ++told; });
        const auto url = url_of(1);
        const auto german = accepts("de"), english = accepts("en");
        put_and_find(s, url, german, variant(url, small, german, 1, 0ms));
        put_and_find(s, url, english, variant(url, small, english, 2, 40ms));
        s->outdate(key_of(url), url, plain(url, small, 3, 20ms));
        settle(s);
        CHECK(told == 1);
        for (int i = 0; i < 2; ++i) {
            CHECK(s.find(url, german).what == lookup::other_variant);
            CHECK(is_version(s.find(url, english).response, url, 2));
            s.open();
        }
        s->outdate(key_of(url), url, plain(url, small, 4, 60ms));
        settle(s);
        for (int i = 0; i < 2; ++i) {
            CHECK(s.find(url, english).what == lookup::absent);
            s.open();
        }
    }

    TEST_CASE("a newer head of a variant counts, whenever its body came") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        const auto url = url_of(1);
        const auto german = accepts("de");
        put_and_find(s, url, german, variant(url, small, german, 1, 0ms));
        const auto current = s.find(url, german).response;
        auto updated = drafted{current->draft()};
        updated->asked_at = plain(url, small, 1, 40ms)->asked_at;
        updated->freshness.response_time = updated->asked_at + 10ms;
        updated->freshness.lifetime = 7h;
        REQUIRE(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
        REQUIRE(
            eventually([&] { return s.find(url, german).response->freshness().lifetime == 7h; }));
        s->outdate(key_of(url), url, plain(url, small, 2, 20ms));
        settle(s);
        CHECK(is_version(s.find(url, german).response, url, 1));
    }

    TEST_CASE("a response without Vary that comes late takes no newer variant's place") {
        for (const auto size : {small, large}) {
            CAPTURE(size);
            disk_store s{std::make_shared<memory_files>()};
            s.open();
            std::atomic<unsigned> told{0};
            s->on_outdated(
                [&told](const filter::key_hash&, std::string_view, const stored_ptr&) { ++told; });
            const auto url = url_of(1);
            const auto german = accepts("de");
            put_and_find(s, url, german, variant(url, small, german, 2, 20ms));
            REQUIRE(s.put(url, plain(url, size, 1, 0ms)));
            settle(s);
            CHECK(told == 1);
            CHECK(is_version(s.find(url, german).response, url, 2));
            s.open();
            CHECK(is_version(s.find(url, german).response, url, 2));
        }
    }

    TEST_CASE("a variant that comes late takes no place of a newer response without Vary") {
        for (const auto size : {small, large}) {
            CAPTURE(size);
            disk_store s{std::make_shared<memory_files>()};
            s.open();
            std::atomic<unsigned> told{0};
            s->on_outdated(
                [&told](const filter::key_hash&, std::string_view, const stored_ptr&) { ++told; });
            const auto url = url_of(1);
            const auto german = accepts("de");
            put_and_find(s, url, german, plain(url, small, 2, 20ms));
            REQUIRE(s.put(url, variant(url, size, german, 1, 0ms)));
            settle(s);
            CHECK(told == 1);
            CHECK(is_version(s.find(url, german).response, url, 2));
            s.open();
            CHECK(is_version(s.find(url, german).response, url, 2));
        }
    }

    TEST_CASE("a drop without Vary leaves a directory alone, though it can't be read just then") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        const auto german = accepts("de");
        put_and_find(s, url, german, plain(url, small, 1, 0ms));
        const auto older = s.find(url, german).response;
        put_and_find(s, url, german, variant(url, small, german, 2, 20ms));
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::read && path.starts_with("/store/s-");
        });
        REQUIRE(s->drop(key_of(url), *older));
        settle(s);
        files->set_hook({});
        CHECK(is_version(s.find(url, german).response, url, 2));
    }

    TEST_CASE(
        "a variant that memory alone has ends what is older and has no Vary, and nothing newer") {
        for (const bool is_newer : {true, false}) {
            CAPTURE(is_newer);
            disk_store s{std::make_shared<memory_files>()};
            s.open();
            std::atomic<unsigned> told{0};
            s->on_outdated(
                [&told](const filter::key_hash&, std::string_view, const stored_ptr&) { ++told; });
            const auto url = url_of(1);
            const auto german = accepts("de");
            put_and_find(s, url, german, plain(url, small, 1, 20ms));
            s->outdate(key_of(url), url, variant(url, small, german, 2, is_newer ? 40ms : 0ms));
            settle(s);
            CHECK(told == (is_newer ? 0 : 1));
            CHECK((s.find(url, german).what == lookup::present) == !is_newer);
            s.open();
            CHECK((s.find(url, german).what == lookup::present) == !is_newer);
        }
    }

    TEST_CASE("so does one that is dropped on its way") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        const auto german = accepts("de");
        put_and_find(s, url, german, plain(url, small, 1, 0ms));
        {
            hanging_disk disk{*files, {operation::write}};
            hold_up(s, disk);
            const stored_ptr newer = variant(url, small, german, 2, 20ms);
            REQUIRE(s.put(url, newer));
            REQUIRE(s->drop(key_of(url), *newer));
        }
        settle(s);
        CHECK(s.find(url, german).what == lookup::absent);
        s.open();
        CHECK(s.find(url, german).what == lookup::absent);
    }

    TEST_CASE("what has no Vary is not found while a variant is on its way, and has been outrun") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        const auto key = key_of(url);
        const auto german = accepts("de");
        put_and_find(s, url, german, plain(url, small, 1, 0ms));
        const auto first = s.find(url, german).response;
        {
            hanging_disk disk{*files, {operation::write}};
            hold_up(s, disk);
            REQUIRE(s.put(url, variant(url, small, german, 2, 20ms)));
            CHECK(s->is_outrun(key, *first));
            CHECK(s.find(url, german).what != lookup::present);
        }
        settle(s);
        CHECK(is_version(s.find(url, german).response, url, 2));
    }

    TEST_CASE("what is being written when a newer one comes to memory is not found afterwards") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        {
            hanging_disk disk{*files, {operation::write}};
            REQUIRE(s.put(url, plain(url, 4000, 1, 0ms)));
            REQUIRE(eventually([&] { return disk.is_met(); }));
            s->outdate(key_of(url), url, plain(url, small, 2, 20ms));
        }
        settle(s);
        CHECK(s.find(url, {}).what == lookup::absent);
        s.open();
        CHECK(s.find(url, {}).what == lookup::absent);
    }

    TEST_CASE("what takes the place of the other form has outrun it, as soon as it is on its way") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        const auto key = key_of(url);
        const auto german = accepts("de");
        put_and_find(s, url, german, variant(url, small, german, 1, 0ms));
        const auto first = s.find(url, german).response;
        CHECK_FALSE(s->is_outrun(key, *first));
        {
            hanging_disk disk{*files, {operation::write}};
            hold_up(s, disk);
            REQUIRE(s.put(url, plain(url, small, 2, 20ms)));
            CHECK(s->is_outrun(key, *first));
            CHECK(s.find(url, german).what != lookup::present);
        }
        settle(s);
        CHECK(s->is_outrun(key, *first));
        const auto next = s.find(url, german).response;
        REQUIRE(is_version(next, url, 2));
        CHECK_FALSE(s->is_outrun(key, *next));
        put_and_find(s, url, german, variant(url, small, german, 3, 40ms));
        CHECK(s->is_outrun(key, *next));
    }
}

}  // namespace reprise::proxy::cache::disk
