#include "proxy/peer/pulse.hpp"

#include <doctest/doctest.h>

#include <chrono>

TEST_SUITE("peer/pulse") {

    using namespace reprise::proxy;
    using namespace std::chrono_literals;
    using peer::pulse;

    namespace {

    const steady_time begin{1h};

    }  // namespace

    TEST_CASE("a sibling of which nothing is known is asked, by one at a time") {
        pulse one;
        CHECK(one.look(begin, 1s) == pulse::word::ask);
        {
            const pulse::question asked{one};
            CHECK(one.look(begin, 1s) == pulse::word::lives);
        }
        CHECK(one.look(begin, 1s) == pulse::word::ask);
    }

    TEST_CASE("what it said counts for a period, and that it said nothing for two") {
        for (const bool lives : {true, false}) {
            CAPTURE(lives);
            pulse one;
            {
                pulse::question asked{one};
                asked.ended(lives, begin);
            }
            const auto word = lives ? pulse::word::lives : pulse::word::silent;
            CHECK(one.look(begin, 1s) == word);
            CHECK(one.look(begin + 999ms, 1s) == word);
            CHECK(one.look(begin + 1s, 1s) == (lives ? pulse::word::ask : pulse::word::silent));
            CHECK(one.look(begin + 1999ms, 1s) == (lives ? pulse::word::ask : pulse::word::silent));
            CHECK(one.look(begin + 2s, 1s) == pulse::word::ask);
        }
    }
}
