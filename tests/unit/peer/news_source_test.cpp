// A source that tells news, and readers that follow it by those or lag behind.

#include "filter/digest_replica.hpp"
#include "filter/digest_wire.hpp"
#include "proxy/peer/digest_source.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::peer::test::of_news_source {
namespace {

using namespace std::chrono_literals;
using filter::test::nth_key;

constexpr wall_time start{1'763'668'089'000ms};
constexpr steady_time zero{1h};

std::string url_of(std::uint64_t i) {
    return "http://origin.example/" + std::to_string(i);
}

source_plan plan() {
    source_plan made;
    made.news = 200ms;
    return made;
}

struct world {
    explicit world(const source_plan& with = plan())
        : source{with,
                 secret,
                 [this] { return ++drawn; },
                 {.stir = [this] { ++stirred; },
                  .told =
                      [this] {
                          ++told;
                          std::exchange(on_told, [] {})();
                      },
                  .readers = [this] { return waiting; }}} {}

    void hold(std::uint64_t i, std::chrono::seconds fresh = 1h) {
        source.held(holder::memory, nth_key(1, i), url_of(i), wall() + fresh, wall());
    }
    void drop(std::uint64_t i) { source.gone(holder::memory, nth_key(1, i)); }
    void tell(holder by, std::uint64_t i, std::chrono::seconds fresh = 1h) {
        source.held(by, nth_key(1, i), url_of(i), wall() + fresh, wall());
    }
    void take_back(holder by, std::uint64_t i) { source.gone(by, nth_key(1, i)); }
    void pass(std::chrono::milliseconds time) {
        passed += time;
        source.tick(zero + passed, wall());
    }
    [[nodiscard]] wall_time wall() const { return start + passed; }
    [[nodiscard]] news_shelf& shelf() { return *source.news(); }

    std::uint64_t drawn = 100;
    unsigned stirred = 0, told = 0;
    std::function<void()> on_told = [] {};
    std::size_t waiting = 0;  // for news
    std::chrono::milliseconds passed{0};
    fleet_secret secret = fleet_secret::none();
    digest_source source;
};

/// What a sibling does, without a network: asks from what it holds, and takes what is there.
struct reader {
    explicit reader(world& of) : w{of} {}

    /// False: nothing was there yet.
    bool ask() {
        if (held) {
            const auto found = w.shelf().look(held->now().stamp().generation);
            if (found.what == news_shelf::state::current) {
                return true;
            }
            if (found.what == news_shelf::state::ready) {
                const auto by_name = [this](std::uint64_t name) { return key_of(name, w.secret); };
                const auto turned = held->apply(*found.wire, by_name);
                REQUIRE(turned.has_value());
                ++news;
                bytes += found.wire->size();
                return ask();  // for what comes next
            }
            if (found.what == news_shelf::state::soon) {
                return false;
            }
        }
        const auto newest = w.source.digests().now();
        if (!newest ||
            w.shelf().look(newest->bits->stamp().generation).what == news_shelf::state::beyond) {
            w.shelf().want_whole();
            return false;
        }
        held = std::make_unique<filter::digest_replica>(
            *filter::decode_digest(*newest->whole, w.secret.id()));
        ++wholes;
        return ask();
    }
    /// Asks until it holds what is the newest.
    void catch_up() {
        for (int i = 0; i < 50; ++i) {
            if (ask() && held->now().stamp().generation == w.shelf().newest()) {
                return;
            }
            w.pass(100ms);
        }
        FAIL("it does not catch up");
    }
    /// News as soon as it may be told, until the pace is all that is left.
    void use_all_that_is_saved() {
        for (std::uint64_t i = 0; i < 20; ++i) {
            w.hold(1'000'000 + i);
            w.pass(0ms);
            if (w.source.due_at() != steady_time::max()) {
                w.pass(std::chrono::ceil<std::chrono::milliseconds>(w.source.due_at() - zero -
                                                                    w.passed));
            }
            CHECK(ask());
        }
    }
    [[nodiscard]] bool lists(std::uint64_t i) const {
        return held->now().may_contain(key_of(name_of(url_of(i), w.secret), w.secret));
    }

