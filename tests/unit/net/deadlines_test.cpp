#include "proxy/net/deadlines.hpp"
#include "proxy/net/look.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net/deadlines");

TEST_CASE("a deadline acts when its time has come and not before") {
    test_loop loop;
    unsigned acted = 0;
    deadline each{loop.timer, [&] { ++acted; }};
    const auto start = steady_now();
    each.expire_at(start + 10s);
    loop.timer.tick(start + 9s);
    CHECK(acted == 0);
    CHECK(!each.expired());
    loop.timer.tick(start + 10s);
    CHECK(acted == 1);
    CHECK(each.expired());
    loop.timer.tick(start + 20s);
    CHECK(acted == 1);
}

TEST_CASE("a deadline pushed on acts at the later time only") {
    test_loop loop;
    unsigned acted = 0;
    deadline each{loop.timer, [&] { ++acted; }};
    const auto start = steady_now();
    each.expire_at(start + 1s);
    each.expire_at(start + 5s);
    loop.timer.tick(start + 2s);
    CHECK(acted == 0);
    loop.timer.tick(start + 5s);
    CHECK(acted == 1);
}

TEST_CASE("a cleared deadline does not act and still says whether it had passed") {
    test_loop loop;
    unsigned acted = 0;
    deadline each{loop.timer, [&] { ++acted; }};
    const auto start = steady_now();
    each.expire_at(start + 1s);
    each.clear();
    loop.timer.tick(start + 2s);
    CHECK(acted == 0);
    CHECK(!each.expired());
    each.expire_at(start + 3s);
    loop.timer.tick(start + 3s);
    each.clear();
    CHECK(each.expired());
    each.expire_at(start + 9s);
    CHECK(!each.expired());
}

TEST_CASE("an action may destroy its own deadline and others that are due") {
    test_loop loop;
    unsigned acted = 0;
    std::unique_ptr<deadline> first, second;
    const auto end_both = [&] {
        ++acted;
        first.reset();
        second.reset();
    };
    first = std::make_unique<deadline>(loop.timer, end_both);
    second = std::make_unique<deadline>(loop.timer, end_both);
    const auto start = steady_now();
    first->expire_at(start + 1s);
    second->expire_at(start + 1s);
    loop.timer.tick(start + 1s);
    CHECK(acted == 1);
    CHECK(loop.timer.armed() == 0);
}

TEST_CASE("an action may move on or clear a deadline that is due after it") {
    test_loop loop;
    const auto start = steady_now();
    unsigned moved_acted = 0, cleared_acted = 0;
    deadline moved{loop.timer, [&] { ++moved_acted; }};
    deadline cleared{loop.timer, [&] { ++cleared_acted; }};
    std::unique_ptr<deadline> first;
    first = std::make_unique<deadline>(loop.timer, [&] {
        moved.expire_at(start + 5s);
        cleared.clear();
    });
    first->expire_at(start + 1s);
    moved.expire_at(start + 1s);
    cleared.expire_at(start + 1s);
    loop.timer.tick(start + 2s);
    CHECK(moved_acted == 0);
    CHECK(cleared_acted == 0);
    loop.timer.tick(start + 5s);
    CHECK(moved_acted == 1);
    CHECK(cleared_acted == 0);
}

TEST_CASE("an action may arm its own deadline again") {
    test_loop loop;
    const auto start = steady_now();
    unsigned acted = 0;
    std::unique_ptr<deadline> each;
    each = std::make_unique<deadline>(loop.timer, [&] {
        ++acted;
        each->expire_at(start + 1s + std::chrono::seconds{acted});
    });
    each->expire_at(start + 1s);
    for (int second = 1; second <= 3; ++second) {
        loop.timer.tick(start + std::chrono::seconds{second});
    }
    CHECK(acted == 3);
}

TEST_CASE("the thread's timer sees a deadline pass and stops when nothing is armed") {
    test_loop loop;
    unsigned acted = 0;
    deadline each{loop.timer, [&] { ++acted; }};
    each.expire_after(10ms);
    loop.io.run_for(test_patience);  // returns long before: nothing is left to do
    CHECK(acted == 1);
    CHECK(loop.io.stopped());
    each.expire_after(10ms);
    loop.io.restart();
    loop.io.run_for(test_patience);
    CHECK(acted == 2);
}

