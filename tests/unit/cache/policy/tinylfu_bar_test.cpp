#include "proxy/cache/policy/tinylfu_bar.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using reprise::proxy::cache::frequency_sketch;
using reprise::proxy::cache::tinylfu_bar;

namespace {

constexpr auto most = frequency_sketch::most;

/// As high as it can be.
tinylfu_bar highest_bar() {
    tinylfu_bar bar;
    for (unsigned i = 0; i < 2 * most; ++i) {
        bar.note_left(most, 0);
    }
    return bar;
}

void refuse(tinylfu_bar& bar, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
        bar.note_refused(0);
    }
}

}  // namespace

TEST_SUITE_BEGIN("cache/policy/tinylfu_bar");

TEST_CASE("while nothing has left, everything that was asked for passes") {
    CHECK(tinylfu_bar{}.admits(1, 0));
    CHECK(tinylfu_bar{}.admits(1, 7));
    CHECK_FALSE(tinylfu_bar{}.admits(0, 0));
}

TEST_CASE("what leaves raises it by one, and lowers it to itself at once") {
    tinylfu_bar bar;
    for (unsigned height = 1; height <= 5; ++height) {
        bar.note_left(5, 0);
        CAPTURE(height);
        CHECK_FALSE(bar.admits(height, 0));
        CHECK(bar.admits(height + 1, 0));
    }
    bar.note_left(5, 0);
    CHECK(bar.admits(6, 0));
    bar.note_left(2, 0);
    CHECK_FALSE(bar.admits(2, 0));
    CHECK(bar.admits(3, 0));
    bar.note_left(0, 0);
    CHECK(bar.admits(1, 0));
}

TEST_CASE("whatever leaves, a key with the largest estimate passes") {
    CHECK(highest_bar().admits(most, 0));
    CHECK_FALSE(highest_bar().admits(most - 1, 0));
}

TEST_CASE("refusals lower it by one at a time, until what was asked for twice passes") {
    auto bar = highest_bar();
    for (unsigned height = tinylfu_bar::highest; height > 1; --height) {
        CAPTURE(height);
        refuse(bar, tinylfu_bar::refusals_a_step - 1);
        CHECK_FALSE(bar.admits(height, 0));
        refuse(bar, 1);
        CHECK(bar.admits(height, 0));
    }
    refuse(bar, 100 * tinylfu_bar::refusals_a_step);
    CHECK_FALSE(bar.admits(1, 0));
    CHECK(bar.admits(2, 0));
}

TEST_CASE("refusals raise nothing where nothing has left") {
    tinylfu_bar bar;
    refuse(bar, 100 * tinylfu_bar::refusals_a_step);
    CHECK(bar.admits(1, 0));
}

TEST_CASE("it is halved as often as the sketch was, whenever that is found out") {
    const auto bar = highest_bar();  // 15
    CHECK_FALSE(bar.admits(7, 1));
    CHECK(bar.admits(8, 1));
    CHECK_FALSE(bar.admits(3, 2));
    CHECK(bar.admits(4, 2));
    CHECK(bar.admits(1, 4));
    CHECK(bar.admits(1, 1'000'000));
    auto noted = bar;
    noted.note_left(most, 1);
    CHECK_FALSE(noted.admits(8, 1));
    CHECK(noted.admits(9, 1));
}

TEST_CASE("who comes late with an older number of agings changes nothing by it") {
    auto bar = highest_bar();
    bar.note_refused(2);  // 3
    CHECK_FALSE(bar.admits(3, 1));
    bar.note_left(3, 1);
    CHECK_FALSE(bar.admits(3, 2));
    CHECK(bar.admits(4, 2));
}

TEST_CASE("after 2^32 agings it is halved as before") {
    constexpr auto before = (std::uint64_t{1} << 32) - 1;
    tinylfu_bar bar;
    for (std::uint64_t agings = 0; agings < before; agings += std::uint64_t{1} << 30) {
        bar.note_left(0, agings);
    }
    for (unsigned i = 0; i < most; ++i) {
        bar.note_left(most, before);
    }
    CHECK_FALSE(bar.admits(7, before + 1));
    CHECK(bar.admits(8, before + 1));
}

TEST_SUITE_END();
