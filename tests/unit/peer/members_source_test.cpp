#include "filter/digest_replica.hpp"
#include "filter/indices.hpp"
#include "proxy/peer/members_source.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace reprise::proxy::peer::test::of_members_source {
namespace {

using namespace std::chrono_literals;
using filter::test::digest_of_keys;
using filter::test::nth_key;

constexpr wall_time now{1'763'668'089'000ms};
constexpr steady_time start{1h};
constexpr filter::bloom_size size{.bits = 1 << 14, .probes = 2};

struct gateway {
    unsigned stirred = 0, told = 0;
    members_source source;

    explicit gateway(std::chrono::milliseconds every = 200ms)
        : source{filter::test::test_seed(),
                 30s,
                 [] { return 77; },
                 {.every = every,
                  .key_of = [](std::uint64_t) { return filter::key_hash{}; },
                  .stir = [this] { ++stirred; },
                  .told = [this] { ++told; }}} {}

    /// The whole, as whoever asks for it with a wish for news is given it.
    std::shared_ptr<const published> whole(steady_time at) {
        if (source.news() != nullptr) {
            source.news()->want_whole();
        }
        source.tick(at, now);
        return source.digests().now();
    }
};

std::vector<std::uint64_t> places_of(std::uint64_t key) {
    filter::indices places{nth_key(1, key), size.bits};
    return {places.next(), places.next()};
}

}  // namespace

