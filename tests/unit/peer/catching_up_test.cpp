#include "proxy/peer/catching_up.hpp"
#include "tests/unit/net/loop.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace reprise::proxy::peer::test::of_catching_up {
namespace {

using namespace std::chrono_literals;

constexpr steady_time start{1h};

}  // namespace

TEST_SUITE("peer/catching_up") {
    TEST_CASE("it is on until all are heard, or two budgets have passed") {
        catching_up word;
        CHECK_FALSE(word.is_on(start));
        CHECK(word.begin(start, start + 1ms, 100ms));
        CHECK(word.since() == start);
        CHECK(word.is_on(start + 1ms));
        CHECK(word.is_on(start + 200ms));
        CHECK_FALSE(word.is_on(start + 201ms));
        CHECK(word.begin(start + 1h, start + 1h, 100ms));
        CHECK(word.is_on(start + 1h));
        word.end();
        CHECK_FALSE(word.is_on(start + 1h));
    }

    TEST_CASE("one absence, of which several threads come to know, begins it once") {
        catching_up word;
        CHECK(word.begin(start, start + 2s, 100ms));
        word.end();
        CHECK_FALSE(word.begin(start + 1s, start + 2s, 100ms));
        CHECK_FALSE(word.begin(start + 2s, start + 9s, 100ms));
        CHECK(word.begin(start + 3s, start + 9s, 100ms));
    }

    TEST_CASE("behind a stop it begins seldom, and it is short, however long the budget") {
        catching_up word;
        CHECK(word.begin(start, start, 1min));
        CHECK(word.is_on(start + 1s - 1ms));
        CHECK_FALSE(word.is_on(start + 1s));
        CHECK(word.begin(start + 1s, start + 2s, 1min));  // it had only just begun
        CHECK_FALSE(word.begin(start + 3s, start + 4s - 1ms, 1min));
        CHECK(word.begin(start + 3s, start + 4s, 1min));
        CHECK(word.is_on(start + 4s));
        CHECK_FALSE(word.is_on(start + 5s));
    }

    TEST_CASE("who waits is woken, and nothing is kept of those who have left") {
        net::test_loop loop;
        catching_up word;
        net::wakeup event{loop.timer}, other{loop.timer};
        CHECK_FALSE(word.enter(event.handle(), start));
        CHECK(word.begin(start, start, 100ms));
        CHECK(word.enter(event.handle(), start));
        CHECK_FALSE(event.take());
        word.end();
        CHECK(event.take());
        word.leave();
        CHECK_FALSE(word.enter(event.handle(), start));

        CHECK(word.begin(start + 1min, start + 1min, 100ms));
        CHECK(word.enter(event.handle(), start + 1min));
        CHECK(word.enter(other.handle(), start + 1min));
        CHECK(word.kept() == 2);
        word.leave();
        word.leave();
        CHECK(word.kept() == 0);
        word.end();
        CHECK_FALSE(event.take());
    }
}

}  // namespace reprise::proxy::peer::test::of_catching_up
