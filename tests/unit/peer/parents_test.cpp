#include "proxy/peer/parents.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_parents {
namespace {

using namespace std::chrono_literals;
using filter::test::nth_key;
constexpr steady_time start{1h};
const std::vector<std::string> four{"p1", "p2", "p3", "p4"};

}  // namespace

TEST_SUITE("peer/parents") {
    TEST_CASE("each parent has about its share of the keys") {
        const parent_choice choice{four};
        std::vector<int> first(4);
        for (std::uint64_t i = 0; i < 8000; ++i) {
            ++first[choice.order(nth_key(1, i), start).front()];
        }
        for (const auto share : first) {
            CHECK(share > 1800);  // 2000 expected; 200 are more than five standard deviations
            CHECK(share < 2200);
        }
    }

    TEST_CASE("the choice is by name, whatever the order in which parents are written") {
        auto turned = four;
        std::reverse(turned.begin(), turned.end());
        const parent_choice one{four};
        const parent_choice other{turned};
        for (std::uint64_t i = 0; i < 500; ++i) {
            const auto a = one.order(nth_key(1, i), start);
            const auto b = other.order(nth_key(1, i), start);
            for (std::size_t place = 0; place < 4; ++place) {
                REQUIRE(four[a[place]] == turned[b[place]]);
            }
        }
    }

    TEST_CASE("a parent that goes takes its own keys along and no others, to all that stay") {
        const std::vector<std::string> three{"p1", "p2", "p3"};
        const parent_choice before{four};
        const parent_choice after{three};
        std::vector<int> inherited(3);
        for (std::uint64_t i = 0; i < 4000; ++i) {
            const auto was = before.order(nth_key(1, i), start);
            const auto is = after.order(nth_key(1, i), start).front();
            if (was.front() != 3) {
                REQUIRE(is == was.front());
            } else {
                REQUIRE(is == was[1]);
                ++inherited[is];
            }
        }
        CHECK(*std::min_element(inherited.begin(), inherited.end()) > 230);
    }

    TEST_CASE("one that failed comes last until its time is up, each time for longer") {
        parent_choice choice{four};
        const auto key = nth_key(1, 1);
        const auto best = choice.order(key, start).front();
        const auto second = choice.order(key, start)[1];
        choice.failed(best, start, start);
        CHECK(choice.order(key, start).front() == second);
        CHECK(choice.order(key, start).back() == best);
        CHECK(choice.order(key, start + 1s).front() == best);
        choice.failed(best, start + 1s, start + 1s);
        CHECK(choice.is_down(best, start + 2900ms));
        CHECK_FALSE(choice.is_down(best, start + 3s));
        auto now = start + 3s;
        for (int i = 0; i < 20; ++i) {
            now += 60s;
            choice.failed(best, now, now);
        }
        CHECK(choice.is_down(best, now + 59s));
        CHECK_FALSE(choice.is_down(best, now + 60s));
        choice.succeeded(best, start);
        CHECK_FALSE(choice.is_down(best, now));
    }

    TEST_CASE("what an outage meets together is one failure") {
        parent_choice choice{four};
        for (int i = 0; i < 20; ++i) {
            choice.failed(0, start + std::chrono::milliseconds{i}, start + 100ms);
        }
        CHECK_FALSE(choice.is_down(0, start + 1100ms));
        choice.failed(0, start + 1s, start + 1200ms);  // sent while it was down
        CHECK_FALSE(choice.is_down(0, start + 1200ms));
        choice.failed(0, start + 1200ms, start + 1300ms);
        CHECK(choice.is_down(0, start + 3200ms));
        CHECK_FALSE(choice.is_down(0, start + 3300ms));
    }

    TEST_CASE("whether one answers again is found out by one request; all others go around it") {
        parent_choice choice{four};
        const auto key = nth_key(1, 1);
        const auto best = choice.order(key, start).front();
        const auto second = choice.order(key, start)[1];
        choice.failed(best, start, start);
        const auto back = start + 1s;
        auto first = choice.order(key, back), other = choice.order(key, back);
        REQUIRE(first.front() == best);
        auto held = choice.put_first(first, back, 10s);
        CHECK(held);
        CHECK(first.front() == best);
        CHECK(choice.put_first(other, back, 10s));
        CHECK(other.front() == second);
        CHECK(other.back() == best);
        CHECK(choice.is_down(best, back + 9999ms));
        CHECK(choice.order(key, back + 9999ms).front() == second);
        SUBCASE("it has not come back") {
            CHECK_FALSE(choice.failed(best, back, back + 5s));
            held.reset();
            CHECK(choice.is_down(best, back + 6999ms));
            CHECK_FALSE(choice.is_down(best, back + 7s));
        }
        SUBCASE("what was asked before it went down says nothing new") {
            CHECK_FALSE(choice.failed(best, start, back + 5s));
            CHECK(choice.is_down(best, back + 5s));
            held.reset();
            CHECK_FALSE(choice.is_down(best, back + 5s));
        }
        SUBCASE("whoever tried it comes to know nothing: another does, alone") {
            held.reset();
            auto third = choice.order(key, back);
            REQUIRE(third.front() == best);
            const auto next = choice.put_first(third, back, 10s);
            CHECK(third.front() == best);
            CHECK(choice.is_down(best, back));
        }
        SUBCASE("whoever tries it waits for long: another does, and is not disturbed") {
            auto third = choice.order(key, back + 10s);
            REQUIRE(third.front() == best);
            const auto next = choice.put_first(third, back + 10s, 10s);
            CHECK(third.front() == best);
            held.reset();
            CHECK(choice.is_down(best, back + 10s));
        }
        SUBCASE("it answers") {
            CHECK(choice.succeeded(best, back));
            CHECK_FALSE(choice.is_down(best, back));
            for (int i = 0; i < 2; ++i) {
                auto any = choice.order(key, back);
                CHECK(choice.put_first(any, back, 10s));
                CHECK(any.front() == best);
            }
        }
        SUBCASE("a trial may outlive what it is of") {
            std::optional<parent_choice> gone{std::in_place, four};
            gone->failed(best, start, start);
            auto any = gone->order(key, back);
            const auto outlives = gone->put_first(any, back, 10s);
            CHECK(outlives);
            gone.reset();
        }
        SUBCASE("nobody else's trial is taken over with what is known") {
            parent_choice next{four};
            next.go_on_as(best, choice, best);
            CHECK(next.has_failed(best));
            CHECK_FALSE(next.is_down(best, back));
        }
    }

    TEST_CASE("a silence is its origin's a few times in a row, until the parent says something") {
        using silence = parent_choice::silence;
        parent_choice choice{four};
        auto now = start;
        for (unsigned i = 0; i < parent_choice::most_spared; ++i) {
            now += 60s;
            CHECK(choice.judge_silence(0, now - 60s, now) == silence::unclear);
            // What waited beside it is the same silence.
            CHECK(choice.judge_silence(0, now - 59s, now + 1s) == silence::asked);
            CHECK(choice.judge_silence(0, now - 1s, now + 59s) == silence::asked);
        }
        now += 60s;
        CHECK(choice.judge_silence(0, now - 60s, now) == silence::its_own);
        CHECK(choice.judge_silence(1, now - 60s, now) == silence::unclear);
        CHECK_FALSE(choice.succeeded(0, now));
        CHECK(choice.judge_silence(0, now, now + 60s) == silence::unclear);
    }

    TEST_CASE("when it succeeded at last is known to a tenth of a second") {
        parent_choice choice{four};
        CHECK_FALSE(choice.has_succeeded_since(0, start));
        CHECK_FALSE(choice.succeeded(0, start + 1s));
        CHECK(choice.has_succeeded_since(0, start));
        CHECK(choice.has_succeeded_since(0, start + 900ms));
        CHECK_FALSE(choice.has_succeeded_since(0, start + 1s));
        CHECK_FALSE(choice.succeeded(0, start + 1010ms));  // too soon to be noted
        CHECK_FALSE(choice.has_succeeded_since(0, start + 1s));
        CHECK_FALSE(choice.succeeded(0, start + 1101ms));
        CHECK(choice.has_succeeded_since(0, start + 1s));
    }

    TEST_CASE("where none may be asked the order stays") {
        parent_choice choice{four};
        for (std::size_t i = 0; i < 4; ++i) {
            choice.failed(i, start, start + std::chrono::milliseconds{i});
        }
        const auto order = choice.order(nth_key(1, 1), start + 500ms);
        auto left = order;
        CHECK_FALSE(choice.put_first(left, start + 500ms, 10s));
        CHECK(left == order);
    }

    TEST_CASE("when all are down all are named, the first to come back in front") {
        parent_choice choice{four};
        for (std::size_t i = 0; i < 4; ++i) {
            const auto when = start + std::chrono::milliseconds{i == 2 ? 0 : 500};
            choice.failed(i, when, when);
        }
        const auto order = choice.order(nth_key(1, 1), start + 600ms);
        CHECK(order.size() == 4);
        CHECK(order.front() == 2);
    }

    TEST_CASE("none is none, and one is always he") {
        const parent_choice none{std::vector<std::string>{}};
        CHECK(none.order(nth_key(1, 1), start).empty());
        const parent_choice one{std::vector<std::string>{"p"}};
        CHECK(one.order(nth_key(1, 1), start) == std::vector<std::size_t>{0});
    }
}

}  // namespace reprise::proxy::peer::test::of_parents
