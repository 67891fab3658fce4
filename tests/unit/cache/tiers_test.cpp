// Memory and disk together: what one of them ends stays ended in the other.

#include "proxy/cache/tiers.hpp"
#include "tests/unit/disk/memory_files.hpp"
#include "tests/unit/disk/stores.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace reprise::proxy::cache {
namespace {

using namespace disk::test;

constexpr std::uint64_t memory_bytes = 256u << 10;

/// Both tiers over files in memory; opened again, the disk's alone are kept.
struct both {
    explicit both(disk_write when, contents_listener* told = nullptr) : when_{when}, told_{told} {
        open();
    }

    void open() {
        made.reset();
        set_log_level(config::log_level::off);
        store_plan plan;
        plan.capacity = memory_bytes;
        plan.policy = eviction_kind::lru;
        plan.stripes = 1;
        plan.told = told_;
        made = std::make_unique<tiers>(plan);
        disk::tier_settings settings;
        settings.path = "/store";
        settings.size = 16u << 20;
        settings.write_after = std::chrono::milliseconds{1};
        settings.told = told_;
        made->attach(std::make_unique<disk::tier>(
                         settings, files, made->purges(), made->memory().invalidated()),
                     when_);
        REQUIRE(eventually(
            [this] { return made->disk()->figures().state != disk::tier_state::loading; }));
    }
    tiers* operator->() { return made.get(); }

    void put(std::string_view url, const stored_ptr& response) {
        CHECK(made->put(key_of(url), url, response, made->mark(key_of(url))));
    }
    [[nodiscard]] stored_ptr in_memory(std::string_view url) {
        return made->find(key_of(url), url, {}).response;
    }
    [[nodiscard]] stored_ptr on_disk(std::string_view url) {
        disk::disk_lookup lookup{*made->disk(), key_of(url), url, {}};
        REQUIRE(eventually([&] { return lookup.step({}); }));
        return lookup.result.response;
    }
    /// What there is room for no more leaves memory, and what goes to disk is there.
    void push_out(std::string_view url) {
        for (unsigned i = 0; in_memory_at_all(url); ++i) {
            REQUIRE(i < 1000);
            const auto other = "http://other.example/" + std::to_string(next_++);
            put(other, object(other, 10'000));
        }
        settle();
    }
    void settle() {
        REQUIRE(eventually([this] { return made->disk()->figures().queued_bytes == 0; }));
        std::atomic<bool> kept{false};
        made->keep_purges([&kept] { kept = true; });
        REQUIRE(eventually([&] { return kept.load(); }));
    }

    std::shared_ptr<disk::test::memory_files> files = std::make_shared<disk::test::memory_files>();
    std::unique_ptr<tiers> made;

private:
    [[nodiscard]] bool in_memory_at_all(std::string_view url) {
        return !made->variants(key_of(url), url).empty();
    }
    const disk_write when_;
    contents_listener* const told_;
    unsigned next_ = 0;
};

bool is_fresh(const stored_ptr& response) {
    return response && !response->purged_softly && response->reusable_until > wall_now();
}

}  // namespace

TEST_SUITE("cache/tiers") {
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

    TEST_CASE("a soft purge is counted before the disk gives it a place in its log") {
        // Else what was asked for before could be written behind that place, and be fresh.
        struct watcher final : contents_listener {
            void held(tier_name,
                      const filter::key_hash&,
                      std::string_view,
                      wall_time) noexcept override {}
            void gone(tier_name, const filter::key_hash&) noexcept override {}
            void outdated(const filter::key_hash& key) noexcept override {
                was_counted = of->memory().invalidated().since(key, begun);
            }
            void loaded() noexcept override {}
            tiers* of = nullptr;
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

    TEST_CASE("what is dropped from memory leaves nothing older behind it on disk") {
        both store{disk_write::eviction};
        const auto url = url_of(1);
        store.put(url, object(url, 100, 1));
        REQUIRE(store.in_memory(url));
        store.push_out(url);
        REQUIRE(store.on_disk(url));
        const auto newer = object(url, 100, 2);
        store.put(url, newer);
        (void)store->drop(key_of(url), url, newer);
        store.settle();
        CHECK_FALSE(store.in_memory(url));
        CHECK_FALSE(store.on_disk(url));
        store.open();
        CHECK_FALSE(store.on_disk(url));
    }

    TEST_CASE("what neither tier takes ends nothing that is newer") {
        both store{disk_write::admission};
        const auto url = url_of(1);
        const auto begun = store->mark(key_of(url));
        (void)store->invalidate(key_of(url), url, wall_now());
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
        const auto newer = object(url, 100, 2);
        store.put(url, newer);
        store->promote(key_of(url), url, older, 2, store->mark(key_of(url)));
        CHECK(store.in_memory(url) == newer);
    }
}

}  // namespace reprise::proxy::cache