TEST_SUITE("peer/members_source") {
    TEST_CASE("nothing is published before the first member's digest") {
        gateway g;
        g.source.tick(start, now);
        CHECK(g.source.digests().now() == nullptr);
        CHECK(g.source.figures().members == 0);
    }

    TEST_CASE("what any member has is told, and what it alone had goes with it") {
        gateway g;
        CHECK(g.source.put(0, digest_of_keys(size, 0, 200)));
        CHECK(g.source.put(1, digest_of_keys(size, 150, 300)));
        CHECK(g.stirred == 2);
        const auto first = g.whole(start);
        REQUIRE(first);
        CHECK(first->bits->may_contain(nth_key(1, 0)));
        CHECK(first->bits->may_contain(nth_key(1, 299)));
        CHECK(g.source.figures().members == 2);
        g.source.remove(1);
        const auto next = g.whole(start + 1s);
        REQUIRE(next != first);
        CHECK(next->bits->stamp().generation.epoch == first->bits->stamp().generation.epoch);
        CHECK(next->bits->may_contain(nth_key(1, 180)));
        std::uint64_t left = 0;
        for (std::uint64_t key = 200; key < 300; ++key) {
            left += next->bits->may_contain(nth_key(1, key)) ? 1 : 0;
        }
        CHECK(left < 10);
    }

    TEST_CASE("a reader follows it by news") {
        gateway g;
        CHECK(g.source.put(0, digest_of_keys(size, 0, 100)));
        CHECK(g.source.put(1, digest_of_keys(size, 50, 150)));
        const auto first = g.whole(start);
        REQUIRE(first);
        filter::digest_replica reader{
            filter::digest{first->bits->shape(),
                           {first->bits->words().begin(), first->bits->words().end()},
                           first->bits->stamp()}};
        auto held = first->bits->stamp().generation;
        // Key 1000 comes to one member, then to the other; then it leaves the first, then the other.
        const std::pair<unsigned, bool> steps[] = {{0, true}, {1, true}, {0, false}, {1, false}};
        auto at = start;
        for (const auto& [member, listed] : steps) {
            CHECK(g.source.flip(member, digest_of_keys(size, 0, 1), places_of(1000)));
            at += 1s;
            g.source.tick(at, now);
            const auto found = g.source.news()->look(held);
            g.source.tick(at + 100ms, now);  // makes what was just wished for
            const auto made = g.source.news()->look(held);
            if (made.what == news_shelf::state::ready) {
                REQUIRE(reader.apply(*made.wire, [](std::uint64_t) { return filter::key_hash{}; })
                            .has_value());
                held = made.newest;
            } else {
                CHECK(found.what == news_shelf::state::current);
            }
            CHECK(reader.now().may_contain(nth_key(1, 1000)) == (at < start + 4s));
        }
    }

    TEST_CASE("a digest of another rate is left out, and told of once it fits") {
        gateway g;
        CHECK(g.source.put(0, digest_of_keys(size, 0, 100)));
        const filter::bloom_size other{.bits = 1 << 14, .probes = 3};
        CHECK_FALSE(g.source.put(1, digest_of_keys(other, 200, 300)));
        CHECK_FALSE(g.source.flip(1, digest_of_keys(other, 200, 301), places_of(300)));
        CHECK(g.source.figures().left_out == 1);
        CHECK(g.source.put(1, digest_of_keys(size, 200, 300)));
        CHECK(g.source.figures().left_out == 0);
        CHECK(g.whole(start)->bits->may_contain(nth_key(1, 250)));
    }

    TEST_CASE("what kept a digest out is gone: it is a member from its next change on") {
        gateway g;
        const filter::bloom_size other{.bits = 1 << 14, .probes = 3};
        CHECK(g.source.put(0, digest_of_keys(size, 0, 100)));
        CHECK_FALSE(g.source.put(1, digest_of_keys(other, 200, 300)));
        CHECK_FALSE(g.source.put(2, digest_of_keys(other, 300, 400)));
        // The rate changes node by node; the last is the one of the old rate.
        CHECK(g.source.put(0, digest_of_keys(other, 0, 100)));
        CHECK(g.source.flip(1, digest_of_keys(other, 200, 300), {}));
        CHECK(g.source.flip(2, digest_of_keys(other, 300, 400), {}));
        CHECK(g.source.figures().left_out == 0);
        CHECK(g.source.figures().members == 3);
        CHECK(g.whole(start)->bits->may_contain(nth_key(1, 350)));
    }

    TEST_CASE(
        "a digest far smaller than the others' is left out and shown so, until it has grown") {
        gateway g;
        const filter::bloom_size large{.bits = 1 << 20, .probes = 2};
        const filter::bloom_size tiny{.bits = 1 << 12, .probes = 2};
        CHECK(g.source.put(0, digest_of_keys(large, 0, 100)));
        CHECK(g.source.put(1, digest_of_keys(large, 50, 150)));
        CHECK_FALSE(g.source.put(2, digest_of_keys(tiny, 500, 520)));
        CHECK(g.source.figures().members == 2);
        CHECK(g.source.figures().left_out == 1);
        const auto first = g.whole(start);
        REQUIRE(first);
        CHECK(first->bits->shape().bits == large.bits);
        CHECK(first->bits->may_contain(nth_key(1, 149)));
        CHECK_FALSE(first->bits->may_contain(nth_key(1, 510)));
        const auto newest = g.source.news()->newest();
        const std::vector<std::uint64_t> turned{1, 2, 3};
        CHECK_FALSE(g.source.flip(2, digest_of_keys(tiny, 500, 520), turned));
        g.source.tick(start + 1s, now);
        CHECK(g.source.news()->newest() == newest);
        CHECK(g.source.put(2, digest_of_keys(size, 500, 520)));
        CHECK(g.source.figures().members == 3);
        CHECK(g.source.figures().left_out == 0);
        CHECK(g.whole(start + 2s)->bits->may_contain(nth_key(1, 510)));
    }

    TEST_CASE("a far larger digest keeps no other out, nor do far smaller ones keep it out") {
        gateway g;
        CHECK(g.source.put(0, digest_of_keys({.bits = 1 << 21, .probes = 2}, 0, 100)));
        CHECK(g.source.put(1, digest_of_keys(size, 200, 300)));
        CHECK(g.source.put(2, digest_of_keys(size, 300, 400)));
        CHECK(g.source.figures().members == 3);
        CHECK(g.source.figures().left_out == 0);
        const auto told = g.whole(start);
        REQUIRE(told);
        CHECK(told->bits->may_contain(nth_key(1, 50)));
        CHECK(told->bits->may_contain(nth_key(1, 250)));
        CHECK(told->bits->may_contain(nth_key(1, 350)));
        g.source.remove(0);
        const auto smaller = g.whole(start + 2s);
        REQUIRE(smaller);
        CHECK(smaller->bits->shape().bits == size.bits);
        CHECK(smaller->bits->may_contain(nth_key(1, 350)));
    }

    TEST_CASE("whatever one sibling turns, the whole is made for others at its pace") {
        gateway g;
        const filter::bloom_size small{.bits = 1 << 16, .probes = 2};
        CHECK(g.source.put(0, digest_of_keys({.bits = 1 << 22, .probes = 2}, 0, 100)));
        CHECK(g.source.put(1, digest_of_keys(small, 200, 300)));
        auto last = g.whole(start);
        REQUIRE(last);
        // Few places of it, and more of the union's than its journal holds.
        std::vector<std::uint64_t> places(2048);
        std::iota(places.begin(), places.end(), std::uint64_t{0});
        unsigned wholes = 0;
        for (unsigned step = 1; step <= 15; ++step) {
            const auto newest = g.source.news()->newest();
            CHECK(g.source.flip(1, digest_of_keys(small, 200, 300), places));
            const auto next = g.whole(start + step * 200ms);
            CHECK(g.source.news()->newest() != newest);
            CHECK_FALSE(g.source.news()->reaches(newest));
            wholes += next != last ? 1 : 0;
            last = next;
        }
        CHECK(wholes == 3);
    }

    TEST_CASE("how many keys it stands for is told with it, as they are now") {
        gateway g;
        CHECK(g.source.put(0, digest_of_keys(size, 0, 200)));
        const auto first = g.whole(start);
        REQUIRE(first);
        CHECK(first->bits->stamp().keys > 180);
        CHECK(first->bits->stamp().keys < 220);
        CHECK(g.source.put(1, digest_of_keys(size, 1000, 1800)));
        g.source.tick(start + 31s, now);
        const auto next = g.whole(start + 32s);
        REQUIRE(next != first);
        CHECK(next->bits->stamp().keys > 900);
        CHECK(next->bits->stamp().keys < 1100);
    }

    TEST_CASE("a larger member makes it larger: another epoch, whole") {
        gateway g;
        CHECK(g.source.put(0, digest_of_keys(size, 0, 100)));
        const auto small = g.whole(start);
        CHECK(g.source.put(1, digest_of_keys({.bits = 1 << 15, .probes = 2}, 200, 300)));
        const auto large = g.whole(start + 1s);
        REQUIRE(large != small);
        CHECK(large->bits->shape().bits == 1 << 15);
        CHECK(large->bits->stamp().generation.counter == 1);
        CHECK(large->bits->may_contain(nth_key(1, 50)));
        CHECK(large->bits->may_contain(nth_key(1, 250)));
    }

    TEST_CASE("without news it is published at its pace, when something changed") {
        gateway g{0ms};
        CHECK(g.source.news() == nullptr);
        CHECK(g.source.put(0, digest_of_keys(size, 0, 100)));
        g.source.tick(start, now);
        const auto first = g.source.digests().now();
        REQUIRE(first);
        g.source.tick(start + 31s, now);
        CHECK(g.source.digests().now() == first);
        CHECK(g.source.flip(0, digest_of_keys(size, 0, 1), places_of(1000)));
        g.source.tick(start + 40s, now);
        CHECK(g.source.digests().now() == first);
        g.source.tick(start + 62s, now);
        CHECK(g.source.digests().now()->bits->may_contain(nth_key(1, 1000)));
    }
}

}  // namespace reprise::proxy::peer::test::of_members_source
