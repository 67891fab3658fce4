#include "proxy/net/coroutine.hpp"
#include "proxy/net/wakeup.hpp"
#include "tests/support/waiting.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

namespace {

steady_time soon() {
    return steady_now() + 20ms;
}
awaitable<bool> wait_once(wakeup& event, steady_time until) {
    co_return co_await event.wait(until);
}

awaitable<void> wait_into(wakeup& event, steady_time until, std::optional<bool>& result) {
    const bool signalled = co_await event.wait(until);
    result = signalled;
}

}  // namespace

TEST_SUITE_BEGIN("net/wakeup");

TEST_CASE("a signal wakes who waits, from the loop and not inside notify") {
    test_loop loop;
    wakeup event{loop.timer};
    std::optional<bool> result;
    loop.start(wait_into(event, late(), result));
    loop.run_for(5ms);
    CHECK(!result);
    event.notify();
    CHECK(!result);
    loop.run_until([&] { return result.has_value(); });
    CHECK(result == true);
}

TEST_CASE("a signal before the wait is kept, and several are one") {
    test_loop loop;
    wakeup event{loop.timer};
    event.notify();
    event.notify();
    CHECK(loop.finish(wait_once(event, late())));
    CHECK(!loop.finish(wait_once(event, soon())));
}

TEST_CASE("take empties a signal without waiting") {
    test_loop loop;
    wakeup event{loop.timer};
    CHECK(!event.take());
    event.notify();
    CHECK(event.take());
    CHECK(!event.take());
}

TEST_CASE("a wait ends with its deadline and can be repeated") {
    test_loop loop;
    wakeup event{loop.timer};
    CHECK(!loop.finish(wait_once(event, soon())));
    CHECK(!loop.finish(wait_once(event, soon())));
    event.notify();
    CHECK(loop.finish(wait_once(event, soon())));
}

TEST_CASE("stopping the thread's deadlines ends a wait without a deadline") {
    test_loop loop;
    wakeup event{loop.timer};
    std::optional<bool> result;
    loop.start(wait_into(event, steady_time::max(), result));
    loop.run_for(5ms);
    CHECK(!result);
    loop.timer.stop();
    loop.run_until([&] { return result.has_value(); });
    CHECK(result == false);
}

TEST_CASE(
    "a wait that memory ends for as it begins is told of as lost: none stays without an end") {
    unsigned lost = 0;
    for (unsigned still = 0; still < 20; ++still) {
        CAPTURE(still);
        test_loop loop;
        wakeup event{loop.timer};
        std::optional<bool> has_failed;
        auto on_end = [&has_failed](const std::exception_ptr& broken, bool) {
            has_failed = broken != nullptr;
        };
        begin_coroutine(loop.io, wait_once(event, soon()), std::move(on_end));
        bool threw = false;
        {
            const memory_ends lack{still, 1};
            try {
                (void)loop.io.poll();
            } catch (const std::bad_alloc&) {
                threw = true;
            }
        }
        lost += threw ? 1 : 0;
        // Should it have been the tick's turn just then: whoever arms the next deadline begins that again.
        deadline other{loop.timer, [] {}};
        other.expire_after(1ms);
        loop.run_until([&] { return has_failed.has_value(); });
        REQUIRE(has_failed);
        CHECK((*has_failed || !threw));
    }
    CHECK(lost > 0);
}

