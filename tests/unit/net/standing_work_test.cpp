#include "proxy/net/standing_work.hpp"
#include "proxy/net/wakeup.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace reprise::proxy::net::test::of_standing_work {

namespace {

using namespace std::chrono_literals;

constexpr auto a_pause = 5ms;

/// How a piece of work goes.
struct course {
    enum class mishap { none, lost, thrown };

    mishap first = mishap::none;  // what comes of the first `mishaps` beginnings
    unsigned mishaps = 0;
    bool is_over = false;
    unsigned begun = 0;
    unsigned turns = 0;
};
using course_ptr = std::shared_ptr<course>;

awaitable<void> wait_without_memory() {
    const auto waits = [](auto) { throw std::bad_alloc{}; };
    const asio::use_awaitable_t<executor> token;
    return asio::async_initiate<const asio::use_awaitable_t<executor>, void()>(waits, token);
}

awaitable<void> go_on(deadlines& timer, course_ptr how) {
    ++how->begun;
    if (how->is_over) {
        co_return;
    }
    if (how->begun <= how->mishaps && how->first == course::mishap::thrown) {
        throw std::runtime_error{"something"};
    }
    if (how->begun <= how->mishaps && how->first == course::mishap::lost) {
        co_await wait_without_memory();
    }
    wakeup event{timer};
    while (!how->is_over) {
        ++how->turns;
        (void)co_await event.wait(steady_now() + 1ms);
    }
}

standing_work work_on(test_loop& loop, course_ptr how, std::chrono::milliseconds pause = a_pause) {
    return {loop.io, [&loop, how] { return go_on(loop.timer, how); }, pause};
}

/// Runs the loop until then, whatever comes out of it; how often something did.
template <class Condition>
unsigned run_on(test_loop& loop, Condition met) {
    unsigned thrown = 0;
    while (thrown < 100) {
        try {
            loop.run_until(met);
            break;
        } catch (const std::exception&) {
            ++thrown;
        }
    }
    return thrown;
}

}  // namespace

TEST_SUITE_BEGIN("net/standing_work");

TEST_CASE(
    "what memory ended for where it waits, and what has thrown, is begun anew after a pause") {
    test_loop loop;
    const auto how = std::make_shared<course>();
    how->mishaps = 2;
    SUBCASE("without memory") {
        how->first = course::mishap::lost;
    }
    SUBCASE("by an exception") {
        how->first = course::mishap::thrown;
    }
    const auto begun_at = steady_now();
    auto work = work_on(loop, how);
    std::move(work).begin();
    const auto thrown = run_on(loop, [&] { return how->turns >= 3; });
    CHECK(thrown == 2);
    CHECK(how->begun == 3);
    CHECK(how->turns >= 3);
    CHECK(steady_now() - begun_at >= 2 * a_pause);
}

TEST_CASE("what returns is over, and what it was made from goes") {
    test_loop loop;
    const auto how = std::make_shared<course>();
    auto work = work_on(loop, how);
    std::move(work).begin();
    loop.run_until([&] { return how->turns >= 2; });
    how->is_over = true;
    loop.run_until([&] { return how.use_count() == 1; });
    CHECK(how.use_count() == 1);
    loop.run_for(4 * a_pause);
    CHECK(how->begun == 1);
}

TEST_CASE("what is over by the end of its pause does nothing more") {
    test_loop loop;
    const auto how = std::make_shared<course>();
    how->first = course::mishap::lost;
    how->mishaps = 1;
    auto work = work_on(loop, how);
    std::move(work).begin();
    CHECK_THROWS_AS(loop.io.run(), std::bad_alloc);
    how->is_over = true;
    loop.run_until([&] { return how.use_count() == 1; });
    CHECK(how.use_count() == 1);
    CHECK(how->turns == 0);
}

TEST_CASE("what can't be begun for want of memory is begun later, and that takes none") {
    test_loop loop;
    const auto how = std::make_shared<course>();
    unsigned tried = 0, refused = 2;
    auto make = [&loop, &tried, &refused, how] {
        if (++tried <= refused) {
            throw std::bad_alloc{};
        }
        return go_on(loop.timer, how);
    };
    SUBCASE("in the next turn of the loop, where there is no room for another timer") {
        standing_work work{loop.io, std::move(make), a_pause};
        {
            const memory_ends now;
            std::move(work).begin();
        }
        CHECK(tried == 1);
        CHECK(run_on(loop, [&] { return how->turns >= 2; }) == 1);
        CHECK(tried == 3);
        CHECK(how->turns >= 2);
    }
    SUBCASE("after its pause else") {
        asio::steady_timer other{loop.io, 1h};
        other.async_wait([](error_code) {});
        other.cancel();
        (void)loop.io.poll();
        loop.io.restart();
        standing_work work{loop.io, std::move(make), 1h};
        {
            const memory_ends now;
            std::move(work).begin();
        }
        (void)loop.io.poll();
        CHECK(tried == 1);
    }
}

TEST_CASE("several that were made are all begun, whatever memory there is then") {
    test_loop loop;
    const auto how = std::make_shared<course>();
    std::vector<standing_work> all;
    for (int i = 0; i < 3; ++i) {
        all.push_back(work_on(loop, how));
    }
    CHECK(how->begun == 0);
    for (auto& each : all) {
        const memory_ends lack{0, 1};
        std::move(each).begin();
    }
    (void)run_on(loop, [&] { return how->begun >= 3; });
    CHECK(how->begun == 3);
}

TEST_CASE("a loop that is destroyed takes along what it works on, or was to begin anew") {
    const auto how = std::make_shared<course>();
    {
        test_loop loop;
        SUBCASE("while it works") {
            auto work = work_on(loop, how);
            std::move(work).begin();
            loop.run_until([&] { return how->turns > 0; });
        }
        SUBCASE("in a pause") {
            how->first = course::mishap::lost;
            how->mishaps = 1;
            auto work = work_on(loop, how, 1h);
            std::move(work).begin();
            CHECK_THROWS_AS(loop.io.run(), std::bad_alloc);
            loop.run_for(5ms);
        }
        SUBCASE("before it was begun") {
            const auto work = work_on(loop, how);
        }
    }
    CHECK(how.use_count() == 1);
}

// Each piece of memory is refused once, from its beginning to its first wait. With a bare co_spawn it goes on no more
// where that is one that the wait takes.
TEST_CASE("wherever memory ends for a moment, it goes on") {
    unsigned lost = 0;
    for (unsigned still = 0; still < 30; ++still) {
        CAPTURE(still);
        test_loop loop;
        const auto how = std::make_shared<course>();
        auto work = work_on(loop, how);
        {
            const memory_ends lack{still, 1};
            std::move(work).begin();
            try {
                (void)loop.io.poll();
            } catch (const std::bad_alloc&) {
                ++lost;
            }
        }
        // Should it have been the tick's turn just then: whoever arms the next deadline begins that again.
        deadline other{loop.timer, [] {}};
        other.expire_after(1ms);
        const auto before = how->turns;
        (void)run_on(loop, [&] { return how->turns >= before + 2; });
        REQUIRE(how->turns >= before + 2);
    }
    CHECK(lost > 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_standing_work
