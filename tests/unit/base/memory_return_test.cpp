#include "proxy/base/memory_return.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace reprise::proxy::test::of_memory_return_test {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = 1u << 20;

// A process of which a test says how large it is.
struct process {
    memory_return rule;
    steady_time now{1h};
    memory_return::look at{.resident = 30 * mib};

    process() { CHECK(!is_due_after(0s)); }
    bool is_due_after(std::chrono::seconds time) {
        now += time;
        return rule.is_due(at, now);
    }
    // It was done, and found so much.
    void gives_back(std::uint64_t bytes) {
        at.resident -= bytes;
        rule.note_done(at, now);
    }
};

TEST_SUITE_BEGIN("base/memory_return");

TEST_CASE("a process that stays as it is keeps what it has") {
    process one;
    for (int i = 0; i < 600; ++i) {
        CHECK(!one.is_due_after(10s));
    }
}

TEST_CASE("what the store holds is not what could be given back") {
    process one;
    one.at.resident += 500 * mib;
    one.at.stored += 490 * mib;
    CHECK(!one.is_due_after(1min));
    one.at.stored = 0;  // all of it was purged
    CHECK(one.is_due_after(1s));
}

TEST_CASE("growth is looked at once it is worth it, and not again while it lasts") {
    process one;
    one.at.resident += 15 * mib;
    CHECK(!one.is_due_after(1min));
    one.at.resident += 1 * mib;
    CHECK(one.is_due_after(1s));
    one.gives_back(0);
    CHECK(!one.is_due_after(30s));
}

TEST_CASE("what connections leave is given back soon after they have gone") {
    process one;
    one.at.connections = 8'000;
    one.at.resident += 80 * mib;
    CHECK(one.is_due_after(10s));
    one.gives_back(0);  // they are all here
    CHECK(!one.is_due_after(20s));
    one.at.connections = 4'001;
    CHECK(!one.is_due_after(1s));
    one.at.connections = 3'000;
    CHECK(one.is_due_after(1s));
    one.gives_back(60 * mib);
    CHECK(!one.is_due_after(50s));
}

TEST_CASE("it is never asked for twice within ten seconds") {
    process one;
    one.at.resident += 100 * mib;
    CHECK(!one.is_due_after(9s));
    CHECK(one.is_due_after(1s));
    one.gives_back(90 * mib);
    one.at.resident += 90 * mib;
    CHECK(!one.is_due_after(9s));
    CHECK(one.is_due_after(1s));
}

TEST_CASE("a peak that nobody saw the end of is looked for again, ever more seldom") {
    process one;
    one.at.resident += 100 * mib;
    CHECK(one.is_due_after(10s));
    one.gives_back(0);
    std::vector<std::chrono::seconds> when;
    std::chrono::seconds since{0};
    for (int i = 0; i < 4'000; ++i) {
        since += 5s;
        if (one.is_due_after(5s)) {
            when.push_back(since);
            since = 0s;
            one.gives_back(0);
        }
    }
    REQUIRE(when.size() >= 7);
    CHECK(when[0] == 1min);
    CHECK(when[1] == 2min);
    CHECK(when[2] == 4min);
    CHECK(when[5] == memory_return::longest_wait);
    CHECK(when[6] == memory_return::longest_wait);
}

TEST_CASE("what lies free below something in use is given back") {
    if (resident_bytes() == 0) {
        return;  // no /proc here
    }
    constexpr std::size_t block = 10'000, count = 6'000;
    std::vector<std::unique_ptr<char[]>> blocks;
    for (std::size_t i = 0; i < count; ++i) {
        blocks.push_back(std::make_unique<char[]>(block));
    }
    const auto last = std::make_unique<char[]>(block);
    const auto peak = resident_bytes();
    blocks.clear();
    give_memory_back();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(resident_bytes() + block * count / 2 < peak);  // a sanitizer's heap is its own
#else
    CHECK(peak > 0);
#endif
}

TEST_SUITE_END();

}  // namespace reprise::proxy::test::of_memory_return_test
