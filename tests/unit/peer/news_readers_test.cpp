// Readers that follow a source by its news, ask from where they are, or lag behind: messages, wholes and their bounds.

#include "tests/unit/peer/news_bench.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace reprise::proxy::peer::test::of_news_readers {

using namespace of_news_bench;

TEST_SUITE("peer/news_readers") {
    TEST_CASE("where nobody asks no message is made, and no whole") {
        world w;
        w.source.loaded();
        w.pass(100ms);
        const auto first = w.source.digests().now();
        for (std::uint64_t i = 0; i < 1000; ++i) {
            w.hold(i);
            w.pass(50ms);
        }
        CHECK(w.source.figures().news.steps > 200);
        CHECK(w.source.figures().news.messages == 0);
        CHECK(w.source.figures().generations == 2);  // once in publish_after, for people
        CHECK(w.source.digests().now() != first);
    }

    TEST_CASE("one message serves all who ask from the same") {
        world w;
        w.source.loaded();
        w.pass(100ms);
        std::vector<std::unique_ptr<reader>> readers;
        for (int i = 0; i < 8; ++i) {
            readers.push_back(std::make_unique<reader>(w));
            readers.back()->catch_up();
        }
        for (std::uint64_t i = 0; i < 50; ++i) {
            w.hold(i);
            w.pass(200ms);
            for (auto& one : readers) {
                REQUIRE(one->ask());
                REQUIRE(one->lists(i));
            }
        }
        CHECK(w.source.figures().news.messages == 50);
    }

    TEST_CASE("whoever follows, whenever he asks, lists what the source does") {
        for (const double rate : {0.01, 0.001, 0.0001}) {
            CAPTURE(rate);
            std::mt19937_64 random{4};
            auto with = plan();
            with.false_positive_rate = rate;
            with.least_capacity = 256;
            world w{with};
            w.source.loaded();
            w.pass(100ms);
            reader close{w}, lagging{w}, sleeping{w};
            std::vector<std::uint64_t> there;
            std::uint64_t next = 0;
            for (int i = 0; i < 2000; ++i) {
                for (auto events = random() % 5; events > 0; --events) {
                    if (there.empty() || random() % 3 != 0) {
                        there.push_back(next);
                        w.hold(next++, random() % 20 == 0 ? 20s : 1h);
                    } else {
                        std::swap(there[random() % there.size()], there.back());
                        w.drop(there.back());
                        there.pop_back();
                    }
                }
                w.pass(100ms);
                (void)close.ask();
                if (random() % 20 == 0) {
                    (void)lagging.ask();
                }
                if (random() % 500 == 0) {
                    (void)sleeping.ask();
                }
            }
            CHECK(w.source.figures().resizes >= 2);
            for (auto* one : {&close, &lagging, &sleeping}) {
                one->catch_up();
            }
            w.source.settle(zero + w.passed, w.wall());
            for (auto* one : {&close, &lagging, &sleeping}) {
                one->catch_up();
                std::uint64_t missing = 0;
                const auto& own = *w.source.digests().now()->bits;
                if (own.stamp().generation == w.shelf().newest()) {
                    CHECK(std::ranges::equal(one->held->now().words(), own.words()));
                }
                CHECK(one->held->now().bits_on() == w.source.figures().bits_on);
                for (const auto i : there) {
                    missing += one->lists(i) ? 0 : 1;  // only what went stale
                }
                CHECK(missing <= w.source.figures().known - w.source.figures().listed);
            }
            CHECK(close.news > 300);
            CHECK(close.wholes <= w.source.figures().resizes + 2);
            CHECK(lagging.news > 5);
        }
    }

    TEST_CASE("who comes from before all that is remembered is told the whole, made for him") {
        auto with = plan();
        with.least_capacity = 1 << 14;
        world w{with};
        w.source.loaded();
        w.pass(100ms);
        reader r{w};
        r.catch_up();
        const auto before = w.source.digests().now();
        for (std::uint64_t i = 0; i < 6000; ++i) {
            w.hold(i);
            if (i % 50 == 0) {
                w.pass(200ms);
            }
        }
        CHECK(w.source.digests().now() == before);
        CHECK_FALSE(w.shelf().reaches(before->bits->stamp().generation));
        w.pass(2s);  // nothing more is to be told
        const auto stirred = w.stirred;
        const auto told = w.told;
        CHECK_FALSE(r.ask());
        CHECK(w.stirred == stirred + 1);
        w.pass(2s);
        CHECK(w.told == told + 1);  // or whoever waits for it would go on waiting
        r.catch_up();
        CHECK(r.wholes == 2);
        CHECK(r.lists(5999));
        CHECK(w.source.digests().now() != before);
        CHECK(w.source.figures().news.journal_bytes < 200'000);
    }

    TEST_CASE(
        "while somebody follows without news, or a Squid does, the whole is made at its pace") {
        for (const bool squid : {false, true}) {
            auto with = plan();
            with.squid = squid;
            world w{with};
            w.source.loaded();
            w.pass(100ms);
            const auto first = w.source.digests().now();
            if (!squid) {
                w.shelf().note_plain();
            }
            w.hold(1);
            w.pass(31s);
            w.pass(100ms);
            CHECK(w.source.digests().now() != first);
            CHECK(w.source.digests().now()->bits->stamp().generation == w.shelf().newest());
        }
    }

    TEST_CASE("what came and left again between two wholes, and was told, is not left with who "
              "asks for wholes") {
        for (const bool squid : {false, true}) {
            CAPTURE(squid);
            auto with = plan();
            with.squid = squid;
            world w{with};
            // So many that one more is no change worth a whole.
            for (std::uint64_t i = 1000; i < 1500; ++i) {
                w.hold(i);
            }
            auto r = quiet_reader(w);
            const auto first = w.source.digests().now();
            w.hold(1);
            w.pass(200ms);
            CHECK(r.ask());
            CHECK(r.lists(1));
            w.drop(1);
            w.pass(200ms);
            CHECK(w.source.figures().changed == 0);
            if (!squid) {
                w.shelf().note_plain();
            }
            // It holds something newer than was published, and would be sent the older one.
            w.pass(31s);
            const auto next = w.source.digests().now();
            REQUIRE(next != first);
            CHECK(next->bits->stamp().generation == w.shelf().newest());
            CHECK(std::ranges::equal(next->bits->words(), first->bits->words()));
            w.pass(31s);
            CHECK(w.source.digests().now() == next);  // once
        }
    }

    TEST_CASE("a new size is a new epoch at once") {
        auto with = plan();
        with.least_capacity = 64;
        world w{with};
        w.source.loaded();
        w.pass(100ms);
        reader r{w};
        r.catch_up();
        const auto before = w.shelf().newest();
        for (std::uint64_t i = 0; i < 200; ++i) {
            w.hold(i);
        }
        w.pass(100ms);
        CHECK(w.shelf().newest().epoch != before.epoch);
        r.catch_up();
        CHECK(r.wholes == 2);
        CHECK(r.lists(199));
    }

    TEST_CASE("wishes are bounded: beyond that one is told the whole") {
        world w;
        w.source.loaded();
        w.pass(100ms);
        const auto first = w.shelf().newest();
        for (std::uint64_t i = 0; i < 200; ++i) {
            w.hold(i);
            w.pass(200ms);
        }
        const auto newest = w.shelf().newest();
        unsigned soon = 0;
        for (auto base = first.counter; base < newest.counter; ++base) {
            const auto what = w.shelf().look({.epoch = first.epoch, .counter = base}).what;
            soon += what == news_shelf::state::soon ? 1 : 0;
        }
        CHECK(soon == news_shelf::most_bases +
                          1);  // the last, from which nearly all ask, is beyond no bound
        w.pass(100ms);
        CHECK(w.shelf().look(first).what == news_shelf::state::ready);
        CHECK(w.shelf().look({.epoch = first.epoch, .counter = newest.counter + 1}).what ==
              news_shelf::state::beyond);
        CHECK(w.shelf().look({.epoch = first.epoch + 7, .counter = 1}).what ==
              news_shelf::state::beyond);
    }

    TEST_CASE("whoever asks from many generations keeps the news from nobody") {
        world w;
        w.source.loaded();
        w.pass(100ms);
        for (std::uint64_t i = 0; i < 200; ++i) {
            w.hold(i);
            w.pass(200ms);
        }
        const auto before = w.shelf().newest();
        const auto look_back = [&w, &before](std::uint64_t by) {
            return w.shelf().look({.epoch = before.epoch, .counter = before.counter - by}).what;
        };
        for (std::uint64_t i = 1; i <= 3 * news_shelf::most_bases; ++i) {
            (void)look_back(i);
        }
        CHECK(look_back(0) == news_shelf::state::current);
        w.hold(1000);
        w.pass(200ms);
        CHECK(look_back(0) == news_shelf::state::ready);
        // And those who come back a step later find that theirs is being made.
        w.hold(1001);
        w.pass(200ms);
        for (std::uint64_t i = 1; i <= 3 * news_shelf::most_bases; ++i) {
            (void)look_back(i);
        }
        const auto last = w.shelf().newest().counter - 1;
        CHECK(w.shelf().look({.epoch = before.epoch, .counter = last}).what !=
              news_shelf::state::beyond);
    }

    TEST_CASE("without news all is as it was") {
        auto with = plan();
        with.news = 0ms;
        world w{with};
        w.source.loaded();
        w.pass(100ms);
        CHECK(w.source.news() == nullptr);
        w.hold(1);
        w.pass(31s);
        CHECK(w.stirred == 0);
        CHECK(w.source.digests().now()->bits->stamp().generation.counter == 2);
    }
}

}  // namespace reprise::proxy::peer::test::of_news_readers
