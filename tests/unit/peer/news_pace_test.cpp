#include "proxy/peer/news_pace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace reprise::proxy::peer::test::of_news_pace {
namespace {

using namespace std::chrono_literals;

constexpr steady_time zero{1h};

/// Steps that end as soon as they may, from `begin` on: when each ended.
std::vector<std::chrono::milliseconds> steps(
    news_pace& of, urgency what, steady_time begin, std::size_t readers, std::size_t many) {
    std::vector<std::chrono::milliseconds> out;
    auto now = begin;
    for (std::size_t i = 0; i < many; ++i) {
        now = std::max(now, of.next(what, readers));
        of.stepped(now, readers);
        out.push_back(std::chrono::round<std::chrono::milliseconds>(now - begin));
    }
    return out;
}

}  // namespace

TEST_SUITE("peer/news_pace") {
    TEST_CASE("few readers are told sooner, and as many messages are sent") {
        CHECK(pace_for(200ms, 0) == 200ms);
        CHECK(pace_for(200ms, 1) == 12ms);
        CHECK(pace_for(200ms, 7) == 87ms);
        CHECK(pace_for(200ms, 16) == 200ms);
        CHECK(pace_for(200ms, 1000) == 200ms);
        CHECK(pace_for(1ms, 1) == 1ms);
        CHECK(pace_for(0ms, 1) == 0ms);
    }

    TEST_CASE("what a quiet time has saved is told at once, and then it is the pace") {
        news_pace pace{200ms, 8};
        // Eight steps are there at the beginning, and two more come while they are used.
        CHECK(steps(pace, urgency::urgent, zero, 16, 14) == std::vector{0ms,
                                                                        50ms,
                                                                        100ms,
                                                                        150ms,
                                                                        200ms,
                                                                        250ms,
                                                                        300ms,
                                                                        350ms,
                                                                        400ms,
                                                                        450ms,
                                                                        600ms,
                                                                        800ms,
                                                                        1000ms,
                                                                        1200ms});
        // A pace of nothing has saved one step beside the one that is due.
        CHECK(steps(pace, urgency::urgent, zero + 1600ms, 16, 4) ==
              std::vector{0ms, 50ms, 200ms, 400ms});
        CHECK(steps(pace, urgency::urgent, zero + 1h, 16, 9).back() == 400ms);
    }

    TEST_CASE("half of it is left to what is urgent") {
        news_pace pace{200ms, 8};
        const auto told = steps(pace, urgency::ordinary, zero, 8, 12);
        CHECK(told ==
              std::vector{
                  0ms, 25ms, 50ms, 75ms, 100ms, 200ms, 300ms, 400ms, 500ms, 600ms, 700ms, 800ms});
        CHECK(steps(pace, urgency::urgent, zero + 825ms, 8, 5) ==
              std::vector{0ms, 25ms, 50ms, 75ms, 100ms});
        // Used up by that, it is made up for before the next that is not; which waits for `every` at most.
        CHECK(pace.next(urgency::ordinary, 8) == zero + 925ms + 200ms);
        CHECK(pace.next(urgency::urgent, 8) < zero + 925ms + 100ms);
        (void)steps(pace, urgency::urgent, zero + 925ms, 8, 20);
        const auto now = pace.next(urgency::urgent, 8);
        pace.stepped(now, 8);
        CHECK(pace.next(urgency::ordinary, 8) == now + 200ms);
        CHECK(pace.next(urgency::urgent, 8) - now <= 100ms);
    }

    TEST_CASE("a step waits for its bound at most, and no more are told than the pace allows") {
        for (std::uint32_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(seed);
            std::mt19937 random{seed};
            news_pace pace{200ms, 8};
            auto now = zero;
            auto last = zero;
            double messages = 0;
            for (int i = 0; i < 2000; ++i) {
                const std::size_t readers = 1 + random() % 40;
                const auto what = random() % 2 == 0 ? urgency::urgent : urgency::ordinary;
                const auto next = pace.next(what, readers);
                if (i > 0) {
                    CHECK(next <= last + 200ms);
                    CHECK(next >= last + pace_for(200ms, readers) / news_pace::closest - 1ms);
                }
                now = std::max(now + std::chrono::milliseconds{random() % 20}, next);
                pace.stepped(now, readers);
                last = now;
                messages += static_cast<double>(std::min(readers, readers_at_full_pace));
            }
            const auto paces = std::chrono::duration<double>{now - zero} / 200ms;
            CHECK(messages <= static_cast<double>(readers_at_full_pace) * (paces + 16));
        }
    }

    TEST_CASE("where nothing is saved it is the pace, whatever is told") {
        news_pace pace{200ms, 1};
        CHECK(steps(pace, urgency::ordinary, zero, 8, 4) == std::vector{0ms, 100ms, 200ms, 300ms});
        CHECK(steps(pace, urgency::urgent, zero + 1h, 8, 3) == std::vector{0ms, 100ms, 200ms});
    }

    TEST_CASE("readers who are on their way to ask again count, however close the steps are") {
        // One that asks again 6 ms later, twice as late as the next step may come.
        news_pace pace{200ms, 8};
        pace.stepped(zero, 1);
        pace.stepped(zero + 3ms, 0);
        CHECK(pace.next(urgency::urgent, 0) == zero + 6ms);
        pace.stepped(zero + 6ms, 0);
        CHECK(pace.next(urgency::urgent, 0) == zero + 9ms);
        // And sixteen, of whom one is near and asks again at once: no more are told than when all are near.
        for (const std::size_t near : {1, 16}) {
            CAPTURE(near);
            news_pace of{200ms, 8};
            int all = 0;
            auto last = zero - 1s;
            for (auto now = zero; now < zero + 10s; now += 1ms) {
                const std::size_t readers = now - last < 60ms ? near : 16;
                if (now >= of.next(urgency::urgent, readers)) {
                    of.stepped(now, readers);
                    last = now;
                    ++all;
                }
            }
            CHECK(all <= 60);
        }
        // Those who do not come back are forgotten.
        pace.stepped(zero + 1s, 0);
        CHECK(pace.next(urgency::urgent, 0) == zero + 1s + 50ms);
        // Not so one that is a round trip longer than the pace away.
        pace.stepped(zero + 2s, 1);
        pace.stepped(zero + 2s + 12ms, 0);
        CHECK(pace.next(urgency::urgent, 0) == zero + 2s + 15ms);
    }

    TEST_CASE("none is none") {
        news_pace pace{0ms, 8};
        pace.stepped(zero, 3);
        CHECK(pace.next(urgency::ordinary, 3) == zero);
        pace.stepped(zero, 3);
        CHECK(pace.next(urgency::ordinary, 3) == zero);
    }
}

}  // namespace reprise::proxy::peer::test::of_news_pace
