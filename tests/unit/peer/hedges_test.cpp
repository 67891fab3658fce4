#include "proxy/peer/hedges.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::peer::test::of_hedges {
namespace {

unsigned taken_of(hedges& h, unsigned wished) {
    unsigned out = 0;
    for (unsigned i = 0; i < wished; ++i) {
        out += h.take() ? 1 : 0;
    }
    return out;
}

}  // namespace

TEST_SUITE("peer/hedges") {
    TEST_CASE("a few may go out at once, and then one for so many questions") {
        hedges h;
        CHECK(taken_of(h, 100) == hedges::most);
        for (unsigned i = 1; i < hedges::one_in; ++i) {
            h.note_first();
            CHECK_FALSE(h.take());
        }
        h.note_first();
        CHECK(taken_of(h, 100) == 1);
    }
    TEST_CASE("however many questions there were, no more are saved up") {
        hedges h;
        for (unsigned i = 0; i < 100 * hedges::one_in; ++i) {
            h.note_first();
        }
        CHECK(taken_of(h, 100) == hedges::most);
    }
}

}  // namespace reprise::proxy::peer::test::of_hedges
