// A sibling followed by news.

#include "filter/news_wire.hpp"
#include "filter/place_sum.hpp"
#include "proxy/peer/digest_follower.hpp"
#include "proxy/peer/publication.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::peer::test::of_news_follower {
namespace {

using namespace std::chrono_literals;
using filter::test::digest_of_keys;
using filter::test::nth_key;

constexpr steady_time start{1h};
const auto size = filter::digest_size(2000, 0.01);

filter::key_hash by_name(std::uint64_t name) {
    return nth_key(1, name);
}

follow_plan plan() {
    follow_plan made;
    made.seed = filter::test::test_seed();
    made.news = 200ms;
    made.key_of = by_name;
    return made;
}

filter::digest state(std::uint64_t keys, std::uint64_t counter) {
    return digest_of_keys(size, 0, keys, counter);
}

bool same_bits(const filter::digest& one, const filter::digest& other) {
    return std::ranges::equal(one.words(), other.words());
}

std::vector<std::byte> whole(std::uint64_t keys, std::uint64_t counter) {
    return filter::encode(state(keys, counter));
}

std::vector<std::byte> news(std::uint64_t from,
                            std::uint64_t base,
                            std::uint64_t to,
                            std::uint64_t counter) {
    const auto before = state(from, base), after = state(to, counter);
    return *filter::encode_news({.shape = after.shape(),
                                 .stamp = after.stamp(),
                                 .sum = filter::place_sum(after.words()),
                                 .base_counter = base,
                                 .base_sum = filter::place_sum(before.words())},
                                {.places = filter::flipped_places(before, after), .names = {}},
                                after.words(),
                                by_name);
}

follow_answer told(std::span<const std::byte> body) {
    return {.status = 200, .etag = "\"tag\"", .node = "b", .tells_news = true, .body = body};
}

follow_answer nothing_new(bool tells = true) {
    return {.status = 304, .etag = {}, .node = "b", .tells_news = tells, .body = {}};
}

digest_follower holding() {
    digest_follower made{plan(), 1, start};
    (void)made.ask(start);
    made.answered(told(whole(1000, 5)), "a", start);
    (void)made.take_change();
    return made;
}

}  // namespace

