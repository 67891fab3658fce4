#include "filter/digest_wire.hpp"
#include "filter/squid_digest.hpp"
#include "proxy/peer/digest_source.hpp"
#include "tests/unit/filter/keys.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::peer::test::of_digest_source {
namespace {

using namespace std::chrono_literals;
using filter::test::nth_key;

constexpr wall_time start{1'763'668'089'000ms};
constexpr steady_time zero{1h};

std::string url_of(std::uint64_t i) {
    return "http://origin.example/" + std::to_string(i);
}

/// A source with its clocks.
struct world {
    explicit world(source_plan plan = {}, fleet_secret shared = fleet_secret::none())
        : secret{std::move(shared)},
          source{plan, secret, [this] {
                     if (at_draw) {
                         std::exchange(at_draw, nullptr)();
                     }
                     return ++drawn;
                 }} {}

    void hold(std::uint64_t i, holder by = holder::memory, std::chrono::seconds fresh = 1h) {
        source.held(by, nth_key(1, i), url_of(i), wall() + fresh, wall());
    }
    void drop(std::uint64_t i, holder by = holder::memory) { source.gone(by, nth_key(1, i)); }
    void pass(std::chrono::milliseconds time) {
        passed += time;
        source.tick(zero + passed, wall());
    }
    /// Ticks of a tenth of a second.
    void run(std::chrono::milliseconds time) {
        for (std::chrono::milliseconds done{0}; done < time; done += 100ms) {
            pass(100ms);
        }
    }
    void settle() { source.settle(zero + passed, wall()); }
    [[nodiscard]] wall_time wall() const { return start + passed; }
    [[nodiscard]] bool lists(std::uint64_t i) const {
        return newest()->bits->may_contain(key_of(name_of(url_of(i), secret), secret));
    }
    [[nodiscard]] std::shared_ptr<const published> newest() const { return source.digests().now(); }

    std::uint64_t drawn = 100;
    std::function<void()> at_draw;  // in the midst of a tick that ends a resize
    std::chrono::milliseconds passed{0};
    fleet_secret secret;
    digest_source source;
};

}  // namespace

