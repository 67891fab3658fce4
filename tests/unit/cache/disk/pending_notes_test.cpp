#include "proxy/cache/disk/pending_notes.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {
namespace {

using test::key_of;

dropped_url dropped(int number) {
    return {key_of(std::to_string(number))};
}

}  // namespace

TEST_SUITE("cache/disk/pending_notes") {
    TEST_CASE("what says the same is noted once") {
        pending_notes notes{10};
        CHECK(notes.empty());
        for (int i = 0; i < 1000; ++i) {
            CHECK(notes.add(dropped(i % 3)));
            CHECK(notes.add(expired_url{key_of("x"), wall_time{std::chrono::milliseconds{i}}}));
            notes.add(bans_note{});
        }
        CHECK(notes.size() == 4);
        const auto taken = notes.take();
        CHECK(notes.empty());
        CHECK(taken.dropped().size() == 3);
        CHECK(taken.expired().at(key_of("x")) == wall_time{});  // stale since the first
        CHECK(taken.bans());
        CHECK_FALSE(taken.everything_before());
    }

    TEST_CASE("of too many URLs one thing is remembered: everything") {
        pending_notes notes{10};
        for (int i = 0; i < 1000; ++i) {
            CHECK(notes.add(dropped(i)) == (i < 5));  // and five of the others
            (void)notes.add(expired_url{key_of("x" + std::to_string(i)), {}});
            CHECK(notes.size() <= 20);
        }
        CHECK(notes.everything_before());
        CHECK(notes.dropped().empty());
        CHECK(notes.expired().empty());
        CHECK_FALSE(notes.add(dropped(0)));
        (void)notes.take();
        CHECK(notes.empty());
        CHECK(notes.add(dropped(0)));
    }

    TEST_CASE("records are refused when they are too many, whatever became of the URLs") {
        pending_notes notes{10};
        for (int i = 0; i < 1000; ++i) {
            (void)notes.add(dropped(i));
            CHECK(notes.add(drop_note{key_of("x"), 0, static_cast<std::uint64_t>(i)}) == (i < 10));
        }
        CHECK(notes.drops().size() == 10);
    }

    TEST_CASE("of too many calls the latest are kept") {
        pending_notes notes{10};
        int called = -1;
        for (int i = 0; i < 1000; ++i) {
            notes.call([&called, i] { called = i; });
        }
        const auto calls = notes.take().take_calls();
        CHECK(calls.size() <= 10);
        calls.back()();
        CHECK(called == 999);
    }
}

}  // namespace reprise::proxy::cache::disk
