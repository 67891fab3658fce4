#include "proxy/cache/policy/frequency_sketch.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

using namespace reprise::proxy::cache;
using test::key_of;

TEST_SUITE_BEGIN("cache/policy/frequency_sketch");

TEST_CASE("a key never noted is estimated at 0, one noted n times at n") {
    frequency_sketch sketch{1'000};
    CHECK(sketch.estimate(key_of(1)) == 0);
    for (unsigned times = 1; times <= 10; ++times) {
        sketch.note(key_of(1));
        CHECK(sketch.estimate(key_of(1)) == times);
    }
    CHECK(sketch.estimate(key_of(2)) == 0);
}

TEST_CASE("estimates end at the most that a counter and the doorkeeper hold") {
    frequency_sketch sketch{1'000};
    for (unsigned i = 0; i < 100; ++i) {
        sketch.note(key_of(1));
    }
    CHECK(sketch.estimate(key_of(1)) == frequency_sketch::most);
}

TEST_CASE("until it ages nothing is underestimated, and little is overestimated") {
    // Budget: fixed keys, so this fails always or never.
    frequency_sketch sketch{4'096};
    std::map<std::uint64_t, unsigned> noted;
    for (const auto& one : test::wishes(3, 30'000, 6'000)) {
        sketch.note(key_of(one.object));
        ++noted[one.object];
    }
    REQUIRE(sketch.agings() == 0);
    std::size_t too_high = 0;
    for (const auto& [object, times] : noted) {
        const auto estimate = sketch.estimate(key_of(object));
        CHECK(estimate >= std::min(times, frequency_sketch::most));
        too_high += estimate > times + 1 ? 1u : 0u;
    }
    CHECK(too_high < noted.size() / 50);
    std::size_t strangers = 0;
    for (std::uint64_t object = 100'000; object < 110'000; ++object) {
        strangers += sketch.estimate(key_of(object)) > 0 ? 1u : 0u;
    }
    CHECK(strangers < 1'000);
}

TEST_CASE("after ten notes a key everything is halved") {
    frequency_sketch sketch{16};
    REQUIRE(sketch.keys() == 16);
    for (unsigned i = 0; i < 9; ++i) {
        sketch.note(key_of(1));
    }
    CHECK(sketch.estimate(key_of(1)) == 9);
    CHECK(sketch.agings() == 0);
    for (unsigned i = 0; i < 151; ++i) {
        sketch.note(key_of(2));
    }
    CHECK(sketch.agings() == 1);
    CHECK(sketch.estimate(key_of(1)) == 4);  // 8 counted beside the doorkeeper's 1, which is gone
}

TEST_CASE("to whoever asks, everything is halved at once, and so at each aging") {
    frequency_sketch sketch{4'096};
    constexpr std::uint64_t known = 2'000;
    for (std::uint64_t object = 0; object < known; ++object) {
        for (std::uint64_t i = 0; i < object % 12; ++i) {
            sketch.note(key_of(object));
        }
    }
    std::vector<unsigned> was;
    for (std::uint64_t object = 0; object < known; ++object) {
        was.push_back(sketch.estimate(key_of(object)));
    }
    REQUIRE(sketch.agings() == 0);
    // Somebody else's requests, of one block: those of all others are halved by nobody's noting.
    const auto other = key_of(1'000'000);
    const auto shares_block = [&](std::uint64_t object) {
        return ((key_of(object).low ^ other.low) & (4'096 / 16 - 1)) == 0;
    };
    for (unsigned aging = 1; aging <= 6; ++aging) {
        while (sketch.agings() < aging) {
            sketch.note(other);
        }
        unsigned wrong = 0;
        for (std::uint64_t object = 0; object < known; ++object) {
            // The doorkeeper's 1 goes with the first.
            const auto first = was[object] == 0 ? 0 : (was[object] - 1) / 2;
            wrong += !shares_block(object) &&
                             sketch.estimate(key_of(object)) != first >> (aging - 1)
                         ? 1
                         : 0;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("a sketch that grows or shrinks while halving is under way forgets nothing of it") {
    for (const bool grows : {true, false}) {
        frequency_sketch sketch{1'024};
        for (unsigned i = 0; i < 9; ++i) {
            sketch.note(key_of(1));
        }
        while (sketch.agings() == 0) {
            sketch.note(key_of(2));
        }
        REQUIRE(sketch.estimate(key_of(1)) == 4);
        grows ? sketch.grow_to(4'096) : sketch.shrink_to(512);
        CHECK(sketch.estimate(key_of(1)) == 4);
        while (sketch.agings() == 1) {
            sketch.note(key_of(2));
        }
        CHECK(sketch.estimate(key_of(1)) == 2);
    }
}

TEST_CASE("a sketch that grows keeps every estimate") {
    frequency_sketch sketch{64};
    for (std::uint64_t object = 0; object < 60; ++object) {
        for (std::uint64_t i = 0; i < 1 + object % 8; ++i) {
            sketch.note(key_of(object));
        }
    }
    std::vector<unsigned> before;
    for (std::uint64_t object = 0; object < 200; ++object) {
        before.push_back(sketch.estimate(key_of(object)));
    }
    sketch.grow_to(5'000);
    CHECK(sketch.keys() >= 5'000);
    for (std::uint64_t object = 0; object < 200; ++object) {
        CHECK(sketch.estimate(key_of(object)) == before[object]);
    }
    const auto keys = sketch.keys();
    sketch.grow_to(10);
    CHECK(sketch.keys() == keys);
}

TEST_CASE("a sketch that shrinks estimates no key lower, takes half the room and ages sooner") {
    frequency_sketch sketch{1'024};
    std::vector<unsigned> before;
    for (std::uint64_t object = 0; object < 60; ++object) {
        for (std::uint64_t i = 0; i < 1 + object % 8; ++i) {
            sketch.note(key_of(object));
        }
        before.push_back(sketch.estimate(key_of(object)));
    }
    sketch.shrink_to(257);
    CHECK(sketch.keys() == 512);
    sketch.shrink_to(256);
    CHECK(sketch.keys() == 256);
    CHECK(sketch.memory() == 8 * 256 + 8);
    unsigned more = 0;
    for (std::uint64_t object = 0; object < 60; ++object) {
        CHECK(sketch.estimate(key_of(object)) >= before[object]);
        more += sketch.estimate(key_of(object)) > before[object] ? 1 : 0;
    }
    CHECK(more < 20);  // fixed keys: always or never
    for (unsigned i = 0; i < 10 * 256; ++i) {
        sketch.note(key_of(1'000 + i % 50));
    }
    CHECK(sketch.agings() == 1);
    sketch.shrink_to(0);
    CHECK(sketch.keys() == 16);
}

TEST_CASE("eight bytes a key and a bit for sixteen, rounded up to a power of two") {
    CHECK(frequency_sketch{1}.memory() == 128 + 8);
    CHECK(frequency_sketch{1'024}.memory() == 8 * 1'024 + 8);
    CHECK(frequency_sketch{1'025}.memory() == 8 * 2'048 + 16);
}

TEST_CASE("threads may note and ask at once") {
    frequency_sketch sketch{1'000};
    std::vector<std::jthread> threads;
    std::atomic<unsigned> highest{0};
    for (unsigned t = 0; t < 3; ++t) {
        threads.emplace_back([&sketch, &highest, t] {
            for (std::uint64_t i = 0; i < 20'000; ++i) {
                sketch.note(key_of(i % 700 + t));
                highest = std::max(highest.load(), sketch.estimate(key_of(i % 900)));
            }
        });
    }
    threads.clear();
    CHECK(highest.load() <= frequency_sketch::most);
    CHECK(sketch.estimate(key_of(350)) > 0);
}

TEST_CASE(
    "threads that note one key at once lose sights at most: no count runs over into another") {
    // Each key is noted by all threads at once until its counters are full. So however they met, what
    // is counted in the end is what one thread would have counted.
    constexpr std::uint64_t rounds = 1'500;
    constexpr unsigned thread_count = 4, notes = 40;
    constexpr std::uint64_t room = 1u << 18;
    static_assert(rounds * thread_count * notes < 10 * room);  // it does not age
    frequency_sketch together{room}, alone{room};
    // Blocks have but some of these keys, so that there are counters to run over into.
    const auto key = [](std::uint64_t n) {
        auto one = key_of(n);
        one.low %= 192;
        return one;
    };
    std::atomic<unsigned> fallen{0};
    {
        std::barrier all_at_once{std::ptrdiff_t{thread_count}};
        std::vector<std::jthread> threads;
        for (unsigned t = 0; t < thread_count; ++t) {
            threads.emplace_back([&] {
                for (std::uint64_t n = 0; n < rounds; ++n) {
                    all_at_once.arrive_and_wait();
                    unsigned before = 0;
                    for (unsigned i = 0; i < notes; ++i) {
                        together.note(key(n));
                        const auto now = together.estimate(key(n));
                        fallen += now < before ? 1 : 0;
                        before = now;
                    }
                }
            });
        }
    }
    for (std::uint64_t n = 0; n < rounds; ++n) {
        for (unsigned i = 0; i < frequency_sketch::most; ++i) {
            alone.note(key(n));
        }
    }
    CHECK(fallen == 0);
    REQUIRE(together.agings() == 0);
    unsigned wrong = 0;
    for (std::uint64_t n = 0; n < 20 * rounds; ++n) {
        wrong += together.estimate(key(n)) != alone.estimate(key(n)) ? 1 : 0;
    }
    CHECK(wrong == 0);
}

TEST_SUITE_END();
