// What a source tells as news, and when.

#include "tests/unit/net/memory_ends.hpp"
#include "tests/unit/peer/news_bench.hpp"

#include <cstddef>
#include <new>

namespace reprise::proxy::peer::test::of_news_source {

using namespace of_news_bench;

namespace {

/// So many ticks with no memory for pieces of so many bytes, and more; how often it was asked for.
unsigned pass_in_lack(world& w, std::size_t least, unsigned ticks) {
    const net::memory_ends lack{0, net::memory_ends::for_good, least};
    unsigned lacked = 0;
    for (unsigned i = 0; i < ticks; ++i) {
        try {
            w.pass(200ms);
        } catch (const std::bad_alloc&) {
            ++lacked;
        }
    }
    return lacked;
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

    TEST_CASE("where there is no memory for a larger filter news goes on, and for a second it is "
              "not asked for again") {
        world w;
        auto r = quiet_reader(w);
        for (std::uint64_t i = 0; i < 1000; ++i) {
            w.hold(i);
        }
        w.pass(10s);
        r.catch_up();
        const auto wholes = r.wholes;
        for (std::uint64_t i = 1000; i < 1100; ++i) {
            w.hold(i);
        }
        CHECK(pass_in_lack(w, 16 << 10, 10) == 2);  // its counters have 19 KiB
        CHECK(r.ask());
        CHECK(r.lists(1099));
        CHECK(r.wholes == wholes);
        CHECK(w.source.figures().resizes == 0);
        w.pass(1s);
        CHECK(w.source.figures().resizes == 1);
        r.catch_up();
        CHECK(r.lists(1099));
        CHECK(r.wholes == wholes + 1);
    }

    TEST_CASE("where there is none for a whole of the larger one, it waits, and news of the "
              "smaller one goes on") {
        auto with = plan();
        with.resize_step = 1;  // some keys a tick
        world w{with};
        auto r = quiet_reader(w);
        for (std::uint64_t i = 0; i < 1100; ++i) {
            w.hold(i);
        }
        w.pass(200ms);
        r.catch_up();
        REQUIRE(w.source.figures().resizing);
        const auto lacked = pass_in_lack(w, 4 << 10, 300);
        CHECK(lacked > 2);
        CHECK(lacked < 20);
        w.hold(5000);
        CHECK(pass_in_lack(w, 4 << 10, 1) <= 1);
        CHECK(r.ask());
        CHECK(r.lists(5000));
        CHECK(w.source.figures().resizes == 0);
        w.pass(1s);
        r.catch_up();
        CHECK(w.source.figures().resizes == 1);
        CHECK(r.lists(1099));
        CHECK(r.lists(5000));
    }

    TEST_CASE("where the table of keys can't grow, what came before that is told") {
        auto with = plan();
        with.least_capacity = 1 << 15;
        world w{with};
        auto r = quiet_reader(w);
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            w.hold(i);
        }
        w.pass(10s);
        r.catch_up();
        REQUIRE(r.lists(5));
        w.drop(5);
        for (std::uint64_t i = 20'000; i < 21'000; ++i) {
            w.hold(i);
        }
        CHECK(pass_in_lack(w, 1200, 3) == 3);  // a shard's slots have more
        CHECK(w.source.figures().known < 20'999);
        CHECK(r.ask());
        CHECK_FALSE(r.lists(5));
        w.pass(1s);
        r.catch_up();
        CHECK(r.lists(20'999));
        CHECK(w.source.figures().known == 20'999);
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
}

}  // namespace reprise::proxy::peer::test::of_news_source