TEST_CASE("that the loop had no turn when one was due is known, in its next turn and before") {
    test_loop loop;
    const auto before = steady_now();
    CHECK(loop.timer.away_at(before + 1h) == steady_time{});  // it waits for nothing
    deadline each{loop.timer, [] {}};
    each.expire_after(1h);
    CHECK(loop.timer.away_at(before) == steady_time{});
    loop.run_for(30ms);
    std::this_thread::sleep_for(2 * deadlines::away);  // as a SIGSTOP does
    const auto back = steady_now();
    const auto found = loop.timer.away_at(back);
    CHECK(found > before);
    CHECK(found < back);
    loop.run_for(30ms);
    CHECK(loop.timer.away_at(back) >= found);  // just back
    // With nothing to wait for a loop has no turns, and is not away.
    each.clear();
    loop.io.restart();
    loop.io.run_for(test_patience);  // returns long before
    CHECK(loop.timer.away_at(steady_now() + 1h) == steady_time{});
}

TEST_CASE("stop ends what is armed, even for ever, and what is armed later") {
    test_loop loop;
    unsigned acted = 0;
    deadline each{loop.timer, [&] { ++acted; }};
    deadline endless{loop.timer, [&] { ++acted; }};
    each.expire_after(1h);
    endless.expire_at(steady_time::max());
    loop.timer.stop();
    CHECK(acted == 2);
    endless.expire_at(steady_time::max());
    CHECK(acted == 2);
    loop.io.run_for(test_patience);
    CHECK(acted == 3);
}

TEST_CASE("of many that are due at once a few act before the loop does something else") {
    test_loop loop;
    constexpr unsigned many = 200;
    unsigned acted = 0, longest = 0, before = 0;
    std::vector<std::unique_ptr<deadline>> all;
    const auto when = steady_now();
    for (unsigned i = 0; i < many; ++i) {
        all.push_back(std::make_unique<deadline>(loop.timer, [&] { ++acted; }));
        all.back()->expire_at(when);
    }
    std::function<void()> other = [&] {
        longest = std::max(longest, acted - before);
        before = acted;
        if (acted < many) {
            asio::post(loop.io, other);
        }
    };
    asio::post(loop.io, other);
    loop.run_until([&] { return before == many; });
    CHECK(acted == many);
    CHECK(longest <= most_events_a_look);
}

TEST_CASE("what is cleared, moved on or destroyed while it waits for its turn does not act") {
    test_loop loop;
    constexpr unsigned many = 100;
    unsigned acted = 0;
    std::vector<std::unique_ptr<deadline>> all;
    const auto when = steady_now();
    for (unsigned i = 0; i < many; ++i) {
        all.push_back(std::make_unique<deadline>(loop.timer, [&] { ++acted; }));
        all.back()->expire_at(when);
    }
    loop.run_until([&] { return acted > 0; });
    const auto by_then = acted;
    REQUIRE(by_then < many / 2);
    for (unsigned i = 0; i < many; ++i) {
        if (i % 3 == 0) {
            all[i]->clear();
        } else if (i % 3 == 1) {
            all[i]->expire_after(1h);
        } else {
            all[i].reset();
        }
    }
    loop.run_for(50ms);
    CHECK(acted == by_then);
    loop.timer.tick(steady_now() + 2h);
    CHECK(acted == by_then + many / 3);
}

TEST_CASE("a deadline may outlive its thread's deadlines") {
    asio::io_context io;
    auto timer = std::make_unique<deadlines>(io);
    unsigned acted = 0;
    deadline* again = nullptr;
    deadline each{*timer, [&] {
                      ++acted;
                      again->expire_after(1h);
                  }};
    again = &each;
    each.expire_after(1h);
    timer.reset();
    CHECK(acted == 1);
    CHECK(!each.armed());
}