TEST_SUITE("peer/news_follower") {
    TEST_CASE("it says how long it may be let wait, and asks again at once") {
        digest_follower f{plan(), 1, start};
        const auto first = f.ask(start);
        CHECK(first.query == "wait=25");
        CHECK(first.wait == 25s);
        f.answered(told(whole(1000, 5)), "a", start + 5s);
        CHECK(f.next() == start + 5s);
        CHECK(f.figures().by_news);
        const auto second = f.ask(start + 5s);
        CHECK(second.query == "since=" + to_text(f.held()->stamp().generation) + "&wait=25");
        CHECK(second.none_match == "\"tag\"");
        f.answered(nothing_new(), "a", start + 30s);
        CHECK(f.next() == start + 30s);
        CHECK(f.figures().state == follow_state::current);
    }

    TEST_CASE(
        "a short piece of news is light where nobody reads what is held, and nothing else is") {
        const auto piece = [](std::uint64_t i) { return news(1000 + i, 5 + i, 1001 + i, 6 + i); };
        const auto read = [](const digest_follower& f) {
            return f.held_replica()->read(
                [](const filter::digest& now) { return now.stamp().generation.counter; });
        };
        digest_follower empty{plan(), 1, start};
        CHECK_FALSE(empty.begins_light(304, {}));
        auto f = holding();
        CHECK_FALSE(f.begins_light(200, piece(0)));  // all bits are summed up, once
        f.answered(told(piece(0)), "a", start + 1s);
        CHECK_FALSE(f.begins_light(200, piece(1)));  // nobody was told of the last
        (void)f.take_change();
        CHECK(f.begins_light(304, {}));
        CHECK_FALSE(f.begins_light(403, {}));
        CHECK_FALSE(f.begins_light(200, {}));
        CHECK_FALSE(f.begins_light(200, whole(1001, 6)));
        CHECK_FALSE(f.begins_light(200, news(1001, 6, 2000, 7)));
        f.held_replica()->read([&](const filter::digest&) {
            std::thread other{[&] { CHECK_FALSE(f.begins_light(200, piece(1))); }};
            other.join();
        });
        CHECK(f.begins_light(200, piece(1)));
        f.answered(told(piece(1)), "a", start + 2s);
        CHECK(read(f) == 7);  // which waits for nobody any more
        (void)f.take_change();
        CHECK(f.begins_light(200, piece(7)));
        f.answered(told(piece(7)), "a", start + 3s);  // fits nothing that is held
        CHECK(f.figures().trouble == follow_trouble::wrong_base);
        CHECK(read(f) == 7);
    }

    TEST_CASE("news turns bits of what is held, in place") {
        auto f = holding();
        const auto* const before = f.held().get();
        (void)f.ask(start + 1s);
        f.answered(told(news(1000, 5, 1010, 6)), "a", start + 2s);
        CHECK(f.held().get() == before);
        CHECK(f.held()->may_contain(nth_key(1, 1009)));
        CHECK(f.held()->stamp().generation.counter == 6);
        const auto first = f.take_change();
        CHECK(first.what == digest_follower::change::kind::flipped);
        CHECK(first.places == filter::flipped_places(state(1000, 1), state(1010, 1)));
        CHECK(f.figures().news == 1);
        // Two that nobody took are one.
        f.answered(told(news(1010, 6, 1020, 7)), "a", start + 3s);
        f.answered(told(news(1020, 7, 1000, 9)), "a", start + 4s);
        const auto both = f.take_change();
        CHECK(both.what == digest_follower::change::kind::flipped);
        const auto from = state(1010, 1);
        std::vector<std::uint64_t> words(from.words().begin(), from.words().end());
        for (const auto place : both.places) {
            words[place / 64] ^= std::uint64_t{1} << (place % 64);
        }
        const auto after = state(1000, 1);
        CHECK(std::equal(words.begin(), words.end(), after.words().begin()));
    }

    TEST_CASE("news from something else, or damaged, asks for the whole at once, and once") {
        auto damaged = news(1000, 5, 1010, 6);
        damaged.back() ^= std::byte{1};
        for (const auto& body : {news(990, 5, 1010, 6), news(1000, 4, 1010, 6), damaged}) {
            auto f = holding();
            (void)f.ask(start + 10s);
            f.answered(told(body), "a", start + 10s);
            CHECK(f.figures().trouble == follow_trouble::wrong_base);
            CHECK(f.next() == start + 10s);
            CHECK(f.ask(start + 10s).query == "wait=25");
            REQUIRE(f.held() != nullptr);
            CHECK(f.held()->checksum() == state(1000, 1).checksum());
            f.answered(told(body), "a", start + 10s);
            CHECK(f.next() > start + 10s + 800ms);
            f.answered(told(whole(1010, 6)), "a", start + 20s);
            CHECK(f.figures().state == follow_state::current);
        }
        digest_follower f{plan(), 1, start};
        f.answered(told(news(1000, 5, 1010, 6)), "a", start);
        CHECK(f.held() == nullptr);
    }

    TEST_CASE("one whose wholes are good and whose news never fits is asked less and less") {
        auto f = holding();
        unsigned asked = 0;
        const auto end = start + 60s;
        for (auto now = f.next(); now < end; now = f.next()) {
            ++asked;
            const bool wants_news = f.ask(now).query.starts_with("since=");
            f.answered(told(wants_news ? news(990, 5, 1010, 6) : whole(1000, 5)), "a", now);
        }
        CHECK(f.figures().wholes > 2);
        CHECK(asked < 30);
        // News that fits ends that.
        while (!f.ask(f.next()).query.starts_with("since=")) {
            f.answered(told(whole(1000, 5)), "a", f.next());
        }
        const auto then = f.next();
        f.answered(told(news(1000, 5, 1010, 6)), "a", then);
        (void)f.ask(then + 1s);
        f.answered(told(news(990, 5, 1010, 7)), "a", then + 1s);
        CHECK(f.figures().trouble == follow_trouble::wrong_base);
        CHECK(f.next() == then + 1s);
    }

    TEST_CASE("one whose news fits and does not by turns is asked for a whole once a second") {
        auto f = holding();
        unsigned asked = 0;
        const auto end = start + 60s;
        for (auto now = f.next(); now < end; now = f.next()) {
            const bool wants_news = f.ask(now).query.starts_with("since=");
            const bool fits = f.held()->stamp().generation.counter == 5;
            f.answered(told(!wants_news ? whole(1000, 5)
                            : fits      ? news(1000, 5, 1010, 6)
                                        : news(1000, 5, 1010, 7)),
                       "a",
                       now);
            ++asked;
        }
        CHECK(f.figures().wholes > 10);
        CHECK(asked < 300);
    }

    TEST_CASE("one that does not know of it is asked as before, and nobody is asked without end") {
        auto f = holding();
        (void)f.ask(start + 1s);
        f.answered(nothing_new(false), "a", start + 1s);
        CHECK(f.next() > start + 9s);
        CHECK_FALSE(f.figures().by_news);
        (void)f.ask(start + 20s);
        f.answered(nothing_new(), "a", start + 20s);
        CHECK(f.next() == start + 21s);
        (void)f.ask(start + 30s);
        f.answered(told(news(1000, 5, 1010, 6)), "a", start + 30s);
        CHECK(f.next() == start + 30s + 6ms);
        (void)f.ask(start + 31s);
        f.answered(told(whole(1020, 7)), "a", start + 31s);
        CHECK(f.next() == start + 31s + 6ms);
        // What came along was worth the question.
        (void)f.ask(start + 32s);
        auto along = nothing_new();
        along.had_more = true;
        f.answered(along, "a", start + 32s);
        CHECK(f.next() == start + 32s + 6ms);
    }

    TEST_CASE("a delta from where news led is taken, and news goes on from it") {
        auto f = holding();
        f.answered(told(news(1000, 5, 1010, 6)), "a", start + 1s);
        const auto delta = filter::encode_delta(state(1010, 6), state(1030, 9));
        f.answered(told(*delta), "a", start + 2s);
        CHECK(f.figures().deltas == 1);
        f.answered(told(news(1030, 9, 1031, 10)), "a", start + 3s);
        CHECK(f.figures().news == 2);
        CHECK(same_bits(*f.held(), state(1031, 1)));
    }

    TEST_CASE("whatever is lost or comes late, what is held is as it was told") {
        std::mt19937_64 random{3};
        auto f = holding();
        std::uint64_t counter = 5, keys = 1000, held_keys = 1000;
        auto now = start;
        for (int i = 0; i < 400; ++i) {
            now += 1s;
            f.look(now);
            const auto from = keys, base = counter;
            keys = 900 + random() % 300;
            ++counter;
            switch (random() % 5) {
            case 0: f.failed(follow_trouble::unreachable, "", now); break;
            case 1: f.answered(told(whole(keys, counter)), "a", now); break;
            case 2: f.answered(told(std::vector<std::byte>(random() % 400)), "a", now); break;
            default: f.answered(told(news(from, base, keys, counter)), "a", now); break;
            }
            if (f.figures().trouble == follow_trouble::none) {
                held_keys = keys;
            }
            REQUIRE(same_bits(*f.held(), state(held_keys, 1)));
        }
        CHECK(f.figures().news > 30);
    }
}

}  // namespace reprise::proxy::peer::test::of_news_follower
