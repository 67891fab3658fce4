#include "proxy/peer/news_waits.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::peer::test::of_news_waits {
namespace {

using generation = filter::digest_generation;

struct waiting : net::test_loop {
    /// A wait of its own wakeup, in the order of coming.
    struct one {
        explicit one(net::deadlines& timer) : wake{timer} {}
        net::wakeup wake;
        std::optional<news_waits::wait> place;
        [[nodiscard]] bool is_woken() { return wake.take(); }
    };
    one& enter(const std::string& address,
               const std::string& name,
               std::optional<generation> since = generation{.epoch = 1, .counter = 5},
               waited_for what = waited_for::digest) {
        return enter_for(only(what, since.value_or(generation{})), address, name);
    }
    one& enter_for(const news_waits::wanted& what,
                   const std::string& address,
                   const std::string& name) {
        auto& made = *all.emplace_back(std::make_unique<one>(timer));
        made.place.emplace(waits.enter(what, address, name, made.wake.handle()));
        return made;
    }
    static news_waits::wanted only(waited_for what, generation is) {
        news_waits::wanted out;
        out[static_cast<std::size_t>(what)] = is;
        return out;
    }
    static news_waits::wanted both(generation digest, generation seen) {
        auto out = only(waited_for::digest, digest);
        out[static_cast<std::size_t>(waited_for::seen)] = seen;
        return out;
    }

    news_waits waits;
    std::vector<std::unique_ptr<one>> all;
};

awaitable<void> note_when_woken(net::wakeup& wake, std::vector<net::wakeup*>& woken) {
    const bool signalled = co_await wake.wait(net::late());
    if (signalled) {
        woken.push_back(&wake);
    }
}

}  // namespace

TEST_SUITE("peer/news_waits") {
    TEST_CASE("those that are behind are woken, and nobody else") {
        waiting w;
        auto& current = w.enter("a", "1", generation{.epoch = 1, .counter = 6});
        auto& behind = w.enter("a", "2");
        auto& whole = w.enter("a", "3", std::nullopt);
        auto& seen = w.enter("a", "2", generation{.epoch = 1, .counter = 5}, waited_for::seen);
        w.waits.wake_behind(waiting::only(waited_for::digest, {.epoch = 1, .counter = 6}));
        CHECK_FALSE(current.is_woken());
        CHECK(behind.is_woken());
        CHECK(whole.is_woken());
        CHECK_FALSE(seen.is_woken());
        CHECK(w.waits.waiting() == 4);
        CHECK(w.waits.waiting(waited_for::digest) == 3);
        CHECK(w.waits.waiting(waited_for::seen) == 1);
        w.enter("a", "2");  // in the place of one
        CHECK(w.waits.waiting() == 5);
        CHECK(w.waits.waiting(waited_for::digest) == 3);
        w.all.clear();
        CHECK(w.waits.waiting() == 0);
        CHECK(w.waits.waiting(waited_for::digest) == 0);
        w.waits.end_all(true);
        w.enter("a", "1");
        CHECK(w.waits.waiting(waited_for::digest) == 0);
    }

    TEST_CASE("an asker's newer question ends his older one, for the same alone") {
        waiting w;
        auto& first = w.enter("a", "1");
        auto& of_seen = w.enter("a", "1", std::nullopt, waited_for::seen);
        auto& other = w.enter("a", "2");
        auto& elsewhere = w.enter("b", "1");
        auto& second = w.enter("a", "1");
        CHECK(first.place->has_ended());
        CHECK(first.is_woken());
        for (auto* one : {&of_seen, &other, &elsewhere, &second}) {
            CHECK_FALSE(one->place->has_ended());
        }
    }

    TEST_CASE("one may wait for two, and is woken once for both") {
        waiting w;
        const generation five{.epoch = 1, .counter = 5}, six{.epoch = 1, .counter = 6};
        auto& two = w.enter_for(waiting::both(five, five), "a", "1");
        CHECK(w.waits.waiting() == 1);
        CHECK(w.waits.waiting(waited_for::digest) == 1);
        CHECK(w.waits.waiting(waited_for::seen) == 1);
        w.waits.wake_behind(waiting::only(waited_for::seen, five));
        w.waits.wake_behind(waiting::only(waited_for::members, six));
        CHECK_FALSE(two.is_woken());
        w.waits.wake_behind(waiting::only(waited_for::seen, six));
        CHECK(two.is_woken());
        w.waits.wake_behind(waiting::both(six, six));
        CHECK(two.is_woken());
        auto& newer = w.enter("a", "1", five, waited_for::seen);
        CHECK(two.place->has_ended());
        CHECK(w.waits.waiting(waited_for::digest) == 0);
        CHECK(w.waits.waiting(waited_for::seen) == 1);
        w.enter_for(waiting::both(five, five), "a", "1");
        CHECK(newer.place->has_ended());
    }

    TEST_CASE("one address, and all together, are bounded: the oldest end") {
        waiting w;
        for (std::size_t i = 0; i < news_waits::most_of_address + 3; ++i) {
            w.enter("a", std::to_string(i));
        }
        for (std::size_t i = 0; i < w.all.size(); ++i) {
            CHECK(w.all[i]->place->has_ended() == (i < 3));
        }
        w.all.clear();
        for (std::size_t i = 0; i < news_waits::most + 3; ++i) {
            w.enter(std::to_string(i), "");
        }
        for (std::size_t i = 0; i < w.all.size(); ++i) {
            CHECK(w.all[i]->place->has_ended() == (i < 3));
        }
    }

    TEST_CASE("all end at once, and for good where it is the end") {
        waiting w;
        auto& first = w.enter("a", "1");
        w.waits.end_all(false);
        CHECK(first.place->has_ended());
        auto& second = w.enter("a", "1");
        CHECK_FALSE(second.place->has_ended());
        w.waits.end_all(true);
        CHECK(second.place->has_ended());
        CHECK(w.enter("a", "1").place->has_ended());
    }

    TEST_CASE("whoever waits is woken whatever memory there is") {
        waiting w;
        auto& first = w.enter("a", "1");
        auto& second = w.enter("a", "2");
        std::vector<net::wakeup*> woken;
        for (auto* one : {&first, &second}) {
            w.start(note_when_woken(one->wake, woken));
        }
        w.run_for(std::chrono::milliseconds{1});
        const auto six = waiting::only(waited_for::digest, {.epoch = 1, .counter = 6});
        bool is_end = false;
        SUBCASE("of news") {}
        SUBCASE("of the end") {
            is_end = true;
        }
        {
            const net::memory_ends lack;
            if (is_end) {
                w.waits.end_all(true);
            } else {
                w.waits.wake_behind(six);
            }
        }
        w.run_until([&] { return woken.size() == 2; });
        CHECK(woken == std::vector{&first.wake, &second.wake});
        CHECK(first.place->has_ended() == is_end);
    }

    TEST_CASE("whoever wakes may be any thread, while others come and go") {
        waiting w;
        std::jthread waker{[&w](const std::stop_token& stop) {
            for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
                w.waits.wake_behind(waiting::only(waited_for::digest, {.epoch = 1, .counter = i}));
                if (i % 100 == 0) {
                    w.waits.end_all(false);
                }
            }
        }};
        for (int i = 0; i < 500; ++i) {
            w.enter("a", std::to_string(i % 7));
            if (i % 3 == 0) {
                w.all.clear();
            }
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_news_waits
