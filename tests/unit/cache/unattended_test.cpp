#include "proxy/cache/unattended.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::test::of_unattended {

namespace {

net::share_holder client_at(std::uint8_t last) {
    net::address_bytes out{};
    out.back() = last;
    return out;
}

}  // namespace

TEST_SUITE("cache/unattended") {
    TEST_CASE("one client has so many, whoever else has some, and another what is left of all") {
        unattended_fetches all;
        constexpr unattended_bounds most{.of_one = 2, .of_all = 5};
        std::deque<unattended_permit> held;
        for (const bool may : {true, true, false, false}) {
            auto got = all.enter(client_at(1), most);
            CHECK(static_cast<bool>(got) == may);
            held.push_back(std::move(got));
        }
        CHECK(all.size() == 2);
        for (const bool may : {true, true, false}) {
            held.push_back(all.enter(client_at(2), most));
            CHECK(static_cast<bool>(held.back()) == may);
        }
        held.push_back(all.enter(client_at(3), most));
        CHECK(held.back());
        held.push_back(all.enter(client_at(3), most));
        CHECK_FALSE(held.back());
        CHECK(all.size() == 5);
        held.clear();
        CHECK(all.size() == 0);
    }

    TEST_CASE("who speaks for many is bounded with all, and takes no client's") {
        unattended_fetches all;
        constexpr unattended_bounds most{.of_one = 1, .of_all = 3};
        std::deque<unattended_permit> held;
        for (const bool may : {true, true, true, false}) {
            held.push_back(all.enter({}, most));
            CHECK(static_cast<bool>(held.back()) == may);
        }
        held.pop_front();
        CHECK(all.enter(client_at(1), most));
    }

    TEST_CASE("a permit is given back once, by whoever has it last") {
        unattended_fetches all;
        constexpr unattended_bounds most{.of_one = 1, .of_all = 9};
        std::optional<unattended_permit> second;
        {
            auto first = all.enter(client_at(1), most);
            REQUIRE(first);
            second.emplace(std::move(first));
            CHECK_FALSE(first);
        }
        CHECK(all.size() == 1);
        unattended_permit third;
        third = std::move(*second);
        second.reset();
        CHECK(all.size() == 1);
        CHECK_FALSE(all.enter(client_at(1), most));
        third = {};
        CHECK(all.size() == 0);
        CHECK(all.enter(client_at(1), most));
        CHECK(all.size() == 0);
    }

    TEST_CASE("whatever threads do, none is lost and none is counted twice") {
        unattended_fetches all;
        constexpr unattended_bounds most{.of_one = 3, .of_all = 5};
        std::atomic<unsigned> now{0}, too_many{0}, had{0};
        std::vector<std::thread> threads;
        for (std::uint8_t i = 0; i < 4; ++i) {
            threads.emplace_back([&, i] {
                for (unsigned n = 0; n < 2'000; ++n) {
                    const auto one = all.enter(client_at(i % 2), most);
                    if (one) {
                        too_many += ++now > most.of_all ? 1 : 0;
                        ++had;
                        --now;
                    }
                }
            });
        }
        for (auto& one : threads) {
            one.join();
        }
        CHECK(too_many == 0);
        CHECK(had > 0);
        CHECK(all.size() == 0);
    }
}

}  // namespace reprise::proxy::cache::test::of_unattended