TEST_SUITE("peer/digest_source") {
    TEST_CASE("nothing is published before the index is loaded, and then at once") {
        world w;
        w.hold(1);
        w.run(60s);
        CHECK(w.newest() == nullptr);
        w.source.loaded();
        w.pass(100ms);
        REQUIRE(w.newest() != nullptr);
        CHECK(w.lists(1));
        CHECK(w.newest()->bits->stamp().keys == 1);
        CHECK(w.newest()->bits->stamp().seed == w.secret.id());
        CHECK(w.source.figures().loaded);
    }

    TEST_CASE(
        "what is said while a tick is under way is in the first digest, if loaded() was too") {
        world w;
        constexpr std::uint64_t before = 2'000, after = 200;
        for (std::uint64_t i = 0; i < before; ++i) {
            w.hold(i, holder::disk);
        }
        w.at_draw = [&] {
            for (std::uint64_t i = before; i < before + after; ++i) {
                w.hold(i, holder::disk);
            }
            w.source.loaded();
        };
        for (int i = 0; i < 20 && !w.newest(); ++i) {
            w.pass(100ms);
        }
        REQUIRE_FALSE(w.at_draw);
        REQUIRE(w.newest() != nullptr);
        CHECK(w.newest()->bits->stamp().keys == before + after);
    }

    TEST_CASE("nodes of which a gateway makes one digest have so many times the bits") {
        const auto bits_of = [](unsigned nodes) {
            config::digest_options options;
            options.site_nodes = nodes;
            world w{plan_of(options, {})};
            w.source.loaded();
            for (std::uint64_t i = 0; i < 3000; ++i) {
                w.hold(i);
            }
            w.settle();
            w.settle();
            CHECK(w.lists(2999));
            return w.newest()->bits->shape().bits;
        };
        const auto one = bits_of(1);
        CHECK(bits_of(2) == 2 * one);
        CHECK(bits_of(3) == 4 * one);
        CHECK(bits_of(16) == 16 * one);
    }

    TEST_CASE("an empty cache publishes an empty digest") {
        world w;
        w.source.loaded();
        w.pass(100ms);
        REQUIRE(w.newest() != nullptr);
        CHECK(w.newest()->bits->bits_on() == 0);
    }

    TEST_CASE("a key is listed while any tier holds it") {
        world w;
        w.source.loaded();
        w.hold(1, holder::memory);
        w.hold(1, holder::disk);
        w.settle();
        CHECK(w.lists(1));
        w.drop(1, holder::memory);
        w.settle();
        CHECK(w.lists(1));
        w.drop(1, holder::disk);
        w.drop(1, holder::disk);
        w.settle();
        CHECK_FALSE(w.lists(1));
        CHECK(w.source.figures().known == 0);
        CHECK(w.source.figures().bits_on == 0);
    }

    TEST_CASE("what goes stale leaves within publish_after, what is refreshed returns") {
        world w;
        w.source.loaded();
        w.hold(1, holder::memory, 60s);
        w.hold(2, holder::memory, 1h);
        w.run(31s);
        CHECK(w.lists(1));
        w.run(59s);
        CHECK_FALSE(w.lists(1));
        CHECK(w.lists(2));
        CHECK(w.source.figures().known == 2);
        CHECK(w.source.figures().listed == 1);
        w.hold(1, holder::memory, 10min);
        w.run(31s);
        CHECK(w.lists(1));
    }

    TEST_CASE("a clock that is set back lists nothing for longer, and dates what is published") {
        world w;
        w.hold(1, holder::memory, 60s);
        w.source.loaded();
        w.pass(100ms);
        REQUIRE(w.lists(1));
        const auto before = w.newest()->at;
        for (int tenths = 0; tenths < 900; ++tenths) {
            w.passed += 100ms;
            w.source.tick(zero + w.passed, w.wall(), w.wall() - 2h);
        }
        CHECK_FALSE(w.lists(1));
        CHECK(w.newest()->at < before - 1h);
        // What comes from then on is listed for as long as it is fresh.
        w.hold(2, holder::memory, 60s);
        w.source.settle(zero + w.passed, w.wall(), w.wall() - 2h);
        CHECK(w.lists(2));
    }

    TEST_CASE("what is fresh for too short to be of use is not listed") {
        world w;
        w.source.loaded();
        w.hold(1, holder::memory, 5s);
        w.hold(2, holder::memory, 0s);
        w.hold(3, holder::memory, -100s);
        w.settle();
        CHECK(w.source.figures().listed == 0);
        CHECK(w.source.figures().known == 3);
    }

    TEST_CASE("of two tiers the later freshness counts, of one tier the newer word") {
        world w;
        w.source.loaded();
        w.hold(1, holder::memory, 1h);
        w.hold(1, holder::disk, 60s);
        w.hold(2, holder::memory, 1h);
        w.hold(2, holder::memory, 60s);
        w.pass(2min);
        w.settle();
        CHECK(w.lists(1));
        CHECK_FALSE(w.lists(2));
    }

    TEST_CASE("a soft purge takes a key out, and storing anew brings it back") {
        world w;
        w.source.loaded();
        w.hold(1);
        w.source.outdated(nth_key(1, 1));
        w.settle();
        CHECK_FALSE(w.lists(1));
        CHECK(w.source.figures().known == 1);
        w.hold(1);
        w.settle();
        CHECK(w.lists(1));
    }

    TEST_CASE("https keys are listed under a secret alone, and in no Squid's form") {
        const std::string url = "https://origin.example/a";
        source_plan plan;
        plan.squid = true;
        for (const bool shared : {false, true}) {
            CAPTURE(shared);
            world w{plan,
                    shared ? fleet_secret::from_content(std::string(40, 's')).value()
                           : fleet_secret::none()};
            w.source.loaded();
            w.pass(100ms);
            const auto empty = w.source.squid_digest().wire;
            REQUIRE(empty != nullptr);
            w.source.held(holder::memory, nth_key(1, 1), url, w.wall() + 1h, w.wall());
            w.settle();
            CHECK(w.source.figures().known == (shared ? 1 : 0));
            CHECK(w.newest()->bits->may_contain(key_of(name_of(url, w.secret), w.secret)) ==
                  shared);
            CHECK(*w.source.squid_digest().wire == *empty);
            // As http's would be.
            w.hold(2);
            w.settle();
            CHECK(w.lists(2));
            CHECK(*w.source.squid_digest().wire != *empty);
            w.drop(1);
            w.drop(2);
            w.settle();
            CHECK(w.source.figures().known == 0);
            CHECK(*w.source.squid_digest().wire == *empty);
        }
    }

    TEST_CASE("an accelerator's keys are nobody else's to ask for") {
        world w;
        for (const char* key : {"//a/b http://up", "https://a/b http://up"}) {
            w.source.held(holder::memory, nth_key(1, 1), key, w.wall() + 1h, w.wall());
        }
        w.settle();
        CHECK(w.source.figures().known == 0);
    }

    TEST_CASE("enough change publishes, little change waits for publish_after") {
        world w;
        w.source.loaded();
        for (std::uint64_t i = 0; i < 1000; ++i) {
            w.hold(i);
        }
        w.pass(100ms);
        const auto first = w.newest();
        w.hold(5000);
        w.run(20s);
        CHECK(w.newest() == first);
        w.run(11s);
        const auto second = w.newest();
        CHECK(second != first);
        for (std::uint64_t i = 0; i < 15; ++i) {
            w.drop(i);
        }
        w.run(1500ms);
        const auto third = w.newest();
        CHECK(third != second);
        CHECK(third->bits->stamp().generation.counter == 3);
        CHECK(third->bits->stamp().generation.epoch == first->bits->stamp().generation.epoch);
        w.run(90s);
        CHECK(w.newest() == third);  // nothing changed since
    }

    TEST_CASE("a digest that was fetched is a base for deltas, one that was not is none") {
        world w;
        w.source.loaded();
        for (std::uint64_t i = 0; i < 1000; ++i) {
            w.hold(i);
        }
        w.settle();
        const auto first = w.newest();
        first->fetched = true;
        w.hold(2000);
        w.settle();
        const auto second = w.newest();
        w.hold(2001);
        w.settle();
        const auto third = w.newest();
        REQUIRE(third->since(first->bits->stamp().generation) != nullptr);
        CHECK(third->since(second->bits->stamp().generation) == nullptr);
        const auto delta = third->since(first->bits->stamp().generation);
        CHECK(delta->size() < third->whole->size() / 4);
        const auto made = filter::apply_delta(*delta, *first->bits);
        REQUIRE(made.has_value());
        CHECK(made->checksum() == third->bits->checksum());
        CHECK(third->since({.epoch = 1, .counter = 1}) == nullptr);
    }

    TEST_CASE("what outgrows its filter moves to a larger one, under a new epoch") {
        world w;
        w.source.loaded();
        w.settle();
        const auto before = w.newest();
        for (std::uint64_t i = 0; i < 3000; ++i) {
            w.hold(i);
        }
        w.run(3s);
        const auto after = w.newest();
        CHECK(w.source.figures().resizes >= 1);
        CHECK(w.source.figures().capacity >= 3000);
        CHECK(after->bits->stamp().generation.epoch != before->bits->stamp().generation.epoch);
        CHECK(after->bits->shape().bits > before->bits->shape().bits);
        for (std::uint64_t i = 0; i < 3000; ++i) {
            REQUIRE(w.lists(i));
        }
        CHECK(after->bits->false_positive_rate() < 0.0105);
        for (std::uint64_t i = 100; i < 3000; ++i) {
            w.drop(i);
        }
        w.run(3s);
        CHECK(w.source.figures().capacity == 1024);
        CHECK(w.lists(50));
    }

    TEST_CASE("a larger filter that no epoch can be drawn for is not taken, until one can") {
        world w;
        w.source.loaded();
        w.settle();
        const auto before = w.newest();
        for (std::uint64_t i = 0; i < 2000; ++i) {
            w.hold(i);
        }
        w.at_draw = [] { throw std::runtime_error{"no random numbers"}; };
        CHECK_THROWS_AS(w.pass(100ms), std::runtime_error);
        w.hold(2000);
        w.pass(100ms);
        CHECK(w.source.figures().resizes == 0);
        CHECK(w.source.figures().resizing);
        CHECK(w.source.figures().capacity == 1024);
        w.run(2s);
        CHECK(w.source.figures().resizes == 1);
        CHECK(w.newest()->bits->stamp().generation.epoch != before->bits->stamp().generation.epoch);
        CHECK(w.newest()->bits->stamp().keys == 2001);
        for (std::uint64_t i = 0; i <= 2000; ++i) {
            REQUIRE(w.lists(i));
        }
    }

    TEST_CASE("wherever memory ends in a publication, the next has all of it, in both forms") {
        for (unsigned still = 0; still < 30; ++still) {
            CAPTURE(still);
            source_plan plan;
            plan.squid = true;
            world w{plan};
            w.source.loaded();
            w.settle();
            const auto before = w.newest();
            w.hold(1);
            bool lacked = false;
            {
                const net::memory_ends lack{still, 1};
                try {
                    w.pass(30s);
                } catch (const std::bad_alloc&) {
                    lacked = true;
                }
            }
            if (lacked) {
                CHECK(w.newest() == before);  // whole, or not at all
            }
            w.pass(1s);
            REQUIRE(w.newest() != before);
            CHECK(w.newest()->bits->stamp().generation.counter == 2);
            CHECK(w.lists(1));
            const auto squid = filter::squid_digest::decode(*w.source.squid_digest().wire);
            REQUIRE(squid.has_value());
            CHECK(squid->may_contain(filter::squid_key_of(url_of(1))));
        }
    }

    TEST_CASE("digests of any two caches fold to one size") {
        std::vector<std::uint64_t> sizes;
        for (const std::uint64_t keys : {10u, 1025u, 1700u, 3001u, 5000u, 9999u}) {
            world w;
            w.source.loaded();
            for (std::uint64_t i = 0; i < keys; ++i) {
                w.hold(i);
            }
            w.settle();
            CHECK(w.source.figures().capacity >= keys);
            CHECK(w.newest()->bits->false_positive_rate() < 0.0105);
            sizes.push_back(w.newest()->bits->shape().bits);
        }
        for (std::size_t i = 1; i < sizes.size(); ++i) {
            CAPTURE(i);
            CHECK(sizes[i] % sizes[i - 1] == 0);
        }
        // Few sizes: what is looked up is looked up in few tables.
        CHECK(sizes[1] == sizes[2] / 2);
        CHECK(sizes.back() == sizes.front() * 16);
    }

    TEST_CASE("Squid's form lists what ours does") {
        source_plan plan;
        plan.squid = true;
        world w{plan};
        CHECK(w.source.squid_digest().wire == nullptr);
        w.source.loaded();
        for (std::uint64_t i = 0; i < 3000; ++i) {
            w.hold(i);
        }
        w.settle();
        for (std::uint64_t i = 0; i < 1000; ++i) {
            w.drop(i);
        }
        w.settle();
        const auto wire = w.source.squid_digest().wire;
        REQUIRE(wire != nullptr);
        const auto read = filter::squid_digest::decode(*wire);
        REQUIRE(read.has_value());
        CHECK(read->fill() < 0.45);
        unsigned wrong = 0;
        for (std::uint64_t i = 0; i < 3000; ++i) {
            const bool there = read->may_contain(filter::squid_key_of(url_of(i)));
            if (i >= 1000) {
                REQUIRE(there);
            }
            wrong += i < 1000 && there ? 1 : 0;
        }
        CHECK(wrong < 40);  // 2000 keys of 4800: 0.5 % expected
    }

    TEST_CASE("Squid's form has a second of its own, and keeps it until it differs") {
        source_plan plan;
        plan.squid = true;
        world w{plan};
        w.source.loaded();
        w.hold(1);
        w.settle();
        const auto first = w.source.squid_digest();
        REQUIRE(first.wire != nullptr);
        CHECK(first.changed == std::chrono::floor<std::chrono::seconds>(first.changed));
        w.hold(2);
        w.drop(2);
        w.settle();
        const auto same = w.source.squid_digest();
        CHECK(*same.wire == *first.wire);
        CHECK(same.changed == first.changed);
        auto before = first.changed;
        for (std::uint64_t i = 3; i < 8; ++i) {  // in no time
            w.hold(i);
            w.settle();
            const auto next = w.source.squid_digest();
            CHECK(next.changed > before);
            before = next.changed;
        }
        const auto figures = w.source.figures().squid;
        CHECK(figures.bits_per_entry == 8);
        CHECK(figures.mask_bytes == first.wire->size() - 128);
        const auto read = filter::squid_digest::decode(*w.source.squid_digest().wire);
        REQUIRE(read.has_value());
        REQUIRE(figures.fill.has_value());
        CHECK(*figures.fill == doctest::Approx(read->fill()));
        CHECK(figures.capacity == read->size().capacity);
    }

    TEST_CASE("any threads may tell it while one keeps it") {
        world w;
        w.source.loaded();
        std::vector<std::jthread> tellers;
        for (std::uint64_t t = 0; t < 3; ++t) {
            tellers.emplace_back([&w, t] {
                for (std::uint64_t i = 0; i < 2000; ++i) {
                    const auto key = t * 10'000 + i;
                    w.source.held(holder::memory, nth_key(1, key), url_of(key), start + 1h, start);
                    if (i % 2 == 0) {
                        w.source.gone(holder::memory, nth_key(1, key));
                    }
                    (void)w.source.figures();
                    (void)w.source.digests().now();
                }
            });
        }
        for (int i = 0; i < 50; ++i) {
            w.pass(100ms);
        }
        tellers.clear();
        w.settle();
        CHECK(w.source.figures().known == 3000);
        CHECK(w.lists(10'001));
    }
}

}  // namespace reprise::proxy::peer::test::of_digest_source