TEST_CASE("the rate guard is pushed on by enough bytes and not by a drip") {
    test_loop loop;
    unsigned acted = 0;
    deadline each{loop.timer, [&] { ++acted; }};
    each.guard_rate(10, 100s);  // 1000 bytes in so long
    const auto start = steady_now();
    each.progress(999);
    loop.timer.tick(start + 90s);
    CHECK(acted == 0);
    SUBCASE("one byte more is enough") {
        while (steady_now() == start) {
        }  // so that pushing on is seen to be by the present time
        each.progress(1);
        loop.timer.tick(start + 100s);
        CHECK(acted == 0);
    }
    SUBCASE("without it the time runs out") {
        loop.timer.tick(start + 110s);
        CHECK(acted == 1);
        each.progress(1'000'000);  // too late
        CHECK(each.expired());
    }
}

TEST_CASE("what an action throws as all are stopped keeps no other deadline from acting") {
    test_loop loop;
    bool has_acted = false;
    deadline throws{loop.timer, [] { throw std::runtime_error{"an action's"}; }};
    deadline other{loop.timer, [&has_acted] { has_acted = true; }};
    const auto when = steady_now() + 1s;
    throws.expire_at(when);
    other.expire_at(when);
    CHECK_THROWS_AS(loop.timer.stop(), std::runtime_error);
    CHECK_FALSE(has_acted);
    loop.run_until([&] { return has_acted; });
    CHECK(has_acted);
}

TEST_CASE("what an action throws keeps no other deadline from acting") {
    test_loop loop;
    unsigned acted = 0;
    const auto when = steady_now();
    deadline throws{loop.timer, [] { throw std::runtime_error{"an action's"}; }};
    deadline as_early{loop.timer, [&] { ++acted; }};
    deadline later{loop.timer, [&] { ++acted; }};
    throws.expire_at(when);
    as_early.expire_at(when);
    later.expire_at(when + 20ms);
    unsigned thrown = 0;
    const auto run = [&] {
        try {
            loop.run_until([&] { return acted == 2; });
        } catch (const std::runtime_error&) {
            ++thrown;
        }
    };
    run();
    run();
    CHECK(thrown == 1);
    CHECK(acted == 2);
    CHECK(loop.timer.armed() == 0);
}

// Nothing else may be armed for hours, and whoever waits would do so as long.
TEST_CASE("where a turn leaves no memory the next one comes all the same") {
    test_loop loop;
    std::optional<memory_ends> now;
    std::size_t taken = 0;
    deadline takes_all{loop.timer, [&] {
                           now.emplace();
                           try {
                               for (;;) {
                                   asio::post(loop.io, [&taken] { ++taken; });
                               }
                           } catch (const std::bad_alloc&) {
                           }
                       }};
    deadline later{loop.timer, [] {}};
    takes_all.expire_after(0ms);
    later.expire_after(30ms);
    loop.run_until([&] { return now.has_value(); });
    REQUIRE(now);
    now.reset();
    loop.run_until([&] { return later.expired(); });
    CHECK(later.expired());
}

TEST_CASE("a deadline that can't be armed for want of memory is not, and the next one is") {
    test_loop loop;
    unsigned acted = 0;
    deadline first{loop.timer, [&] { acted += 1; }};
    deadline second{loop.timer, [&] { acted += 10; }};
    bool refused = false;
    {
        const memory_ends now;
        try {
            first.expire_after(1ms);
        } catch (const std::bad_alloc&) {
            refused = true;
        }
    }
    CHECK(refused);
    CHECK(!first.armed());
    CHECK(loop.timer.armed() == 0);
    CHECK(loop.timer.away_at(steady_now() + 1h) == steady_time{});
    SUBCASE("another one") {
        second.expire_after(1ms);
        loop.run_until([&] { return acted > 0; });
        CHECK(acted == 10);
    }
    SUBCASE("itself") {
        first.expire_after(1ms);
        loop.run_until([&] { return acted > 0; });
        CHECK(acted == 1);
    }
}

TEST_SUITE_END();
