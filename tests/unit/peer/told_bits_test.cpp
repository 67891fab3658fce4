#include "proxy/peer/told_bits.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace reprise::proxy::peer::test::of_told_bits {
namespace {

using namespace std::chrono_literals;

constexpr wall_time now{1'763'668'089'000ms};
constexpr steady_time start{1h};

/// So many bits, told from the beginning.
struct world {
    explicit world(std::uint64_t bits) {
        begin(bits);
        pass(0ms);
    }
    /// All off, in place of those before.
    void begin(std::uint64_t bits) {
        told.begin_anew({.layout = filter::digest_layout::standard, .bits = bits, .probes = 2},
                        std::vector<std::uint64_t>(bits / 64));
    }
    void pass(std::chrono::milliseconds time, bool publishes = false) {
        at += time;
        told.listen(at);
        told.tell(publishes, at, now);
    }
    /// So many of them with no memory for pieces of two kilobytes and more; how often it was asked for.
    unsigned pass_in_lack(unsigned times, std::chrono::milliseconds each) {
        const net::memory_ends lack{0, net::memory_ends::for_good, 2 << 10};
        unsigned lacked = 0;
        for (unsigned i = 0; i < times; ++i) {
            try {
                pass(each);
            } catch (const std::bad_alloc&) {
                ++lacked;
            }
        }
        return lacked;
    }
    std::uint64_t draw() {
        if (has_no_random_numbers) {
            throw std::runtime_error{"no random numbers"};
        }
        return ++drawn;
    }
    /// Every bit turns, and one so often that no journal of few bits holds the step.
    void flood() {
        is_on = !is_on;
        for (std::uint64_t place = 0; place < told.shape().bits; ++place) {
            told.turn(place, is_on);
        }
        for (int i = 0; i < 8; ++i) {
            told.turn(0, i % 2 == 0);
        }
    }
    [[nodiscard]] news_shelf& shelf() { return *told.news(); }
    [[nodiscard]] std::shared_ptr<const published> whole() const { return told.digests().now(); }

    std::uint64_t drawn = 0;
    steady_time at = start;
    bool is_on = false;
    bool has_no_random_numbers = false;
    told_bits told{filter::test::test_seed(), [this] { return draw(); }, {.every = 200ms}};
};

}  // namespace

