#include "tests/soak/out_of_reach.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

namespace reprise::tests::new_urls::test {
namespace {

using namespace std::chrono_literals;

steady_clock::time_point at(milliseconds ms) {
    return steady_clock::time_point{1h} + ms;
}

struct story {
    plan of;
    std::vector<origin_fetch> fetches{{.url = 1, .by = 0, .at = at(0ms)}};
    std::vector<held_copy> copies;
    std::vector<absence> troubles;

    explicit story(const char* trouble, bool disk = false) {
        of.trouble = trouble;
        of.disk = disk;
    }
    void fetched(unsigned by, milliseconds when) { fetches.push_back({1, by, at(when)}); }
    void had(unsigned by, milliseconds since) { copies.push_back({1, by, at(since)}); }
    void away(unsigned node, milliseconds from, milliseconds to) {
        troubles.push_back({node, at(from), at(to)});
    }
    [[nodiscard]] std::size_t excused() const {
        return out_of_reach(of, fetches, copies, troubles);
    }
};

/// The second node fetches it then, and one of both was away from 500 to 2,000 ms.
std::size_t excused_of_one(const char* trouble, unsigned away, milliseconds then) {
    story s{trouble};
    s.away(away, 500ms, 2000ms);
    s.fetched(1, then);
    return s.excused();
}

}  // namespace

TEST_SUITE("soak/out_of_reach") {
    TEST_CASE("a URL's first fetch is no excuse, nor is a second while all is well") {
        story s{"pause"};
        s.fetched(1, 1000ms);
        CHECK(s.excused() == 0);
    }
    TEST_CASE("whoever fetched it was stopped, until a tenth of a second ago") {
        story s{"pause"};
        s.away(0, 500ms, 2000ms);
        s.fetched(1, 1000ms);
        s.fetched(2, 1200ms);  // the one before has it
        CHECK(s.excused() == 1);
        s.had(3, 900ms);
        CHECK(s.excused() == 0);
        CHECK(excused_of_one("pause", 0, 2050ms) == 1);
        CHECK(excused_of_one("pause", 0, 2200ms) == 0);
    }
    TEST_CASE("one that was stopped and asks itself could have asked the others") {
        CHECK(excused_of_one("pause", 1, 2010ms) == 0);
    }
    TEST_CASE("one that is cut off has nobody, and no more once it is back") {
        CHECK(excused_of_one("partition", 1, 1000ms) == 1);
        CHECK(excused_of_one("partition", 1, 2010ms) == 0);
    }
    TEST_CASE("one that was killed has lost what it had before, but on a disk") {
        for (const bool disk : {false, true}) {
            CAPTURE(disk);
            story s{"kill", disk};
            s.away(0, 500ms, 1000ms);
            s.fetched(1, 1500ms);
            CHECK(s.excused() == (disk ? 0 : 1));
            s.had(0, 1200ms);
            CHECK(s.excused() == 0);
        }
    }
}

}  // namespace reprise::tests::new_urls::test
