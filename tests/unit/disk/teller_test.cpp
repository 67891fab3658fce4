#include "proxy/cache/disk/index.hpp"
#include "tests/unit/disk/memory_files.hpp"
#include "tests/unit/disk/stores.hpp"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace reprise::proxy::cache::disk {
namespace {

using namespace test;

struct listener final : contents_listener {
    void held(tier_name /*by*/,
              const filter::key_hash& /*key*/,
              std::string_view url,
              wall_time until) noexcept override {
        const std::lock_guard lock{guard};
        urls[std::string{url}] = until;
    }
    void gone(tier_name /*by*/, const filter::key_hash& key) noexcept override {
        const std::lock_guard lock{guard};
        std::erase_if(urls, [&](const auto& one) {
            return record_index::partial(key_of(one.first)) == record_index::partial(key);
        });
    }
    void outdated(const filter::key_hash& key) noexcept override {
        const std::lock_guard lock{guard};
        for (auto& [url, until] : urls) {
            until = key_of(url) == key ? wall_time::min() : until;
        }
    }
    void loaded() noexcept override { all_said = true; }

    [[nodiscard]] bool heard(const std::string& url) {
        const std::lock_guard lock{guard};
        return urls.contains(url);
    }

    std::mutex guard;
    [[nodiscard]] bool is_listed(const std::string& url) {
        const std::lock_guard lock{guard};
        const auto it = urls.find(url);
        return it != urls.end() && it->second > wall_now();
    }

    std::map<std::string, wall_time> urls;
    std::atomic<bool> all_said{false};
};

}  // namespace

TEST_SUITE("disk/teller") {
    TEST_CASE("what is carried elsewhere while records are read for the digest is told too") {
        constexpr unsigned objects = 600;
        auto files = std::make_shared<memory_files>();
        store s{files};
        s.open();
        for (unsigned i = 0; i < objects; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        REQUIRE(eventually([&] { return s.has(url_of(objects - 1)); }));
        s.close();

        // The loader's thread is held up at its first read after the index is there.
        listener told;
        std::atomic<tier*> opened{nullptr};
        std::atomic<bool> may_read{false};
        std::mutex guard;
        std::thread::id loader;
        const auto test_thread = std::this_thread::get_id();
        files->set_hook([&](operation what, std::string_view) {
            if (what == operation::read && std::this_thread::get_id() != test_thread) {
                {
                    const std::lock_guard lock{guard};
                    if (loader == std::thread::id{}) {
                        loader = std::this_thread::get_id();
                    }
                    if (loader != std::this_thread::get_id()) {
                        return error_code{};
                    }
                }
                (void)eventually([&] {
                    auto* const known = opened.load();
                    return known != nullptr &&
                           (known->figures().state == tier_state::loading || may_read.load());
                });
            }
            return error_code{};
        });
        s.settings.told = &told;
        s.open();
        opened = s.tiers.get();
        REQUIRE(eventually([&] { return s->figures().state == tier_state::ready; }));
        REQUIRE_FALSE(told.all_said);
        // What is asked for is carried, when what comes needs the room.
        for (unsigned round = 0; round < 3; ++round) {
            for (unsigned i = 0; i < objects; i += 4) {
                (void)s.has(url_of(i));
            }
        }
        for (unsigned i = objects; s->figures().carried < 20; ++i) {
            REQUIRE(i < 4 * objects);
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        may_read = true;
        REQUIRE(eventually([&] { return told.all_said.load(); }));
        unsigned there = 0;
        unsigned untold = 0;
        for (unsigned i = 0; i < objects; ++i) {
            if (s.has(url_of(i))) {
                ++there;
                // The writer may still be making room: what goes, goes before it is said to.
                untold += !told.heard(url_of(i)) && s.has(url_of(i)) ? 1 : 0;
            }
        }
        CHECK(there > 20);
        CHECK(untold == 0);
        s.close();
    }

    TEST_CASE("a newer head that a soft purge ends before it is written is not listed") {
        listener told;
        auto files = std::make_shared<memory_files>();
        store s{files};
        s.settings.told = &told;
        s.open_and_load();
        const auto url = url_of(1);
        s.put_surely(url, object(url, 100));
        const auto current = s.find(url).response;
        CHECK(eventually([&] { return told.is_listed(url); }));  // it is said once it can be found
        const auto updated = std::make_shared<stored_response>(*object(url, 100));
        std::atomic<bool> writing{false};
        std::atomic<bool> may_write{false};
        files->set_hook([&](operation what, std::string_view) {
            if (what == operation::write) {
                writing = true;
                (void)eventually([&] { return may_write.load(); });
            }
            return error_code{};
        });
        REQUIRE(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
        REQUIRE(eventually([&] { return writing.load(); }));
        // As tiers do it.
        told.outdated(key_of(url));
        s.lately->note(key_of(url));
        s->expire(key_of(url), wall_now(), {});
        may_write = true;
        s.put_surely(url_of(2), object(url_of(2), 100));  // behind it
        CHECK(s.find(url).response->purged_softly);
        CHECK_FALSE(told.is_listed(url));
        s.close();
    }
}

}  // namespace reprise::proxy::cache::disk
