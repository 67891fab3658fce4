// Stores of which the settings say another size than before: one into which its segments do not fit
// any more is begun anew.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

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
