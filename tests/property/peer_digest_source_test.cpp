// The published digest is exactly what a fresh build from the cache's contents would be, bit for
// bit, whatever came, went, went stale, was purged, was on its way or moved between the tiers, and
// while the filter was resized under all that.

#include "filter/standard.hpp"
#include "proxy/peer/digest_source.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <random>
#include <string>

namespace reprise::proxy::peer::test::of_peer_digest_source {
namespace {

using namespace std::chrono_literals;
using filter::test::nth_key;

constexpr wall_time start{1'763'668'089'000ms};
constexpr steady_time zero{1h};

struct copies {
    std::array<bool, 2> in{};
    std::array<wall_time, 2> until{};  // of the tier that holds it
    bool soon = false;                 // a fetch brings it

    [[nodiscard]] bool any() const { return in[0] || in[1] || soon; }
};

std::string url_of(std::uint64_t i) {
    return "http://h/" + std::to_string(i);
}

// The keys that a fresh build would list, put into a filter of the published one's size.
filter::standard_bloom fresh_build(const std::map<std::uint64_t, copies>& cache,
                                   filter::bloom_size size,
                                   const fleet_secret& secret,
                                   std::chrono::seconds least_use,
                                   wall_time now) {
    filter::standard_bloom made{size};
    for (const auto& [i, held] : cache) {
        const auto latest = std::max(held.in[0] ? held.until[0] : wall_time{},
                                     held.in[1] ? held.until[1] : wall_time{});
        const auto packed = key_table::pack_time(latest - least_use, start);
        if (held.soon || key_table::is_ahead(packed, now)) {
            made.insert(key_of(name_of(url_of(i), secret), secret));
        }
    }
    return made;
}

void run(std::uint64_t seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    const auto secret = fleet_secret::none();
    std::uint64_t drawn = 0;
    source_plan plan;
    plan.resize_step = 500;  // so that a resize lasts for thousands of events
    plan.news = 200ms;       // without which nothing is told before it is stored
    digest_source source{plan, secret, [&drawn] { return ++drawn; }};
    source.loaded();
    std::map<std::uint64_t, copies> cache;
    std::chrono::milliseconds passed{0};
    int resizing_seen = 0;
    const auto now = [&passed] { return start + passed; };
    const auto pick = [&cache, &random] { return cache.lower_bound(random() % 1'000'000); };
    // A packed time depends on when it was packed only by its unit and the clamp; the model packs
    // at the start, which differs from now only beyond 90 days.
    for (int step = 0; step < 100'000; ++step) {
        if (random() % 8 == 0) {
            const auto at = pick();
            const auto i = at != cache.end() && random() % 2 == 0 ? at->first
                                                                  : random() % 1'000'000;
            auto& held = cache[i];
            if (held.soon) {
                source.gone(holder::under_way, nth_key(9, i));
            } else {
                source.held(holder::under_way, nth_key(9, i), url_of(i), now() + 1h, now());
            }
            held.soon = !held.soon;
            if (!held.any()) {
                cache.erase(i);
            }
        }
        const auto what = random() % 100;
        const auto growing = (step / 25'000) % 2 == 0;
        if (cache.empty() || what < (growing ? 60u : 20u)) {
            const auto i = random() % 1'000'000;
            const std::size_t tier = random() % 2;
            const auto until = now() + std::chrono::seconds{random() % 3000};
            source.held(
                tier == 0 ? holder::memory : holder::disk, nth_key(9, i), url_of(i), until, now());
            auto& held = cache[i];
            held.in[tier] = true;
            held.until[tier] = until;
        } else if (const auto at = pick(); at != cache.end()) {
            auto& [i, held] = *at;
            const auto move = random() % 4;
            if (move == 0) {  // a purge: both tiers, and what is on its way
                source.gone(holder::memory, nth_key(9, i));
                source.gone(holder::disk, nth_key(9, i));
                source.gone(holder::under_way, nth_key(9, i));
                cache.erase(at);
            } else if (move == 1) {  // a soft purge
                source.outdated(nth_key(9, i));
                held.until = {};
            } else if (move == 2) {  // from one tier to the other
                const std::size_t to = held.in[0] ? 1 : 0;
                const auto until = std::max(held.until[1 - to], start);
                source.held(to == 0 ? holder::memory : holder::disk,
                            nth_key(9, i),
                            url_of(i),
                            until,
                            now());
                source.gone(to == 0 ? holder::disk : holder::memory, nth_key(9, i));
                held.until[to] = until;
                held.in[to] = true;
                held.in[1 - to] = false;
            } else {  // an eviction
                const std::size_t from = held.in[0] ? 0 : 1;
                source.gone(from == 0 ? holder::memory : holder::disk, nth_key(9, i));
                held.in[from] = false;
                if (!held.any()) {
                    cache.erase(at);
                }
            }
        }
        if (step % 50 == 0) {
            passed += 700ms;
            source.tick(zero + passed, now());
        }
        resizing_seen += source.figures().resizing ? 1 : 0;
        if (step % 10'000 == 9'999) {
            source.settle(zero + passed, now());
            const auto newest = source.digests().now();
            REQUIRE(newest != nullptr);
            const filter::bloom_size size{newest->bits->shape().bits, newest->bits->shape().probes};
            const auto expected = fresh_build(cache, size, secret, plan.least_use, now());
            REQUIRE(std::ranges::equal(newest->bits->words(), expected.words()));
            const auto figures = source.figures();
            CHECK(figures.known == cache.size());
            CHECK(figures.under_way == static_cast<std::uint64_t>(std::count_if(
                                           cache.begin(), cache.end(), [](const auto& one) {
                                               return one.second.soon;
                                           })));
        }
    }
    CHECK(source.figures().resizes >= 2);
    CHECK(resizing_seen > 2'000);  // steps
    CHECK(source.figures().stuck == 0);
}

}  // namespace

TEST_SUITE("property/peer_digest_source") {
    TEST_CASE("published bits are those of a fresh build, after whatever happened") {
        for (std::uint64_t seed = 1; seed <= 2; ++seed) {
            run(seed);
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_peer_digest_source
