// Stores of which the settings say another size than before: one into which its segments do not fit
// any more is begun anew.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/resizing") {

    namespace {

    constexpr std::size_t body_bytes = 10'000;

    void put_many(disk_store& s, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), body_bytes)); }));
        }
        REQUIRE(eventually([&] { return s.has(url_of(count - 1)); }));
    }

    bool has_version(disk_store& s, std::string_view url, unsigned version) {
        const auto found = s.find(url).response;
        return found && whole_body(*found) == body_for(url, body_bytes, version);
    }

    }  // namespace

    TEST_CASE("a store made smaller than its segments begins anew, and stores and gives back") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, 64u << 20};
        s.settings.segment = 16u << 20;
        s.open();
        REQUIRE(s->figures().segments == 3);
        constexpr unsigned objects = 2000;  // more than one segment
        put_many(s, objects);
        s.invalidate(url_of(1));
        const auto secret = s->secret().seed();
        s.close();
        REQUIRE(files->taken() >= 32u << 20);

        for (const std::uint64_t segment : {std::uint64_t{0}, std::uint64_t{16} << 20}) {
            CAPTURE(segment);  // also where so large ones are asked for still
            const auto copy = files->after_kill();
            disk_store smaller{copy, 8u << 20};
            smaller.settings.segment = segment;
            smaller.open();
            CHECK(smaller->figures().state == tier_state::ready);
            CHECK(smaller->figures().segments >= fewest_segments);
            CHECK(smaller->figures().objects == 0);
            CHECK(smaller->secret().seed() == secret);
            CHECK(smaller->take_purged_before().all);
            CHECK(copy->taken() <= 8u << 20);
            unsigned found = 0;
            for (unsigned i = 0; i < objects; ++i) {
                found += smaller.find(url_of(i)).what == lookup::absent ? 0 : 1;
            }
            CHECK(found == 0);
            smaller.put_surely(url_of(1), object(url_of(1), body_bytes, 1));
            smaller.put_surely(url_of(2), object(url_of(2), body_bytes, 1));
            smaller.invalidate(url_of(2));
            // It is as large as it is from then on, and keeps what it has.
            for (int starts = 0; starts < 2; ++starts) {
                smaller.open();
                CHECK_FALSE(smaller->take_purged_before().all);
                CHECK(smaller->figures().objects == 1);
                CHECK(has_version(smaller, url_of(1), 1));
                CHECK_FALSE(smaller.has(url_of(2)));
                CHECK_FALSE(smaller.has(url_of(3)));
            }
            put_many(smaller, objects);  // all segments are used, and used again
            CHECK(has_version(smaller, url_of(objects - 1), 0));
            CHECK(smaller->figures().evicted > 0);
            CHECK(smaller->figures().write_errors == 0);
            CHECK(copy->taken() <= 8u << 20);
        }
    }

    TEST_CASE("a store keeps what it has down to the least size for its segments") {
        constexpr std::uint64_t segment = 2u << 20;
        auto files = std::make_shared<memory_files>();
        disk_store s{files, 16u << 20};
        s.settings.segment = segment;
        s.open();
        put_many(s, 20);
        s.settings.size = least_size_for(segment);
        s.open();
        CHECK(s->figures().segments == fewest_segments);
        CHECK(s->figures().objects == 20);
        put_many(s, 1000);  // two segments do
        CHECK(s->figures().evicted > 0);
        s.open();
        CHECK(has_version(s, url_of(999), 0));
    }

    TEST_CASE(
        "what was replaced does not come back when a store is made smaller: the oldest goes") {
        for (const bool is_lent : {false, true}) {
            CAPTURE(is_lent);
            constexpr std::uint64_t size = 8u << 20;
            const auto files = std::make_shared<memory_files>();
            disk_store larger{files, 2 * size};
            larger.open();
            const std::string url = "http://replaced/";
            larger.put_surely(url, object(url, body_bytes, 1));
            put_many(larger, 1000);  // more than the smaller has segments for
            larger.put_surely(url, object(url, body_bytes, 2));
            if (is_lent) {
                REQUIRE(larger->lend(tests::patience).empty());
            } else {
                larger.close();
            }
            REQUIRE(files->taken() > size);
            disk_store smaller{files, size};
            smaller.open();
            CHECK(has_version(smaller, url, 2));
            larger.close();
            CHECK(eventually([&] { return files->taken() <= size; }));
            put_many(smaller, 200);
            CHECK(files->taken() <= size);
            CHECK(has_version(smaller, url, 2));
            CHECK(smaller->figures().write_errors == 0);
            // As after a kill, with either size.
            for (const auto next : {size, 2 * size}) {
                disk_store again{files->after_kill(), next};
                again.open();
                CHECK(has_version(again, url, 2));
                CHECK(has_version(again, url_of(199), 0));
            }
            put_many(smaller, 1000);
            CHECK(smaller->figures().evicted > 0);
            CHECK(files->taken() <= size);
        }
    }

    TEST_CASE("a power cut while a store is made smaller brings back nothing that was replaced") {
        constexpr std::uint64_t larger = 16u << 20, smaller = 8u << 20;
        constexpr unsigned replaced = 10;
        const auto url_of_replaced = [](unsigned i) {
            return "http://replaced/" + std::to_string(i);
        };
        const auto made = std::make_shared<memory_files>();
        {
            disk_store s{made, larger};
            s.settings.segment = 512u << 10;
            s.open();
            // Each in another segment than what replaces it; all of these are among those that go.
            for (const unsigned version : {1u, 2u}) {
                for (unsigned i = 0; i < replaced; ++i) {
                    const auto url = url_of_replaced(i);
                    s.put_surely(url, object(url, body_bytes, version));
                    put_many(s, 20);
                }
            }
            put_many(s, 950);
        }
        REQUIRE(made->taken() > smaller);
        unsigned cuts = 0;
        for (;; ++cuts) {
            const auto files = made->after_kill();
            std::shared_ptr<memory_files> after;
            std::atomic<unsigned> removed{0};
            {
                disk_store s{files, smaller};
                files->set_hook([&](operation what, std::string_view path) {
                    if (what == operation::remove && path.starts_with("/store/s-") &&
                        removed++ == cuts) {
                        after = files->cut(cuts);
                    }
                    return error_code{};
                });
                s.open();
                REQUIRE(eventually([&] { return files->taken() <= smaller; }));
                files->set_hook({});
            }
            if (!after) {
                break;  // it was over before
            }
            CAPTURE(cuts);
            disk_store s{after, larger};  // where nothing more goes
            s.open();
            for (unsigned i = 0; i < replaced; ++i) {
                const auto url = url_of_replaced(i);
                CHECK((!s.has(url) || has_version(s, url, 2)));
            }
        }
        CHECK(cuts > 8);
    }

    TEST_CASE("a disk that is full of what is too much takes writes when that has gone") {
        constexpr std::uint64_t larger = 16u << 20, smaller = 8u << 20;
        const auto files = std::make_shared<memory_files>();
        disk_store s{files, larger};
        s.open();
        put_many(s, 1200);
        s.close();
        // Not even the journal has room for one entry more.
        files->fail_when(
            [&files](operation what, std::string_view path) {
                return what == operation::write && path.starts_with("/store/purges") &&
                       files->taken() > larger / 3 * 2;
            },
            boost::system::errc::no_space_on_device);
        s.settings.size = smaller;
        s.open();
        CHECK(eventually([&] { return s->figures().state == tier_state::ready; }));
        CHECK(eventually([&] { return files->taken() <= smaller; }));
        files->set_hook({});
        CHECK(has_version(s, url_of(1199), 0));
        s.put_surely(url_of(1), object(url_of(1), body_bytes, 1));
        s.open();
        CHECK(has_version(s, url_of(1), 1));
    }

    TEST_CASE("a purge that can't be kept troubles a store made smaller no longer than others") {
        constexpr std::uint64_t larger = 16u << 20, smaller = 8u << 20;
        const auto files = std::make_shared<memory_files>();
        disk_store s{files, larger};
        s.open();
        put_many(s, 1200);
        s.close();
        // The journal has to say of each segment that goes that it is dead, since one can't be read; the first time
        // that fails.
        files->fail_when([test = std::this_thread::get_id(),
                          has_failed = std::make_shared<std::atomic<bool>>(false)](
                             operation what, std::string_view path) {
            if (what == operation::write) {
                return path.starts_with("/store/purges") && std::this_thread::get_id() != test &&
                       !has_failed->exchange(true);
            }
            return (what == operation::read || what == operation::read_cached) &&
                   path == "/store/s-00000000";
        });
        s.settings.size = smaller;
        s.open();
        CHECK(eventually([&] { return s->figures().write_errors != 0; }));
        CHECK(eventually([&] { return s->figures().state == tier_state::ready; }));
        CHECK(eventually([&] { return files->taken() <= smaller; }));
        CHECK(has_version(s, url_of(1199), 0));
    }

    TEST_CASE("behind a segment that could not be removed none goes before the journal says so") {
        constexpr std::uint64_t larger = 16u << 20, smaller = 8u << 20;
        std::atomic<unsigned> removed{0}, refused{0};
        std::atomic<bool> is_broken{true};
        const auto files = std::make_shared<memory_files>();
        disk_store s{files, larger};
        s.open();
        put_many(s, 1200);
        s.close();
        files->fail_when([&](operation what, std::string_view path) {
            if (what == operation::remove && path.starts_with("/store/s-")) {
                return removed++ == 0;
            }
            const bool fails = what == operation::write && path.starts_with("/store/purges") &&
                               is_broken;
            refused += fails && removed != 0 ? 1 : 0;
            return fails;
        });
        s.settings.size = smaller;
        s.open();
        CHECK(eventually([&] { return refused >= 3 || removed > 1; }));
        CHECK(removed == 1);
        CHECK(s->figures().state == tier_state::reading);
        is_broken = false;
        CHECK(eventually([&] { return s->figures().state == tier_state::ready; }));
        CHECK(eventually([&] { return files->taken() <= smaller + larger / 16; }));
        CHECK(has_version(s, url_of(1199), 0));
    }

    TEST_CASE("what is purged stays so, though segments too many could not be removed") {
        constexpr std::uint64_t larger = 16u << 20, smaller = 8u << 20;
        const auto files = std::make_shared<memory_files>();
        const std::string url = "http://purged/";
        disk_store s{files, larger};
        s.open();
        const auto segment_bytes = s->figures().capacity / s->figures().segments;
        const auto kept = plan(smaller, segment_bytes).segments;
        const auto last = "/store/" + segment_name(kept - 1);
        for (unsigned i = 0; files->contents(last).empty(); ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), body_bytes)); }));
            REQUIRE(eventually([&] { return s->figures().behind == 0s; }));
        }
        // The last that there would be room for is left as a kill leaves it, and one more is begun.
        files->fail_when([&, is_over = std::make_shared<std::atomic<bool>>(false)](
                             operation what, std::string_view path) {
            return what == operation::write && path == last && !is_over->exchange(true);
        });
        (void)s.put("http://lost/", object("http://lost/", body_bytes));
        REQUIRE(eventually([&] { return s->figures().write_errors != 0; }));
        REQUIRE(eventually([&] { return s->figures().state == tier_state::ready; }));
        files->set_hook({});
        s.put_surely(url, object(url, body_bytes));
        REQUIRE_FALSE(files->contents("/store/" + segment_name(kept)).empty());
        s.close();
        files->fail_when([](operation what, std::string_view path) {
            return what == operation::remove && path.starts_with("/store/s-");
        });
        s.settings.size = smaller;
        s.open();
        s.purge(url);
        s.close();
        disk_store again{files->after_kill(), larger};
        again.open();
        CHECK_FALSE(again.has(url));
    }

    TEST_CASE("a purge is kept for what a borrower with more room stored under a free number") {
        constexpr std::uint64_t larger = 16u << 20, smaller = 8u << 20;
        const auto files = std::make_shared<memory_files>();
        const auto first = "/store/" + segment_name(0);
        const std::string url = "http://borrowed/";
        disk_store s{files, larger};
        s.open();
        put_many(s, 1200);
        s.settings.size = smaller;
        s.open();
        REQUIRE(eventually([&] { return files->taken() <= smaller; }));
        REQUIRE(files->contents(first).empty());
        REQUIRE(s->lend(tests::patience).empty());
        {
            disk_store borrower{files, larger};
            borrower.open();
            for (unsigned i = 2000; files->contents(first).empty(); ++i) {
                REQUIRE(i < 3000);
                borrower.put_surely(url_of(i), object(url_of(i), body_bytes));
            }
            borrower.put_surely(url, object(url, body_bytes));
        }
        REQUIRE(s->take_back());
        REQUIRE(eventually([&] { return s->figures().state == tier_state::ready; }));
        s.purge(url);
        const auto evicted = s->figures().evicted;
        put_many(s, 1200);  // more than the store has room for
        REQUIRE(s->figures().evicted - evicted > 600);
        // The journal is written anew: of what it has, only what is needed still.
        files->fail_when([has_failed = std::make_shared<std::atomic<bool>>(false)](
                             operation what, std::string_view path) {
            return what == operation::write && path.starts_with("/store/purges") &&
                   !has_failed->exchange(true);
        });
        s.purge("http://other/");
        for (const auto next : {smaller, larger}) {
            disk_store again{files->after_kill(), next};
            again.open();
            CHECK_FALSE(again.has(url));
            CHECK(has_version(again, url_of(1199), 0));
        }
    }

    TEST_CASE("a store that is made with too large segments for its size has smaller ones") {
        disk_store s{std::make_shared<memory_files>(), 20u << 20};
        s.settings.segment = 16u << 20;
        s.open();
        CHECK(s->figures().segments >= fewest_segments);
        put_many(s, 20);
        s.open();
        CHECK(s->figures().objects == 20);
    }

    TEST_CASE(
        "a power cut while a store begins anew brings nothing back, and the next start can do it") {
        constexpr std::uint64_t larger = 16u << 20;
        const auto made = std::make_shared<memory_files>();
        constexpr unsigned objects = 300;  // more than one segment
        const std::string purged = "http://purged/";
        const std::string replaced = "http://replaced/";
        {
            disk_store s{made, larger};
            s.settings.segment = 2u << 20;
            s.open();
            s.put_surely(purged, object(purged, body_bytes));
            s.put_surely(replaced, object(replaced, body_bytes, 1));
            put_many(s, objects);
            s.put_surely(replaced, object(replaced, body_bytes, 2));
            s.invalidate(purged);
        }
        unsigned cuts = 0;
        for (;; ++cuts) {
            const auto files = made->after_kill();
            std::shared_ptr<memory_files> after;
            unsigned seen = 0;
            files->set_hook([&, test = std::this_thread::get_id()](operation, std::string_view) {
                if (std::this_thread::get_id() == test && seen++ == cuts) {
                    after = files->cut(cuts);
                }
                return error_code{};
            });
            {
                disk_store s{files, smallest_store};
                s.begin_to_open();
                files->set_hook({});
            }
            if (!after) {
                break;  // it was over before
            }
            CAPTURE(cuts);
            // The operator may have thought better of it.
            disk_store s{after, cuts % 2 == 0 ? smallest_store : larger};
            s.open();
            CHECK_FALSE(s.has(purged));
            CHECK((!s.has(replaced) || has_version(s, replaced, 2)));
            unsigned wrong = 0;
            for (unsigned i = 0; i < objects; ++i) {
                wrong += s.has(url_of(i)) && !has_version(s, url_of(i), 0) ? 1 : 0;
            }
            CHECK(wrong == 0);
            s.put_surely(url_of(1), object(url_of(1), body_bytes, 1));
            s.open();
            CHECK(has_version(s, url_of(1), 1));
            CHECK_FALSE(s.has(purged));
        }
        CHECK(cuts > 10);
    }

    TEST_CASE("a store is not begun anew while who lent it reads it, and then it is") {
        constexpr std::uint64_t segment = 2u << 20;
        const auto files = std::make_shared<memory_files>();
        disk_store old{files, 16u << 20};
        old.settings.segment = segment;
        old.open();
        put_many(old, 20);
        REQUIRE(old->lend(tests::patience).empty());
        const auto names = files->paths();
        const auto super = files->contents("/store/store");
        const auto journal = files->contents("/store/purges");
        disk_store next{files, smallest_store};
        std::string said;
        try {
            next.open();
        } catch (const std::runtime_error& refused) {
            said = refused.what();
        }
        CHECK(said.find("/store: ") != std::string::npos);
        CHECK(said.find(std::to_string(least_size_for(segment)) + " bytes or more") !=
              std::string::npos);
        CHECK(files->paths() == names);
        CHECK(files->contents("/store/store") == super);
        CHECK(files->contents("/store/purges") == journal);
        REQUIRE(old->take_back());
        REQUIRE(old.put_until_found(url_of(20), body_bytes));
        CHECK(has_version(old, url_of(1), 0));
        old.close();
        next.open();
        CHECK_FALSE(next.has(url_of(1)));
        next.put_surely(url_of(1), object(url_of(1), body_bytes, 1));
        next.open();
        CHECK(has_version(next, url_of(1), 1));
    }
}

}  // namespace reprise::proxy::cache::disk
