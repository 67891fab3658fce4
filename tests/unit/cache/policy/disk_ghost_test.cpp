#include "proxy/cache/policy/disk_ghost.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <deque>

namespace reprise::proxy::cache::test::of_disk_ghost {
namespace {

using filter::test::nth_key;

/// A disk, the sketch that it goes by, and what is on it.
struct world {
    frequency_sketch sketch{1'000};
    disk_ghost disk;
    std::deque<evictable> all;

    explicit world(std::uint64_t bytes, double exponent = 1, bool by_wait = false)
        : disk{bytes, exponent, sketch, by_wait} {}

    void ask(std::uint64_t number, int times) {
        for (; times > 0; --times) {
            sketch.note(nth_key(1, number));
        }
    }
    [[nodiscard]] bool wants(std::uint64_t number, std::uint64_t bytes, packed_wait wait = {}) {
        return disk.is_worth_writing(nth_key(1, number), bytes, wait);
    }
    evictable& put(std::uint64_t number, std::uint64_t bytes, packed_wait wait = {}) {
        auto& one = all.emplace_back();
        one.key = nth_key(1, number);
        one.charge = bytes;
        one.set_wait(wait);
        disk.enter(one);
        return one;
    }
};

}  // namespace

TEST_SUITE("cache/policy/disk_ghost") {
    TEST_CASE("what is worth least for each byte goes first, and nothing while all fits") {
        world w{1'000};
        w.ask(1, 4);
        w.ask(2, 4);
        w.ask(3, 2);
        w.put(1, 200);
        auto& large = w.put(2, 250);
        w.put(3, 100);
        CHECK(w.disk.evict() == nullptr);
        w.disk.set_bytes(400);
        CHECK(w.disk.evict() == &large);
        CHECK(w.disk.evict() == nullptr);
    }

    TEST_CASE("what is worth no more than what left last is not written, unless there is room") {
        world w{1'000};
        w.ask(1, 2);
        for (std::uint64_t i = 10; i < 15; ++i) {
            w.ask(i, 5);
            w.put(i, 200);
        }
        CHECK(w.wants(1, 100));  // nothing has left yet: nobody knows what it takes
        w.put(1, 200);
        CHECK(w.disk.evict() != nullptr);
        w.ask(2, 2);
        w.ask(3, 3);
        CHECK(!w.wants(2, 200));
        CHECK(w.wants(3, 200));
        CHECK(w.wants(2, 100));  // half as large, and so twice as much worth for each byte
        w.disk.leave(w.all.front());
        CHECK(w.wants(2, 200));
    }

    TEST_CASE("it fills until a sixteenth is free, and takes nothing above a quarter") {
        world w{1'600};
        CHECK(w.disk.filling());
        CHECK(w.wants(1, 400));
        CHECK(!w.wants(1, 401));
        w.put(1, 400);
        w.put(2, 400);
        w.put(3, 400);
        w.put(4, 299);
        CHECK(w.disk.filling());
        w.put(5, 1);
        CHECK(!w.disk.filling());
    }

    TEST_CASE("by wait, what a fetch took counts") {
        world w{1'000, 1, true};
        w.ask(1, 3);
        w.ask(2, 3);
        auto& slow = w.put(1, 250, packed_wait{std::chrono::seconds{5}});
        auto& quick = w.put(2, 250, packed_wait{std::chrono::milliseconds{10}});
        w.disk.set_bytes(400);
        CHECK(w.disk.evict() == &quick);
        CHECK(w.disk.evict() == nullptr);
        w.disk.leave(slow);
        CHECK(w.disk.filling());
    }

    TEST_CASE("another exponent leaves an object of the mean size where it was") {
        world w{1'000, 0};
        w.ask(1, 2);
        for (std::uint64_t i = 10; i < 16; ++i) {
            w.ask(i, i == 10 ? 4 : 6);
            w.put(i, 200);
        }
        CHECK(w.disk.evict() != nullptr);  // asked for four times, at 200 bytes
        w.disk.set_exponent(1);
        w.ask(2, 3);
        w.ask(3, 5);
        CHECK(!w.wants(2, 200));
        CHECK(w.wants(3, 200));
        CHECK(w.wants(2, 100));
        CHECK(!w.wants(3, 250));
    }
}

}  // namespace reprise::proxy::cache::test::of_disk_ghost
