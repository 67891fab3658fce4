#include "proxy/base/memory_return.hpp"
#include "proxy/base/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::test::of_memory_return_test {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = 1u << 20;

// A process of which a test says how large it is, looked at every five seconds.
struct process {
    memory_return rule;
    steady_time now{1h};
    memory_return::look at{.resident = 60 * mib, .in_use = 20 * mib};

    process() { CHECK(!is_due()); }
    bool is_due() {
        now += 5s;
        return rule.is_due(at, now);
    }
    /// How long it takes until it is due.
    std::chrono::seconds until_due() {
        const auto from = now;
        while (!is_due()) {
            if (now - from >= 1h) {
                return 1h;
            }
        }
        return std::chrono::duration_cast<std::chrono::seconds>(now - from);
    }
    // Somebody takes so much, or lets go of it: what is let go stays with the process.
    void takes(std::uint64_t bytes) {
        const auto free = at.resident - at.in_use - 40 * mib;
        at.in_use += bytes;
        at.resident += bytes > free ? bytes - free : 0;
    }
    void lets_go(std::uint64_t bytes) { at.in_use -= bytes; }
    // It was done, and found so much.
    void gives_back(std::uint64_t bytes) {
        at.resident -= bytes;
        rule.note_done(at);
    }
};

TEST_SUITE_BEGIN("base/memory_return");

TEST_CASE("a process that stays as it is keeps what it has") {
    process one;
    CHECK(one.until_due() == 1h);
}

TEST_CASE("while a peak lasts there is nothing to be given back") {
    process one;
    one.takes(500 * mib);
    CHECK(one.until_due() == 1h);
}

TEST_CASE("a peak that is over is given back within half a minute, whoever took it") {
    process one;
    one.takes(200 * mib);
    for (int i = 0; i < 100; ++i) {
        CHECK(!one.is_due());
    }
    one.lets_go(200 * mib);
    CHECK(one.until_due() <= 30s);
    one.gives_back(200 * mib);
    CHECK(one.until_due() == 1h);
}

TEST_CASE("the tenth peak is given back as soon as the first") {
    process one;
    for (int i = 0; i < 10; ++i) {
        CAPTURE(i);
        one.takes(100 * mib);
        CHECK(!one.is_due());
        one.lets_go(100 * mib);
        CHECK(one.until_due() <= 30s);
        one.gives_back(100 * mib);
    }
}

TEST_CASE("what is free for a moment is kept for whoever takes it next") {
    process one;
    one.takes(200 * mib);
    for (int i = 0; i < 100; ++i) {
        one.lets_go(150 * mib);
        CHECK(!one.is_due());
        CHECK(!one.is_due());
        one.takes(150 * mib);
        CHECK(!one.is_due());
    }
}

TEST_CASE("less than 16 MiB, or than a sixteenth of the process, is not worth it") {
    process one;
    SUBCASE("a small one") {
        one.takes(100 * mib);
        CHECK(!one.is_due());
        one.lets_go(15 * mib);
        CHECK(one.until_due() == 1h);
        one.lets_go(1 * mib);
        CHECK(one.until_due() <= 30s);
    }
    SUBCASE("a large one") {
        one.takes(1540 * mib);
        CHECK(!one.is_due());
        one.lets_go(99 * mib);
        CHECK(one.until_due() == 1h);
        one.lets_go(1 * mib);
        CHECK(one.until_due() <= 30s);
    }
}

TEST_CASE("what could not be given back is not looked for again, until more is free") {
    process one;
    one.takes(100 * mib);
    CHECK(!one.is_due());
    one.lets_go(60 * mib);
    CHECK(one.until_due() <= 30s);
    one.gives_back(0);
    CHECK(one.until_due() == 1h);
    one.lets_go(20 * mib);
    CHECK(one.until_due() <= 30s);
}

TEST_CASE("what could not be given back, was used again and is free again may be given back") {
    process one;
    one.takes(100 * mib);
    CHECK(!one.is_due());
    one.lets_go(100 * mib);
    CHECK(one.until_due() <= 30s);
    one.gives_back(0);
    one.takes(100 * mib);
    CHECK(!one.is_due());
    one.lets_go(100 * mib);
    CHECK(one.until_due() <= 30s);
}

TEST_CASE("a look that found nothing out changes nothing") {
    process one;
    one.takes(200 * mib);
    CHECK(!one.is_due());
    const auto resident = std::exchange(one.at.resident, 0);
    CHECK(one.until_due() == 1h);
    one.at.resident = resident;
    CHECK(one.until_due() == 1h);
}

TEST_CASE("what the process has is what the kernel says of it") {
    static_assert(noexcept(resident_bytes()));
    std::uint64_t kibibytes = 0;
    std::ifstream in{"/proc/self/status"};
    for (std::string word; in >> word;) {
        if (word == "VmRSS:") {
            in >> kibibytes;
        }
    }
    const auto told = resident_bytes();
    CHECK(told >= kibibytes * 1024 - std::min<std::uint64_t>(kibibytes * 1024, 4 * mib));
    CHECK(told <= kibibytes * 1024 + 4 * mib);
}

TEST_CASE(
    "steps stay as they are while they cost what they give, and grow where each costs a walk") {
    steps_of_return steps;
    const auto mibs = [&] { return static_cast<std::int64_t>(steps.next() / mib); };
    for (int i = 0; i < 100; ++i) {
        steps.note(150us * mibs());
    }
    CHECK(steps.next() == steps_of_return::first);
    for (int i = 0; i < 100; ++i) {
        steps.note(100ms);
    }
    CHECK(mibs() > 300);
    CHECK(mibs() <= 700);
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
    // A sanitizer's heap is its own.
    CHECK((heap_is_watched || resident_bytes() + block * count / 2 < peak));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::test::of_memory_return_test