TEST_SUITE("peer/told_bits") {
    TEST_CASE("a whole that is wished for at every step is made at its pace, and news goes on") {
        world w{1 << 14};
        auto last = w.whole();
        REQUIRE(last);
        unsigned wholes = 0;
        for (int step = 0; step < 50; ++step) {
            const auto before = w.shelf().newest();
            w.flood();
            w.shelf().want_whole();
            w.pass(200ms);
            CHECK(w.shelf().newest().counter == before.counter + 1);
            // Whoever followed is to have the whole.
            CHECK_FALSE(w.shelf().reaches(before));
            wholes += w.whole() != last ? 1 : 0;
            last = w.whole();
        }
        CHECK(wholes == 10);
    }

    TEST_CASE("many bits wait longer for their next whole") {
        world w{std::uint64_t{1} << 25};
        auto last = w.whole();
        REQUIRE(last);
        unsigned wholes = 0;
        for (std::uint64_t step = 1; step <= 12; ++step) {
            w.told.turn(step, true);
            w.shelf().want_whole();
            w.pass(500ms);
            wholes += w.whole() != last ? 1 : 0;
            last = w.whole();
        }
        CHECK(wholes == 2);  // a second, and one more for each 2^24 bits
    }

    TEST_CASE("a wish that came too soon is not forgotten") {
        world w{1 << 14};
        const auto first = w.whole();
        w.told.turn(7, true);
        w.shelf().want_whole();
        w.pass(999ms);
        CHECK(w.whole() == first);
        w.pass(1ms);
        REQUIRE(w.whole() != first);
        CHECK(w.whole()->bits->bits_on() == 1);
        CHECK(w.whole()->bits->stamp().generation == w.shelf().newest());
    }

    TEST_CASE(
        "bits of another size wait as well, and what was told of the others is there till then") {
        world w{1 << 14};
        const auto small = w.whole();
        const auto newest = w.shelf().newest();
        w.begin(1 << 15);
        CHECK(w.told.turn(7, true));
        CHECK(w.shelf().look(newest).what == news_shelf::state::current);
        w.pass(400ms);
        CHECK(w.whole() == small);
        CHECK(w.shelf().newest() == newest);
        CHECK(w.told.due_at() == start + 1s);
        w.pass(600ms);
        const auto large = w.whole();
        REQUIRE(large != small);
        CHECK(large->bits->shape().bits == 1 << 15);
        CHECK(large->bits->bits_on() == 1);
        CHECK(large->bits->stamp().generation == w.shelf().newest());
        CHECK(w.shelf().newest().epoch != newest.epoch);
        CHECK(w.told.turn(9, true));
        w.pass(200ms);
        CHECK(w.shelf().newest().counter == 2);
    }

    TEST_CASE("where no epoch can be drawn for bits of another size, those of before go on") {
        world w{1 << 14};
        const auto before = w.shelf().newest();
        w.has_no_random_numbers = true;
        CHECK_THROWS_AS(w.begin(1 << 15), std::runtime_error);
        CHECK(w.told.shape().bits == 1 << 14);
        CHECK(w.told.words().size() == (1 << 14) / 64);
        CHECK(w.told.turn(7, true));
        w.pass(200ms);
        CHECK(w.shelf().newest() == filter::digest_generation{before.epoch, before.counter + 1});
        w.has_no_random_numbers = false;
        w.begin(1 << 15);
        w.pass(1s);
        CHECK(w.shelf().newest().epoch != before.epoch);
    }

    TEST_CASE("a new size that there is no memory to publish is not told, and tried again at a "
              "whole's pace") {
        world w{1 << 14};
        const auto whole = w.whole();
        const auto newest = w.shelf().newest();
        w.begin(1 << 15);
        CHECK(w.pass_in_lack(20, 100ms) == 2);  // one second behind the first whole, and two
        CHECK(w.whole() == whole);
        CHECK(w.shelf().newest() == newest);  // nobody is sent from it to a whole that is not there
        CHECK(w.told.due_at() == w.at + 1s);
        w.pass(1s);
        REQUIRE(w.whole() != whole);
        CHECK(w.whole()->bits->stamp().generation == w.shelf().newest());
        CHECK(w.shelf().newest().epoch != newest.epoch);
    }

    TEST_CASE(
        "where a whole that is wished for can't be had news goes on, and it comes when it can") {
        world w{1 << 14};
        const auto whole = w.whole();
        const auto newest = w.shelf().newest();
        w.told.turn(7, true);
        w.shelf().want_whole();
        CHECK(w.pass_in_lack(10, 200ms) == 2);
        CHECK(w.whole() == whole);
        CHECK(w.shelf().newest().counter == newest.counter + 1);
        w.pass(1s);
        CHECK(w.whole()->bits->bits_on() == 1);
    }

    TEST_CASE("and so does one that is due for those who follow by none") {
        world w{1 << 14};
        const auto whole = w.whole();
        w.told.turn(7, true);
        w.shelf().note_plain();
        bool lacked = false;
        {
            const net::memory_ends lack{0, net::memory_ends::for_good, 2 << 10};
            try {
                w.pass(30s, true);
            } catch (const std::bad_alloc&) {
                lacked = true;
            }
        }
        CHECK(lacked);
        w.pass(900ms);
        CHECK(w.whole() == whole);
        w.pass(100ms);
        CHECK(w.whole() != whole);
    }
}

}  // namespace reprise::proxy::peer::test::of_told_bits
