#include "proxy/peer/catching_up.hpp"
#include "tests/unit/net/loop.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>

namespace reprise::proxy::peer::test::of_catching_up {
namespace {

using namespace std::chrono_literals;

constexpr steady_time start{1h};

}  // namespace

TEST_SUITE("peer/catching_up") {
    TEST_CASE("it is on until all are heard, or two budgets have passed") {
        catching_up word{100ms};
        CHECK_FALSE(word.is_on(start));
        CHECK(word.begin(start, start + 1ms));
        CHECK(word.since() == start);
        CHECK(word.is_on(start + 1ms));
        CHECK(word.is_on(start + 200ms));
        CHECK_FALSE(word.is_on(start + 201ms));
        CHECK(word.begin(start + 1h, start + 1h));
        CHECK(word.is_on(start + 1h));
        word.end();
        CHECK_FALSE(word.is_on(start + 1h));
    }

    TEST_CASE("one absence, of which several threads come to know, begins it once") {
        catching_up word{100ms};
        CHECK(word.begin(start, start + 2s));
        word.end();
        CHECK_FALSE(word.begin(start + 1s, start + 2s));
        CHECK_FALSE(word.begin(start + 2s, start + 9s));
        CHECK(word.begin(start + 3s, start + 9s));
    }

    TEST_CASE("who waits is woken, and nothing is kept of those who wait no longer") {
        net::test_loop loop;
        catching_up word{100ms};
        auto event = std::make_unique<net::wakeup>(loop.timer);
        CHECK_FALSE(word.enter(event->handle(), start));
        CHECK(word.begin(start, start));
        CHECK(word.enter(event->handle(), start));
        CHECK_FALSE(event->take());
        word.end();
        CHECK(event->take());
        CHECK_FALSE(word.enter(event->handle(), start));

        CHECK(word.begin(start + 1s, start + 1s));
        CHECK(word.enter(event->handle(), start + 1s));
        CHECK(word.waiting() == 1);
        word.leave(start + 1100ms);
        CHECK(word.waiting() == 1);
        word.leave(start + 1200ms);
        CHECK(word.waiting() == 0);
        word.end();
        CHECK_FALSE(event->take());
    }
}

}  // namespace reprise::proxy::peer::test::of_catching_up
