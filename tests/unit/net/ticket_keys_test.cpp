#include "proxy/net/ticket_keys.hpp"

#include <doctest/doctest.h>

#include <chrono>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net/ticket_keys");

TEST_CASE("ticket keys are replaced after their time, and open for as long again") {
    ticket_keys keys;
    const auto begin = steady_now();
    const auto first = keys.current(begin);
    REQUIRE(first);
    const auto last_moment = begin + ticket_keys::period - 1s;
    CHECK(keys.current(last_moment)->name == first->name);
    CHECK(keys.find(first->name, last_moment)->is_current);
    const auto second = keys.current(begin + ticket_keys::period);
    REQUIRE(second);
    CHECK(second->name != first->name);
    CHECK(second->cipher != first->cipher);
    CHECK(second->mac != first->mac);
    const auto old = keys.find(first->name, begin + ticket_keys::period + 1s);
    REQUIRE(old);
    CHECK(old->with.cipher == first->cipher);
    CHECK_FALSE(old->is_current);
    CHECK_FALSE(keys.find(first->name, begin + 2 * ticket_keys::period));
    CHECK(keys.find(second->name, begin + 2 * ticket_keys::period));
}

TEST_CASE("ticket keys that nobody asked for in a long time open nothing") {
    ticket_keys keys;
    const auto begin = steady_now();
    const auto first = keys.current(begin);
    REQUIRE(first);
    CHECK_FALSE(keys.find(first->name, begin + 2 * ticket_keys::period));
}

TEST_SUITE_END();
