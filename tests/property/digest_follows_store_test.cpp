// What the store says of its contents is true: a digest made of what it said in the course of
// 100,000 stores, evictions, expiries, purges and moves between tiers is, bit for bit, the one that
// is made of its memory as it is and of its disk opened anew.

#include "proxy/cache/store.hpp"
#include "proxy/peer/digest_source.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

namespace reprise::proxy::cache::test::of_digest_follows_store {

using namespace disk::test;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int operations = 10'000;
#else
constexpr int operations = 100'000;
#endif

/// A digest that listens to a store.
class told final : public contents_listener {
public:
    explicit told(std::uint64_t least_capacity)
        : secret_{peer::fleet_secret::none()},
          source_{plan_with(least_capacity), secret_, [n = std::uint64_t{0}]() mutable {
                      return ++n;
                  }} {}

    void held(holder by,
              const filter::key_hash& key,
              std::string_view url,
              wall_time until) noexcept override {
        source_.held(by, key, url, until, resident_now());
    }
    void gone(holder by, const filter::key_hash& key) noexcept override { source_.gone(by, key); }
    void outdated(const filter::key_hash& key) noexcept override { source_.outdated(key); }
    void loaded() noexcept override {
        source_.loaded();
        is_loaded = true;
    }

    peer::digest_source& source() { return source_; }
    std::atomic<bool> is_loaded{false};

private:
    static peer::source_plan plan_with(std::uint64_t least) {
        peer::source_plan plan;
        plan.least_capacity = least;
        plan.resize_step = 100;
        return plan;
    }
    peer::fleet_secret secret_;
    peer::digest_source source_;
};

struct whole_store {
    std::unique_ptr<cache::store> made;
    whole_store(const std::string& path,
                contents_listener& to,
                std::uint64_t memory,
                disk_write when) {
        memory_plan plan;
        plan.capacity = memory;
        plan.policy = eviction_kind::lru;  // which lets go of what was found, soon
        plan.told = &to;
        made = std::make_unique<cache::store>(plan);
        disk::tier_settings settings;
        settings.path = path;
        settings.size = 32u << 20;
        settings.write_after = std::chrono::milliseconds{1};
        settings.told = &to;
        made->attach(
            std::make_unique<disk::tier>(
                settings, disk::system_files(), made->purges(), made->memory().invalidated()),
            when);
    }
    [[nodiscard]] lookup_result on_disk(std::string_view url, http::field_list request = {}) {
        disk::disk_lookup lookup{*made->disk(), key_of(url), url, {}};
        REQUIRE(eventually([&] { return lookup.step(request); }));
        return std::move(lookup.result);
    }
    void settle() {
        REQUIRE(eventually([this] { return made->disk()->figures().queued_bytes == 0; }));
    }
};

void run(std::uint64_t seed, disk_write when) {
    CAPTURE(seed);
    CAPTURE(when == disk_write::eviction);
    const tests::temp_dir directory;
    const auto path = directory.file("store");
    std::mt19937_64 random{seed};
    told during{64};
    steady_time clock{std::chrono::hours{1}};
    const auto tick = [&] {
        clock += std::chrono::milliseconds{100};
        during.source().tick(clock, resident_now());
    };
    std::vector<std::pair<std::string, stored_ptr>> in_memory;
    bool grew = false;
    {
        whole_store all{path, during, 1u << 20, when};
        auto& store = *all.made;
        std::uint64_t universe = 500;
        for (int step = 0; step < operations; ++step) {
            if (step == operations / 3) {
                universe = 12'000;
            } else if (step == operations / 3 * 2) {
                universe = 100;
            }
            const auto url = url_of(random() % universe);
            const auto key = key_of(url);
            const auto mark = store.mark(key);
            const auto what = random() % 100;
            if (what < 40) {
                auto response = object(url, 50 + random() % 8000);
                // Some are stale already, some never were fresh, none is about to become so.
                response->freshness.lifetime = random() % 4 == 0 ? 0h : 1h;
                response->directives.no_cache = random() % 16 == 0;
                if (random() % 8 == 0) {
                    const http::field vary{http::field_id::vary, "Vary", "X"};
                    response->vary = http::read_vary({&vary, 1});
                    const http::field asked{
                        http::field_id::unknown, "X", random() % 2 == 0 ? "1" : "2"};
                    response->selecting = http::selecting_values(response->vary, {&asked, 1});
                }
                (void)store.put(key, url, std::move(response), mark);
            } else if (what < 75) {
                (void)store.find(key, url, {});
            } else if (what < 85) {
                auto there = all.on_disk(url);
                if (there.what == lookup::present) {
                    store.promote(key, url, there.response, 2, mark);
                }
            } else if (what < 87) {
                (void)store.invalidate(key, url);
            } else if (what < 89) {
                (void)store.expire(key, url, wall_now());
            } else if (what < 98) {
                if (auto there = store.peek(key, url, {}); there.response) {
                    auto next = object(url, 10);
                    next->content = there.response->content();
                    next->vary = there.response->vary().spec();
                    next->selecting = there.response->selecting();
                    next->freshness.lifetime = random() % 4 == 0 ? 0h : 1h;
                    next->disk_record = there.response->disk_record.load();
                    (void)store.freshen(key, url, there.response, std::move(next), mark);
                }
            } else if (auto there = store.peek(key, url, {}); there.response) {
                (void)store.drop(key, url, there.response);
            }
            if (step % 16 == 0) {
                tick();
            }
            if (step % 256 == 0) {
                all.settle();  // or most would be skipped
            }
            grew = grew || during.source().figures().resizing;
        }
        all.settle();
        for (std::uint64_t i = 0; i < 12'000; ++i) {
            const auto url = url_of(i);
            for (auto& one : store.variants(key_of(url), url)) {
                in_memory.emplace_back(url, std::move(one));
            }
        }
        CHECK(store.disk()->figures().puts > operations / 100);
        if (when == disk_write::admission && operations >= 100'000) {
            CHECK(store.disk()->figures().evicted > 0);
        }
        store.disk()->stop();
        REQUIRE(eventually([&] { return during.is_loaded.load(); }));
        during.source().settle(clock, resident_now());
    }
    const auto figures = during.source().figures();
    CHECK(figures.resizes >= 2);
    CHECK(grew);
    CHECK(figures.stuck == 0);

    told anew{figures.capacity};
    whole_store again{path, anew, 64u << 20, disk_write::eviction};
    REQUIRE(eventually([&] { return anew.is_loaded.load(); }));
    for (const auto& [url, response] : in_memory) {
        (void)again.made->memory().put(key_of(url), url, response);
    }
    anew.source().settle(clock, resident_now());
    const auto one = during.source().digests().now();
    const auto other = anew.source().digests().now();
    REQUIRE(one);
    REQUIRE(other);
    CHECK(anew.source().figures().listed == figures.listed);
    REQUIRE(one->bits->shape() == other->bits->shape());
    const auto left = one->bits->words();
    const auto right = other->bits->words();
    std::size_t different = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
        different += left[i] != right[i] ? 1 : 0;
    }
    if (different != 0) {
        for (std::uint64_t i = 0; i < 12'000; ++i) {
            const auto name = peer::name_of(url_of(i), peer::fleet_secret::none());
            const auto key = peer::key_of(name, peer::fleet_secret::none());
            if (one->bits->may_contain(key) != other->bits->may_contain(key)) {
                const bool was_said = one->bits->may_contain(key);
                MESSAGE(url_of(i), " was said: ", was_said);
                for (const auto& [url, response] : in_memory) {
                    if (url == url_of(i)) {
                        MESSAGE("in memory, Vary ",
                                response->vary().names,
                                ", record ",
                                response->disk_record.load(),
                                ", useful until ",
                                useful_until(response->freshness(), response->directives())
                                    .time_since_epoch()
                                    .count());
                    }
                }
                const auto there = again.on_disk(url_of(i));
                MESSAGE("on disk: ", static_cast<int>(there.what));
            }
        }
    }
    CHECK(different == 0);
    CHECK(figures.listed > 10);
}

TEST_CASE("a digest that listened to the store is the one that is made of its contents") {
    // REPRISE_SEEDS: for a long run by hand.
    const char* const more = std::getenv("REPRISE_SEEDS");
    const auto seeds = more == nullptr ? 2 : std::strtoul(more, nullptr, 10);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        run(seed, seed % 2 == 1 ? disk_write::eviction : disk_write::admission);
    }
}

}  // namespace
}  // namespace reprise::proxy::cache::test::of_digest_follows_store
