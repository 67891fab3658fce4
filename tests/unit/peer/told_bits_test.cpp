#include "proxy/peer/told_bits.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
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
    void pass(std::chrono::milliseconds time) {
        at += time;
        told.listen(at);
        told.tell(false, at, now);
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
    told_bits told{filter::test::test_seed(), [this] { return ++drawn; }, {.every = 200ms}};
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
}

}  // namespace reprise::proxy::peer::test::of_told_bits
