#include "filter/counters.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace reprise::filter {

namespace {

/// Counters raised `times[i]` times at place i.
counters raised(const std::vector<unsigned>& times) {
    counters out{times.size()};
    for (std::uint64_t place = 0; place < times.size(); ++place) {
        for (unsigned i = 0; i < times[place]; ++i) {
            out.raise(place);
        }
    }
    return out;
}

std::vector<unsigned> random_times(std::uint64_t seed, std::size_t places, unsigned most) {
    std::mt19937_64 random{seed};
    std::vector<unsigned> times(places);
    for (auto& time : times) {
        time = static_cast<unsigned>(random() % (most + 1));
    }
    return times;
}

}  // namespace

TEST_SUITE("filter/counters") {
    TEST_CASE("a counter goes up to 15 and says at each step what became of its bit") {
        counters row{3};
        CHECK(row.raise(1) == counter_step::turned_on);
        for (unsigned count = 2; count <= 15; ++count) {
            CAPTURE(count);
            CHECK(row.raise(1) == counter_step::moved);
            CHECK(row.at(1) == count);
        }
        CHECK(row.raise(1) == counter_step::stuck);
        CHECK(row.at(1) == 15);
        CHECK(row.at(0) == 0);
        CHECK(row.at(2) == 0);
    }

    TEST_CASE("a counter below 15 comes down again, and at zero refuses") {
        counters row{20};
        for (int i = 0; i < 14; ++i) {
            row.raise(19);
        }
        for (int i = 0; i < 13; ++i) {
            CHECK(row.lower(19) == counter_step::moved);
        }
        CHECK(row.lower(19) == counter_step::turned_off);
        CHECK(row.lower(19) == counter_step::underflow);
        CHECK(row == counters{20});
    }

    TEST_CASE("a counter that reached 15 stays there") {
        counters row{5};
        for (int i = 0; i < 15; ++i) {
            row.raise(2);
        }
        CHECK(row.places_stuck() == 1);
        for (int i = 0; i < 40; ++i) {
            CHECK(row.lower(2) == counter_step::stuck);
        }
        CHECK(row.at(2) == 15);
        CHECK(row.places_on() == 1);
        row.clear();
        CHECK(row.at(2) == 0);
        CHECK(row.places_stuck() == 0);
        CHECK(row == counters{5});
    }

    TEST_CASE("neighbours never meet, whatever is raised and lowered") {
        for (const std::uint64_t places : {1, 2, 15, 16, 17, 63, 64, 65, 200}) {
            CAPTURE(places);
            std::mt19937_64 random{places};
            counters row{places};
            std::vector<unsigned> expected(places);
            for (int step = 0; step < 20'000; ++step) {
                const auto place = random() % places;
                auto& count = expected[place];
                if (random() % 2 == 0) {
                    row.raise(place);
                    count = count == 15 ? 15 : count + 1;
                } else {
                    row.lower(place);
                    count = count == 15 || count == 0 ? count : count - 1;
                }
            }
            std::uint64_t on = 0;
            std::uint64_t stuck = 0;
            for (std::uint64_t place = 0; place < places; ++place) {
                CHECK(row.at(place) == expected[place]);
                on += expected[place] != 0 ? 1 : 0;
                stuck += expected[place] == 15 ? 1 : 0;
            }
            CHECK(row.places_on() == on);
            CHECK(row.places_stuck() == stuck);
        }
    }

    TEST_CASE("the published bits are those whose counter is not zero, none past the end") {
        for (const std::size_t places : {1, 63, 64, 65, 100, 128, 1'000}) {
            CAPTURE(places);
            const auto times = random_times(places, places, 3);
            const auto row = raised(times);
            CHECK(row.bit_words() == (places + 63) / 64);
            for (std::uint64_t place = 0; place < row.bit_words() * 64; ++place) {
                const bool on = (row.bits_on(place / 64) >> (place % 64) & 1) != 0;
                CHECK(on == (place < places && times[place] != 0));
            }
        }
    }

    TEST_CASE("adding adds place by place, and what exceeds 15 sticks") {
        const auto a = random_times(1, 777, 15);
        const auto b = random_times(2, 777, 15);
        auto both = a;
        for (std::size_t i = 0; i < both.size(); ++i) {
            both[i] += b[i];
        }
        auto sum = raised(a);
        sum.add(raised(b));
        CHECK(sum == raised(both));
    }

    TEST_CASE("folding adds the halves") {
        const auto whole = random_times(3, 1'226, 15);
        std::vector<unsigned> half(613);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            half[i % 613] += whole[i];
        }
        CHECK(raised(whole).folded() == raised(half));
    }

    TEST_CASE("four bits a place, in groups of 64 places") {
        CHECK(counters{1}.bytes() == 32);
        CHECK(counters{64}.bytes() == 32);
        CHECK(counters{65}.bytes() == 64);
        CHECK(counters{1'000'000}.bytes() == 500'000);
    }
}

}  // namespace reprise::filter