    world& w;
    std::unique_ptr<filter::digest_replica> held;
    unsigned news = 0, wholes = 0;
    std::uint64_t bytes = 0;
};

/// Follows a source that is loaded, has all of it, and has heard nothing for a while.
reader quiet_reader(world& w) {
    w.source.loaded();
    w.pass(100ms);
    reader made{w};
    made.catch_up();
    w.pass(10s);
    return made;
}

}  // namespace

TEST_SUITE("peer/news_source") {
    TEST_CASE("a change is told at once after a while of nothing, and then at its pace") {
        world w;
        auto r = quiet_reader(w);
        w.stirred = 0;
        w.hold(1);
        w.hold(2);
        CHECK(w.stirred == 1);
        w.pass(0ms);
        CHECK(r.ask());
        CHECK(r.lists(1));
        CHECK(r.news == 1);
        // As is the next, a little apart.
        w.hold(3);
        w.pass(49ms);
        CHECK(r.ask());
        CHECK_FALSE(r.lists(3));
        w.pass(1ms);
        CHECK(r.ask());
        CHECK(r.lists(3));
        r.use_all_that_is_saved();
        const auto told = r.news;
        const auto newest = w.shelf().newest();
        w.hold(4);
        w.pass(100ms);
        CHECK(w.shelf().newest() == newest);
        CHECK(w.source.due_at() == zero + w.passed + 100ms);
        w.hold(5);
        w.pass(100ms);
        CHECK(w.shelf().newest().counter == newest.counter + 1);
        CHECK(r.ask());
        CHECK(r.lists(4));
        CHECK(r.lists(5));
        w.drop(1);
        w.pass(200ms);
        CHECK(r.ask());
        CHECK_FALSE(r.lists(1));
        CHECK(r.wholes == 1);
        CHECK(r.news == told + 2);
    }

    TEST_CASE("where few follow they are told sooner, and as many messages are sent") {
        world w;
        auto r = quiet_reader(w);
        w.waiting = 4;
        r.use_all_that_is_saved();
        w.hold(1);
        w.pass(50ms);
        const auto first = w.shelf().newest();
        // Those who were told are on their way to ask again, and count.
        w.waiting = 0;
        w.hold(2);
        w.pass(49ms);
        CHECK(w.shelf().newest() == first);
        // More that wait, of those who came since, make it longer at once.
        w.waiting = 8;
        CHECK(w.source.due_at() == zero + w.passed + 51ms);
        w.waiting = 3;
        w.pass(1ms);
        CHECK(w.shelf().newest().counter == first.counter + 1);
        w.hold(3);
        w.pass(0ms);
        CHECK(w.source.due_at() == zero + w.passed + 37ms);
        r.catch_up();
        CHECK(r.lists(2));
    }

    TEST_CASE("what a fetch will bring does not wait for the pace where all else does") {
        world w;
        auto r = quiet_reader(w);
        r.use_all_that_is_saved();
        w.stirred = 0;
        w.hold(1);
        w.pass(50ms);
        CHECK(r.ask());
        CHECK_FALSE(r.lists(1));
        // What is ordinary waits for the tick that is due in any case.
        w.hold(2);
        CHECK(w.stirred == 1);
        w.tell(holder::under_way, 3);
        w.tell(holder::under_way, 4);
        CHECK(w.stirred == 2);
        w.pass(0ms);
        CHECK(r.ask());
        for (const std::uint64_t i : {1, 2, 3, 4}) {
            CAPTURE(i);
            CHECK(r.lists(i));
        }
        // So are more of them in a row, a little apart.
        for (std::uint64_t i = 5; i < 8; ++i) {
            CAPTURE(i);
            w.tell(holder::under_way, i);
            w.pass(50ms);
            CHECK(r.ask());
            CHECK(r.lists(i));
        }
    }

    TEST_CASE("what came while a step ended is not left lying") {
        world w;
        auto r = quiet_reader(w);
        r.use_all_that_is_saved();
        w.hold(1);
        w.pass(100ms);
        w.on_told = [&w] { w.hold(2); };  // the keeper is in its tick
        w.stirred = 0;
        w.pass(100ms);
        CHECK(w.stirred == 1);
        w.pass(200ms);
        r.catch_up();
        CHECK(r.lists(2));
    }

    TEST_CASE("what a fetch brings is told before it is stored, and once") {
        for (const auto by : {holder::memory, holder::disk}) {
            world w;
            auto r = quiet_reader(w);
            w.tell(holder::under_way, 1);
            w.pass(0ms);
            CHECK(r.ask());
            CHECK(r.lists(1));
            CHECK(w.source.figures().under_way == 1);
            CHECK(w.source.figures().listed == 1);
            const auto newest = w.shelf().newest();
            // It is stored: what was listed stays so, and nobody needs to hear of it.
            w.tell(by, 1);
            w.take_back(holder::under_way, 1);
            w.pass(10s);
            CHECK(w.shelf().newest() == newest);
            CHECK(w.source.figures().under_way == 0);
            CHECK(w.source.figures().listed == 1);
            CHECK(w.source.figures().known == 1);
            w.take_back(by, 1);
            w.pass(10s);
            CHECK(r.ask());
            CHECK_FALSE(r.lists(1));
            CHECK(w.source.figures().known == 0);
        }
    }

    TEST_CASE("what is not stored after all is told to be gone, or not told at all") {
        world w;
        auto r = quiet_reader(w);
        w.tell(holder::under_way, 1);
        w.pass(0ms);
        CHECK(r.ask());
        CHECK(r.lists(1));
        w.take_back(holder::under_way, 1);
        w.pass(200ms);
        CHECK(r.ask());
        CHECK_FALSE(r.lists(1));
        CHECK(w.source.figures().known == 0);
        const auto newest = w.shelf().newest();
        w.tell(holder::under_way, 2);
        w.take_back(holder::under_way, 2);
        w.pass(10s);
        CHECK(w.shelf().newest() == newest);
        CHECK(w.source.figures().listed == 0);
    }

    TEST_CASE("a key is listed while a tier holds it or a fetch brings it, whichever ends first") {
        world w;
        w.source.loaded();
        const auto listed = [&] {
            w.pass(1s);
            return w.source.figures().listed;
        };
        w.tell(holder::memory, 1, 30s);
        CHECK(listed() == 1);
        w.tell(holder::under_way, 1);  // what is there goes stale, and is fetched anew
        w.tell(holder::under_way, 1);
        CHECK(listed() == 1);
        w.pass(2min);
        CHECK(listed() == 1);
        w.take_back(holder::memory, 1);
        CHECK(listed() == 1);
        w.take_back(holder::under_way, 1);
        w.take_back(holder::under_way, 1);
        CHECK(listed() == 0);
        CHECK(w.source.figures().under_way == 0);
        w.tell(holder::under_way, 2);
        w.tell(holder::memory, 2);
        w.take_back(holder::memory, 2);
        CHECK(listed() == 1);
        w.tell(holder::memory, 2, -1s);  // stored, but stale
        w.take_back(holder::under_way, 2);
        CHECK(listed() == 0);
        CHECK(w.source.figures().known == 1);
    }

    TEST_CASE("what is of no use to a sibling in time is not told to come") {
        world w;
        w.source.loaded();
        w.tell(holder::under_way, 1, 5s);
        w.source.held(holder::under_way, nth_key(1, 2), "//accelerated/", w.wall() + 1h, w.wall());
        w.pass(1s);
        CHECK(w.source.figures().known == 0);
        world without{source_plan{}};
        without.source.loaded();
        without.tell(holder::under_way, 1);
        without.pass(1s);
        CHECK(without.source.figures().known == 0);
    }

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

}  // namespace reprise::proxy::peer::test::of_news_source
