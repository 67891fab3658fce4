#include "tests/unit/disk/memory_files.hpp"
#include "tests/unit/disk/stores.hpp"

#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace reprise::proxy::cache::disk {
namespace {

using namespace test;

struct listener final : contents_listener {
    void held(tier_name /*by*/,
              const filter::key_hash& /*key*/,
              std::string_view url,
              wall_time /*until*/) noexcept override {
        const std::lock_guard lock{guard};
        urls.emplace(url);
    }
    void gone(tier_name /*by*/, const filter::key_hash& /*key*/) noexcept override {}
    void outdated(const filter::key_hash& /*key*/) noexcept override {}
    void loaded() noexcept override { all_said = true; }

    [[nodiscard]] bool heard(const std::string& url) {
        const std::lock_guard lock{guard};
        return urls.contains(url);
    }

    std::mutex guard;
    std::set<std::string> urls;
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
                untold += told.heard(url_of(i)) ? 0 : 1;
            }
        }
        CHECK(there > 20);
        CHECK(untold == 0);
        s.close();
    }
}

}  // namespace reprise::proxy::cache::disk