namespace {
/// Whether this lacks memory.
template <class Work>
bool throws_without_memory(Work work) {
    const memory_ends lack;
    try {
        work();
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

/// Each waits for a wakeup of its own. More than Asio keeps memory for from one operation to the next.
struct waiters : test_loop {
    static constexpr std::size_t count = 40;

    waiters() {
        for (std::size_t i = 0; i < count; ++i) {
            events.emplace_back(timer);
            start(wait_into(events.back(), late(), results[i]));
        }
        run_for(5ms);
    }
    void notify_all() const {
        for (const auto& each : events) {
            each.notify();
        }
    }
    [[nodiscard]] bool all_are(std::optional<bool> what) const {
        return std::all_of(
            results.begin(), results.end(), [what](const auto& one) { return one == what; });
    }

    std::deque<wakeup> events;
    std::array<std::optional<bool>, count> results;
};
}  // namespace

TEST_CASE("a signal is given whatever memory there is") {
    waiters some;
    REQUIRE(some.all_are(std::nullopt));
    std::optional<bool> threw;
    SUBCASE("on the loop") {
        asio::post(some.io, [&] { threw = throws_without_memory([&some] { some.notify_all(); }); });
    }
    SUBCASE("before the loop goes on") {
        threw = throws_without_memory([&some] { some.notify_all(); });
    }
    SUBCASE("on another thread") {
        std::thread other{[&] { threw = throws_without_memory([&some] { some.notify_all(); }); }};
        other.join();
    }
    some.run_until([&] { return threw && some.all_are(true); });
    CHECK(threw == false);
    CHECK(some.all_are(true));
}

TEST_CASE("a wait that is over ends whatever memory there is, and so does each behind it") {
    test_loop loop;
    wakeup event{loop.timer};
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        std::optional<bool> result;
        loop.start(wait_into(event, steady_now() + 1h, result));
        loop.run_for(1ms);
        const bool threw = throws_without_memory([&loop] { loop.timer.tick(steady_now() + 2h); });
        CHECK_FALSE(threw);
        loop.run_until([&] { return result.has_value(); });
        CHECK(result == false);
    }
}

TEST_CASE("a signal from another thread wakes who waits") {
    test_loop loop;
    wakeup event{loop.timer};
    reprise::tests::gate waits;
    std::thread other{[&waits, signal = event.handle()] {
        (void)waits.wait();
        signal.notify();
    }};
    std::optional<bool> result;
    loop.start(wait_into(event, late(), result));
    loop.run_for(1ms);
    CHECK(!result);
    waits.open();
    loop.run_until([&] { return result.has_value(); });
    CHECK(result == true);
    other.join();
}

TEST_CASE("a signal to a wakeup that is gone does nothing") {
    test_loop loop;
    auto event = std::make_unique<wakeup>(loop.timer);
    const auto signal = event->handle();
    event.reset();
    signal.notify();
    wakeup::signal{}.notify();
    loop.run_for(5ms);
}

TEST_CASE("a wait that the loop never ends is freed with it") {
    // For the leak checker: the coroutine holds the wakeup that holds the coroutine.
    struct own {
        static awaitable<void> wait_for_ever(deadlines& timer) {
            wakeup event{timer};
            static_cast<void>(co_await event.wait(steady_time::max()));
        }
    };
    test_loop loop;
    loop.start(own::wait_for_ever(loop.timer));
    loop.run_for(5ms);
}

namespace {
/// Waits until `sum` has reached `all`; every step of it was followed by a signal.
awaitable<bool> follow(wakeup& event, const std::atomic<unsigned>& sum, unsigned all) {
    while (sum.load(std::memory_order_relaxed) < all) {
        const bool signalled = co_await event.wait(late());
        if (!signalled) {
            co_return false;
        }
    }
    co_return true;
}
}  // namespace

TEST_CASE("no signal of many threads is lost") {
    test_loop loop;
    wakeup event{loop.timer};
    std::atomic<unsigned> sum{0};
    constexpr unsigned threads = 3, steps = 3'000;
    std::vector<std::jthread> others;
    for (unsigned i = 0; i < threads; ++i) {
        others.emplace_back([&sum, signal = event.handle()] {
            for (unsigned step = 0; step < steps; ++step) {
                sum.fetch_add(1, std::memory_order_relaxed);
                signal.notify();
                if (step % 64 == 0) {
                    std::this_thread::yield();
                }
            }
        });
    }
    CHECK(loop.finish(follow(event, sum, threads * steps)));
    others.clear();
}

namespace {
/// The signal of the wakeup of the moment, as it passes between two threads.
class passed_on {
public:
    void put(wakeup::signal signal) {
        const std::lock_guard hold{gate_};
        signal_ = std::move(signal);
    }
    wakeup::signal get() {
        const std::lock_guard hold{gate_};
        return signal_;
    }

private:
    std::mutex gate_;
    wakeup::signal signal_;
};

awaitable<bool> live_and_die(deadlines& timer, passed_on& held, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
        wakeup event{timer};
        held.put(event.handle());
        if (i % 2 == 0) {
            static_cast<void>(co_await event.wait(steady_now() + 1ms));
        }
    }
    co_return true;
}
}  // namespace

TEST_CASE("signals may race with the end of the wakeup") {
    test_loop loop;
    passed_on held;
    std::atomic<bool> done{false};
    std::thread other{[&] {
        while (!done) {
            held.get().notify();
        }
    }};
    // Where the other thread has no turn each wait lasts to the next tick.
    CHECK(loop.finish(live_and_die(loop.timer, held, 600)));
    done = true;
    other.join();
}

TEST_SUITE_END();
