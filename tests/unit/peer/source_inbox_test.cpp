#include "proxy/peer/source_inbox.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace reprise::proxy::peer::test::of_source_inbox {
namespace {

using filter::test::nth_key;
using kind = source_event::kind;

source_event stored(std::uint64_t i) {
    return {.key = nth_key(1, i), .name = i, .by = holder::memory};
}
source_event promised(std::uint64_t i) {
    return {.key = nth_key(1, i), .name = i, .by = holder::under_way};
}

std::vector<url_name> names(const std::vector<source_event>& of) {
    std::vector<url_name> out;
    for (const auto& one : of) {
        out.push_back(one.name);
    }
    return out;
}

}  // namespace

TEST_SUITE("peer/source_inbox") {
    TEST_CASE("what came is taken once, in its order") {
        source_inbox inbox;
        (void)inbox.push(stored(1));
        (void)inbox.push(promised(2));
        std::vector<source_event> taken{stored(9)};
        CHECK_FALSE(inbox.take(taken));
        CHECK(names(taken) == std::vector<url_name>{1, 2});
        CHECK_FALSE(inbox.take(taken));
        CHECK(taken.empty());
        CHECK(inbox.lost() == 0);
    }

    TEST_CASE("the first event stirs, and the first promise, each once until they are taken") {
        source_inbox inbox;
        std::vector<source_event> taken;
        for (int i = 0; i < 2; ++i) {
            CHECK(inbox.push(stored(1)));
            CHECK_FALSE(inbox.push(stored(2)));
            CHECK(inbox.push(promised(3)));
            CHECK_FALSE(inbox.push(promised(4)));
            CHECK_FALSE(inbox.push(stored(5)));
            (void)inbox.take(taken);
        }
        // That one has ended is no promise.
        CHECK(inbox.push({.key = nth_key(1, 3), .what = kind::gone, .by = holder::under_way}));
        CHECK(inbox.push(promised(6)));
    }

    TEST_CASE("while the keeper looks in any case only a promise stirs it") {
        source_inbox inbox;
        CHECK_FALSE(inbox.note_plan(true));
        CHECK_FALSE(inbox.push(stored(1)));
        CHECK(inbox.push(promised(2)));
        std::vector<source_event> taken;
        (void)inbox.take(taken);
        CHECK_FALSE(inbox.note_plan(false));
        CHECK(inbox.push(stored(3)));
    }

    TEST_CASE("what stirred nobody is told of when the keeper plans no look any more") {
        source_inbox inbox;
        (void)inbox.note_plan(true);
        (void)inbox.push(stored(1));
        CHECK_FALSE(inbox.note_plan(true));  // it looks soon
        CHECK(inbox.note_plan(false));
        // Whoever comes first to one without a plan has stirred it.
        std::vector<source_event> taken;
        (void)inbox.take(taken);
        CHECK(inbox.push(stored(2)));
        CHECK_FALSE(inbox.note_plan(false));
    }

    TEST_CASE("whatever threads they come from, all are taken") {
        source_inbox inbox;
        constexpr std::uint64_t many = 20'000;
        std::vector<source_event> taken;
        std::size_t all = 0;
        {
            const auto send = [&inbox] {
                for (std::uint64_t i = 0; i < many; ++i) {
                    (void)inbox.push(i % 3 == 0 ? promised(i) : stored(i));
                }
            };
            const std::jthread one{send}, other{send};
            while (all < many) {
                (void)inbox.take(taken);
                all += taken.size();
                (void)inbox.note_plan(all % 2 == 0);
            }
        }
        (void)inbox.take(taken);
        CHECK(all + taken.size() == 2 * many);
    }
}

}  // namespace reprise::proxy::peer::test::of_source_inbox
