#include "proxy/peer/keeper.hpp"
#include "tests/support/waiting.hpp"

#include <doctest/doctest.h>

#include <atomic>

namespace reprise::proxy::peer {
namespace {

using tests::eventually;
using namespace std::chrono_literals;

/// Counts how often it is looked, and plans what it was told.
struct looked {
    explicit looked(keeper::plan next, std::chrono::milliseconds every = 1h)
        : plans{next},
          of{every} {
        of.begin([this] {
            ++times;
            return plans;
        });
        REQUIRE(eventually([this] { return times > 0; }));
    }
    keeper::plan plans;
    std::atomic<int> times{0};
    keeper of;  // ends before what it counts with
};

keeper::plan at_once() {
    keeper::plan next;
    next.from.fill(steady_time::min());
    return next;
}

}  // namespace

TEST_SUITE("peer/keeper") {
    TEST_CASE("it looks when it begins, and again without being stirred") {
        looked one{at_once(), 1ms};
        const int before = one.times;
        CHECK(eventually([&] { return one.times > before + 2; }));
    }

    TEST_CASE("whatever source is stirred, from whatever threads, it looks again") {
        looked one{at_once()};
        for (const auto what : {waited_for::digest, waited_for::seen, waited_for::members}) {
            const int before = one.times;
            std::thread other{[&] { one.of.stir(what); }};
            one.of.stir(what);
            other.join();
            CHECK(eventually([&] { return one.times > before; }));
        }
    }

    TEST_CASE("what is due already is looked at again and again, and it ends all the same") {
        keeper::plan due = at_once();
        due.until = steady_time::min();
        looked one{due};
        CHECK(eventually([&] { return one.times > 20; }));
        one.of.end();
        const int at_end = one.times;
        one.of.stir(waited_for::digest);
        one.of.end();
        CHECK(one.times == at_end);
    }

    TEST_CASE("what comes to a source that may not tell yet is looked at when it may") {
        keeper::plan later;
        later.from.fill(steady_now() + 20ms);
        looked one{later};
        const int before = one.times;
        one.of.stir(waited_for::seen);
        CHECK(eventually([&] { return one.times > before; }));
        CHECK(steady_now() >= later.from[0]);
    }

    TEST_CASE("what comes to a source that may never tell waits for the next look in any case") {
        keeper::plan never;
        never.from.fill(steady_time::max());
        looked one{never};
        const auto until = steady_now() + 20ms;
        while (steady_now() < until) {
            one.of.stir(waited_for::digest);
        }
        CHECK(one.times == 1);
    }

    TEST_CASE("where something comes without end, looks are a millisecond apart") {
        looked one{at_once()};
        const auto begun = steady_now();
        const int before = one.times;
        while (one.times < before + 20) {
            one.of.stir(waited_for::seen);
        }
        // The first may be one that was under way.
        CHECK(steady_now() - begun >= 18ms);
    }

    TEST_CASE("one that never began ends") {
        keeper one;
        one.stir(waited_for::seen);
        one.end();
    }
}

}  // namespace reprise::proxy::peer
