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
        news_pace pace{200ms};
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
        news_pace pace{200ms};
        const auto told = steps(pace, urgency::ordinary, zero, 8, 12);
        CHECK(told ==
              std::vector{
                  0ms, 25ms, 50ms, 75ms, 100ms, 200ms, 300ms, 400ms, 500ms, 600ms, 700ms, 800ms});
        CHECK(steps(pace, urgency::urgent, zero + 825ms, 8, 5) ==
              std::vector{0ms, 25ms, 50ms, 75ms, 100ms});
        // Used up by that, it is made up for before the next that is not; which waits for `every` at most.
        CHECK(pace.next(urgency::ordinary, 8) == zero + 925ms + 200ms);
        CHECK(pace.next(urgency::urgent, 8) < zero + 925ms + 100ms);
    }

    TEST_CASE("a step waits for its bound at most, and no more are told than the pace allows") {
        for (std::uint32_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(seed);
            std::mt19937 random{seed};
            news_pace pace{200ms};
            auto now = zero;
            auto last = zero;
            std::size_t told_to = 0;
            double messages = 0;
            for (int i = 0; i < 2000; ++i) {
                const std::size_t readers = random() % 40;
                const auto what = random() % 2 == 0 ? urgency::urgent : urgency::ordinary;
                const auto own = pace_for(200ms, std::max(told_to, readers));
                const auto next = pace.next(what, readers);
                if (i > 0) {
                    CHECK(next <= last + (what == urgency::urgent ? own : 200ms));
                    CHECK(next >= last + own / news_pace::closest - 1ms);
                }
                now = std::max(now + std::chrono::milliseconds{random() % 20}, next);
                pace.stepped(now, readers);
                last = now;
                told_to = readers;
                messages += static_cast<double>(std::min(readers, readers_at_full_pace));
            }
            const auto paces = std::chrono::duration<double>{now - zero} / 200ms;
            CHECK(messages <=
                  static_cast<double>(readers_at_full_pace) * (paces + 2 * news_pace::most_saved));
        }
    }

    TEST_CASE("none is none") {
        news_pace pace{0ms};
        pace.stepped(zero, 3);
        CHECK(pace.next(urgency::ordinary, 3) == zero);
        pace.stepped(zero, 3);
        CHECK(pace.next(urgency::ordinary, 3) == zero);
    }
}

}  // namespace reprise::proxy::peer::test::of_news_pace
