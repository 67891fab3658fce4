#include "filter/admission.hpp"
#include "filter/digest_replica.hpp"
#include "proxy/peer/seen_source.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace reprise::proxy::peer::test::of_seen_source {
namespace {

using namespace std::chrono_literals;
using filter::test::nth_key;

constexpr wall_time now{1'763'668'089'000ms};
constexpr steady_time start{1h};
const auto second = std::chrono::floor<std::chrono::seconds>(now);

}  // namespace

TEST_SUITE("peer/seen_source") {
    TEST_CASE("what was noted is published after a while, once, and as a change") {
        filter::admission_filter seen{{.objects = 10'000, .age = 1h}, second};
        seen_source source{filter::test::test_seed(),
                           30s,
                           [&seen](const filter::digest_stamp& stamp) {
                               return std::make_unique<filter::digest>(seen.recent_digest(stamp));
                           },
                           [] { return 9; }};
        for (std::uint64_t i = 0; i < 5000; ++i) {
            seen.note(nth_key(1, i), second);
        }
        source.tick(start, now);
        const auto first = source.digests().now();
        REQUIRE(first != nullptr);
        CHECK(first->bits->may_contain(nth_key(1, 4999)));
        first->fetched = true;
        source.tick(start + 31s, now);
        CHECK(source.digests().now() == first);
        seen.note(nth_key(1, 5000), second);
        source.tick(start + 32s, now);
        CHECK(source.digests().now() == first);
        source.tick(start + 62s, now);
        const auto next = source.digests().now();
        CHECK(next != first);
        CHECK(next->since(first->bits->stamp().generation) != nullptr);
    }

    TEST_CASE("a filter of another size begins a new epoch, whole") {
        auto seen = std::make_unique<filter::admission_filter>(
            filter::admission_settings{.objects = 10'000, .age = 1h}, second);
        std::uint64_t drawn = 0;
        seen_source source{filter::test::test_seed(),
                           30s,
                           [&seen](const filter::digest_stamp& stamp) {
                               return std::make_unique<filter::digest>(seen->recent_digest(stamp));
                           },
                           [&drawn] { return ++drawn; }};
        seen->note(nth_key(1, 1), second);
        source.tick(start, now);
        const auto small = source.digests().now();
        REQUIRE(small != nullptr);
        small->fetched = true;
        seen = std::make_unique<filter::admission_filter>(
            filter::admission_settings{.objects = 20'000, .age = 1h}, second);
        seen->note(nth_key(1, 2), second);
        source.tick(start + 31s, now);
        const auto large = source.digests().now();
        REQUIRE(large != small);
        CHECK(large->bits->may_contain(nth_key(1, 2)));
        CHECK(large->bits->stamp().generation ==
              filter::digest_generation{.epoch = 2, .counter = 1});
        CHECK(large->since(small->bits->stamp().generation) == nullptr);
        seen->note(nth_key(1, 3), second);
        source.tick(start + 62s, now);
        CHECK(source.digests().now()->bits->stamp().generation ==
              filter::digest_generation{.epoch = 2, .counter = 2});
    }

    TEST_CASE("what is noted is news at once, and what is forgotten when the filter is looked at") {
        const auto by_name = [](std::uint64_t name) { return nth_key(1, name); };
        auto time = second;
        filter::admission_filter seen{{.objects = 1'000, .age = 1h}, time};
        std::uint64_t drawn = 0;
        unsigned stirred = 0, told = 0;
        seen_source source{filter::test::test_seed(),
                           30s,
                           [&seen](const filter::digest_stamp& stamp) {
                               return std::make_unique<filter::digest>(seen.recent_digest(stamp));
                           },
                           [&drawn] { return ++drawn; },
                           {.every = 200ms,
                            .key_of = by_name,
                            .stir = [&stirred] { ++stirred; },
                            .told = [&told] { ++told; }}};
        auto steady = start;
        std::unique_ptr<filter::digest_replica> held;
        unsigned news = 0, wholes = 0;
        const auto follow = [&] {
            for (int i = 0; i < 20; ++i) {
                const auto from = held ? held->now().stamp().generation
                                       : filter::digest_generation{};
                const auto found = source.news()->look(from);
                if (found.what == news_shelf::state::current) {
                    return;
                }
                if (found.what == news_shelf::state::ready) {
                    REQUIRE(held->apply(*found.wire, by_name).has_value());
                    ++news;
                    continue;
                }
                const auto newest = source.digests().now();
                if (found.what == news_shelf::state::beyond && newest &&
                    source.news()->reaches(newest->bits->stamp().generation)) {
                    held = std::make_unique<filter::digest_replica>(
                        *filter::decode_digest(*newest->whole, filter::test::test_seed()));
                    ++wholes;
                    continue;
                }
                source.news()->want_whole();
                steady += 100ms;
                source.tick(steady, now);
            }
            FAIL("it does not catch up");
        };
        const auto sight = [&](std::uint64_t name) {
            seen.note(by_name(name), time);
            source.noted(name);
        };
        sight(0);
        source.tick(steady, now);
        follow();
        CHECK(held->now().may_contain(by_name(0)));
        for (std::uint64_t i = 1; i < 300; ++i) {
            sight(i);
            steady += 200ms;
            source.tick(steady, now);
            follow();
            REQUIRE(held->now().may_contain(by_name(i)));
        }
        CHECK(wholes == 1);
        CHECK(news >= 299);
        CHECK(stirred >= 299);
        // A generation is forgotten: nobody says so, and the filter is looked at every 30 s.
        for (std::uint64_t i = 1000; i < 4000; ++i) {
            sight(i);
        }
        steady += 31s;
        source.tick(steady, now);
        follow();
        const auto own = seen.recent_digest(filter::test::stamp_of(1));
        held->read([&](const filter::digest& is) { CHECK(is.checksum() == own.checksum()); });
        CHECK_FALSE(held->now().may_contain(by_name(0)));
    }

    TEST_CASE("what was seen waits for its own pace, and goes along with what is told sooner") {
        filter::admission_filter seen{{.objects = 1'000, .age = 1h}, second};
        seen_source source{
            filter::test::test_seed(),
            30s,
            [&seen](const filter::digest_stamp& stamp) {
                return std::make_unique<filter::digest>(seen.recent_digest(stamp));
            },
            [] { return 9; },
            {.every = 200ms, .key_of = [](std::uint64_t name) { return nth_key(1, name); }}};
        source.tick(start, now);
        const auto steps_after = [&](std::uint64_t name, steady_time steady, bool rides) {
            const auto before = source.news()->newest().counter;
            source.noted(name);
            source.tick(steady, now, rides);
            return source.news()->newest().counter - before;
        };
        CHECK(steps_after(1, start + 200ms, false) == 1);
        CHECK(steps_after(2, start + 300ms, false) == 0);
        CHECK(steps_after(3, start + 310ms, true) == 1);
        CHECK(steps_after(4, start + 500ms, false) == 0);  // its pace begins anew then
        CHECK(steps_after(5, start + 510ms, false) == 1);
        // Where there is nothing to tell nothing goes along.
        const auto newest = source.news()->newest();
        source.tick(start + 520ms, now, true);
        CHECK(source.news()->newest() == newest);
    }

    TEST_CASE("what a busy second brings is news, also of a filter that is still small") {
        const auto by_name = [](std::uint64_t name) { return nth_key(1, name); };
        filter::admission_filter seen{{.objects = 1u << 16, .age = 1h}, second};
        std::uint64_t drawn = 0;
        seen_source source{filter::test::test_seed(),
                           30s,
                           [&seen](const filter::digest_stamp& stamp) {
                               return std::make_unique<filter::digest>(seen.recent_digest(stamp));
                           },
                           [&drawn] { return ++drawn; },
                           {.every = 1s, .key_of = by_name}};
        auto steady = start;
        source.tick(steady, now);
        for (std::uint64_t i = 0; i < 9'000; ++i) {
            if (i % 3'000 == 0) {
                (void)source.news()->look(source.news()->newest());
            }
            seen.note(by_name(i), second);
            source.noted(i);
            if (i % 3'000 == 2'999) {
                const auto before = source.news()->newest();
                steady += 1s;
                source.tick(steady, now);
                CHECK(source.news()->newest() != before);
                (void)source.news()->look(before);
                source.tick(steady, now);
                CHECK(source.news()->look(before).what == news_shelf::state::ready);
            }
        }
    }

    TEST_CASE("a key that any sibling saw is seen elsewhere, until its digest is taken away") {
        seen_elsewhere all;
        seen_elsewhere::reader reader{all};
        CHECK_FALSE(reader.may_contain(nth_key(1, 1)));
        const auto size = filter::digest_size(1000, 1e-4);
        const auto digest = [&size](std::uint64_t from, std::uint64_t to) {
            return std::make_shared<const filter::digest>(
                filter::test::digest_of_keys(size, from, to));
        };
        CHECK(all.put(0, digest(0, 100)));
        CHECK(all.put(63, digest(100, 200)));
        CHECK(reader.may_contain(nth_key(1, 1)));
        CHECK(reader.may_contain(nth_key(1, 150)));
        CHECK_FALSE(reader.may_contain(nth_key(1, 250)));
        all.remove(63);
        CHECK_FALSE(reader.may_contain(nth_key(1, 150)));
    }

    TEST_CASE("what siblings saw takes no more together than it may") {
        const auto size = filter::digest_size(1000, 1e-4);
        const auto digest = std::make_shared<const filter::digest>(
            filter::test::digest_of_keys(size, 0, 100));
        seen_elsewhere all{2 * digest->bytes()};
        seen_elsewhere::reader reader{all};
        CHECK(all.put(0, digest));
        CHECK(all.put(1, digest));
        CHECK(all.put(1, digest));  // in its own place
        CHECK_FALSE(all.put(2, digest));
        all.remove(0);
        CHECK(all.put(2, digest));
        const auto larger = std::make_shared<const filter::digest>(
            filter::test::digest_of_keys(filter::digest_size(4000, 1e-4), 100, 200));
        CHECK_FALSE(all.put(2, larger));
        CHECK_FALSE(reader.may_contain(nth_key(1, 150)));
        all.remove(1);
        CHECK_FALSE(reader.may_contain(nth_key(1, 50)));  // nor is what it replaces
    }

    TEST_CASE("readers see whole tables while they change") {
        seen_elsewhere all;
        const auto size = filter::digest_size(1000, 1e-4);
        const auto digest = std::make_shared<const filter::digest>(
            filter::test::digest_of_keys(size, 0, 100));
        CHECK(all.put(0, digest));
        std::jthread changer{[&all, &digest](const std::stop_token& stop) {
            for (unsigned i = 0; !stop.stop_requested(); ++i) {
                (void)all.put(1 + i % 63, i % 2 == 0 ? digest : nullptr);
            }
        }};
        seen_elsewhere::reader reader{all};
        for (int i = 0; i < 2000; ++i) {
            REQUIRE(reader.may_contain(nth_key(1, 5)));
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_seen_source
