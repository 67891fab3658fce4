#include "proxy/net/coroutine.hpp"
#include "proxy/net/wakeup.hpp"
#include "tests/unit/net/loop.hpp"

#include <boost/asio/post.hpp>

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>

namespace reprise::proxy::net::test::of_coroutine {

namespace {

/// What somebody was told of a coroutine's end.
struct told {
    unsigned times = 0;
    int came = 0;
    bool lacked_memory = false;
    bool was_given_up = false;
    bool threw = false;  // otherwise

    void note(const std::exception_ptr& broken, int result) {
        ++times;
        came = result;
        try {
            if (broken) {
                std::rethrow_exception(broken);
            }
        } catch (const std::bad_alloc&) {
            lacked_memory = true;
        } catch (const boost::system::system_error& what) {
            was_given_up = what.code() == asio::error::operation_aborted;
        } catch (const std::exception&) {
            threw = true;
        }
    }
};

void begin(test_loop& loop, awaitable<int> work, told& of, asio::cancellation_slot given_up = {}) {
    auto on_end = [&of](const std::exception_ptr& broken, int came) { of.note(broken, came); };
    begin_coroutine(loop.io, std::move(work), std::move(on_end), given_up);
}

awaitable<int> say(int what) {
    co_return what;
}

awaitable<int> throw_something() {
    throw std::runtime_error{"something"};
    co_return 1;
}

/// While it waits there is `*held`.
awaitable<int> wait_without_memory(std::shared_ptr<int> held) {
    const auto waits = [](auto) { throw std::bad_alloc{}; };
    const asio::use_awaitable_t<executor> token;
    co_await asio::async_initiate<const asio::use_awaitable_t<executor>, void()>(waits, token);
    co_return *held;
}

awaitable<int> wait_then_without_memory(test_loop& loop, std::shared_ptr<int> held) {
    co_await asio::post(loop.io, asio::use_awaitable_t<executor>{});
    const int came = co_await wait_without_memory(std::move(held));
    co_return came;
}

awaitable<int> wait_twice(wakeup& event, int& waits) {
    ++waits;
    const bool first = co_await event.wait(steady_time::max());
    ++waits;
    const bool second = co_await event.wait(steady_time::max());
    co_return first || second ? 1 : 2;
}

awaitable<int> wait_for_ever(deadlines& timer) {
    wakeup event{timer};
    const bool signalled = co_await event.wait(steady_time::max());
    co_return signalled ? 1 : 2;
}

}  // namespace

TEST_SUITE_BEGIN("net/coroutine");

TEST_CASE(
    "whoever begins one is told what came of it, or what it threw, and not within that call") {
    test_loop loop;
    told first, second;
    begin(loop, say(7), first);
    begin(loop, throw_something(), second);
    CHECK(first.times == 0);
    CHECK(second.times == 0);
    loop.run_until([&] { return first.times > 0 && second.times > 0; });
    CHECK(first.times == 1);
    CHECK(first.came == 7);
    CHECK_FALSE(first.threw);
    CHECK(second.times == 1);
    CHECK(second.threw);
}

TEST_CASE("that memory ended where it waits is told once its frames have gone") {
    test_loop loop;
    told end;
    const auto held = std::make_shared<int>(1);
    SUBCASE("where the loop has resumed it") {
        begin(loop, wait_then_without_memory(loop, held), end);
        CHECK_THROWS_AS(loop.io.run(), std::bad_alloc);
    }
    SUBCASE("where the loop begins it") {
        begin(loop, wait_without_memory(held), end);
        CHECK_THROWS_AS(loop.io.run(), std::bad_alloc);
    }
    SUBCASE("where it is begun within the loop, who begins it hears nothing of that yet") {
        bool is_begun = false;
        asio::post(loop.io, [&] {
            begin(loop, wait_without_memory(held), end);
            is_begun = true;
            CHECK(end.times == 0);
        });
        CHECK_THROWS_AS(loop.io.run_one(), std::bad_alloc);
        CHECK(is_begun);
    }
    CHECK(held.use_count() == 2);
    CHECK(end.times == 0);
    loop.run_until([&] { return end.times > 0; });
    CHECK(end.times == 1);
    CHECK(end.lacked_memory);
    CHECK(held.use_count() == 1);
}

TEST_CASE("one that is given up waits no longer, and for nothing more") {
    test_loop loop;
    told end;
    wakeup event{loop.timer};
    asio::cancellation_signal give_up;
    int waits = 0;
    begin(loop, wait_twice(event, waits), end, give_up.slot());
    loop.run_for(std::chrono::milliseconds{5});
    CHECK(waits == 1);
    give_up.emit(asio::cancellation_type::terminal);
    CHECK(end.times == 0);
    loop.run_until([&] { return end.times > 0; });
    CHECK(end.times == 1);
    CHECK(end.was_given_up);
    CHECK(waits == 2);
}

TEST_CASE("a loop that is destroyed tells nobody") {
    told end;
    {
        test_loop loop;
        begin(loop, wait_for_ever(loop.timer), end);
        loop.run_for(std::chrono::milliseconds{5});
    }
    CHECK(end.times == 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_coroutine
