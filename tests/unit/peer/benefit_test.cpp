#include "proxy/peer/benefit.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace reprise::proxy::peer::test::of_benefit {
namespace {

using namespace std::chrono_literals;
constexpr steady_time start{1h};

unsigned asked_of(benefit& of, unsigned chances, steady_time now) {
    unsigned asked = 0;
    for (unsigned i = 0; i < chances; ++i) {
        asked += of.may_ask(now) ? 1 : 0;
    }
    return asked;
}

}  // namespace

TEST_SUITE("peer/benefit") {
    TEST_CASE("a new sibling is asked, and costs little until something is known") {
        benefit b;
        CHECK(asked_of(b, 100, start) == 100);
        CHECK(b.cost(start) <= 1);
        b.ended(asking_end::true_hit, 5ms, {80ms}, 1000, start);
        CHECK(b.cost(start) == doctest::Approx(5000));
    }

    TEST_CASE("it may be silent for some of its round trips, and never for more than half of the "
              "budget") {
        benefit b;
        CHECK(b.patience(100ms) == 50ms);
        b.ended(asking_end::false_hit, 3ms, {80ms}, 70, start);
        CHECK(b.patience(100ms) == 50ms);
        b.ended(asking_end::true_hit, 1ms, {80ms}, 1000, start);
        CHECK(b.patience(100ms) == 10ms);
        CHECK(b.patience(10ms) == 5ms);
        b.forget();
        b.ended(asking_end::true_hit, 10ms, {80ms}, 1000, start);
        CHECK(b.patience(100ms) == 40ms);
        CHECK(b.patience(60ms) == 30ms);
        b.forget();
        CHECK(b.patience(100ms) == 50ms);
    }

    TEST_CASE(
        "true hits save what the origin would have taken longer, others lose what they took") {
        benefit b;
        b.ended(asking_end::true_hit, 5ms, {80ms}, 1000, start);
        b.ended(asking_end::false_hit, 3ms, {80ms}, 70, start);
        b.ended(asking_end::true_hit, 100ms, {80ms}, 500, start);
        const auto f = b.figures();
        CHECK(f.saved_ms == doctest::Approx(75));
        CHECK(f.lost_ms == doctest::Approx(3 + 20));
        CHECK(f.bytes == 1500);
        CHECK(f.lost_bytes == 70);
        CHECK(f.asked() == 3);
        CHECK(f.ended[static_cast<std::size_t>(asking_end::false_hit)] == 1);
    }

    TEST_CASE("one that answers 504 always is asked less and less, but never not at all") {
        benefit b;
        auto now = start;
        unsigned asked = 0;
        for (unsigned i = 0; i < 10'000; ++i) {
            now += 1ms;
            if (b.may_ask(now)) {
                ++asked;
                b.ended(asking_end::false_hit, 2ms, {50ms}, 0, now);
            }
        }
        CHECK(asked < 200);
        CHECK(asked > 20);
        CHECK(b.figures().one_in == 256);
        CHECK(b.figures().held_back == 10'000 - asked);
        // Nobody comes for a while: the next one asks.
        (void)b.may_ask(now);
        CHECK(asked_of(b, 1, now + 11s) == 1);
    }

    TEST_CASE("one that was silent for a moment is as it was at its first answer") {
        for (const auto how : {asking_end::timed_out, asking_end::failed}) {
            benefit b;
            for (unsigned i = 0; i < 100; ++i) {
                b.ended(asking_end::true_hit, 2ms, {50ms}, 100, start);
            }
            for (unsigned i = 0; i < 50; ++i) {
                b.ended(how, 100ms, {50ms}, 0, start);
            }
            CHECK(b.figures().one_in == 256);
            b.ended(asking_end::true_hit, 2ms, {50ms}, 100, start);
            CHECK(b.figures().one_in == 1);
            CHECK(b.figures().worth_ms >= 0);
        }
    }

    TEST_CASE("what it was not worth before it fell silent it is not worth behind that") {
        benefit b;
        for (unsigned i = 0; i < 13; ++i) {
            b.ended(asking_end::false_hit, 2ms, {50ms}, 0, start);
        }
        const auto before = b.figures().one_in;
        CHECK(before > 16);
        for (unsigned i = 0; i < 50; ++i) {
            b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
        }
        CHECK(b.figures().one_in == 256);
        b.ended(asking_end::false_hit, 2ms, {50ms}, 0, start);
        CHECK(b.figures().one_in >= before);
        CHECK(b.figures().one_in <= 2 * before);
    }

    TEST_CASE("one that is silent is tried after a second, two, four, up to ten, and not sooner") {
        benefit b;
        for (unsigned i = 0; i < 50; ++i) {
            b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
        }
        (void)b.may_ask(start);  // the one in 256
        auto now = start;
        for (const auto pause : {1000ms, 2000ms, 4000ms, 8000ms, 10'000ms, 10'000ms}) {
            CAPTURE(pause.count());
            CHECK(asked_of(b, 30, now + pause - 1ms) == 0);
            now += pause;
            CHECK(asked_of(b, 5, now) == 1);
            b.ended(asking_end::timed_out, 100ms, {50ms}, 0, now);
        }
    }

    TEST_CASE("one that was silent is as it was when its digest is had again") {
        benefit b;
        for (unsigned i = 0; i < 100; ++i) {
            b.ended(asking_end::true_hit, 2ms, {50ms}, 100, start);
        }
        const auto before = b.cost(start);
        for (unsigned i = 0; i < 50; ++i) {
            b.ended(asking_end::failed, 100ms, {50ms}, 0, start);
        }
        (void)b.may_ask(start);  // the one in 256
        CHECK(asked_of(b, 30, start + 1ms) == 0);
        CHECK(b.cost(start) > 1e6 * before);
        b.came_back();
        CHECK(asked_of(b, 30, start + 2ms) == 30);
        CHECK(b.cost(start) < 1000 * before);
    }

    TEST_CASE("one that answers for its digest and for no object is taken back once, and not again "
              "and again") {
        benefit b;
        const auto fall_silent = [&b] {
            for (unsigned i = 0; i < 50; ++i) {
                b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
                b.heard();
            }
            (void)b.may_ask(start);  // perhaps the one in 256
        };
        fall_silent();
        CHECK(asked_of(b, 30, start + 1ms) == 0);
        // Once it has answered for an object, a moment's silence is one again.
        for (unsigned i = 0; i < 20; ++i) {
            b.ended(asking_end::true_hit, 2ms, {50ms}, 100, start);
        }
        const auto quick = b.cost(start);
        b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
        CHECK(b.cost(start) > 1000 * quick);
        b.heard();
        CHECK(b.cost(start) < 10 * quick);
    }

    TEST_CASE("one whose digest comes and goes is taken back by it once, and not again and again") {
        benefit b;
        const auto fall_silent = [&b] {
            for (unsigned i = 0; i < 50; ++i) {
                b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
                b.came_back();
            }
            (void)b.may_ask(start);  // perhaps the one in 256
        };
        fall_silent();
        CHECK(b.figures().one_in > 16);
        CHECK(asked_of(b, 30, start + 1ms) == 0);
        for (unsigned i = 0; i < 20; ++i) {
            b.ended(asking_end::true_hit, 2ms, {50ms}, 100, start);
        }
        const auto quick = b.cost(start);
        b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
        // Another word of it, before it was away, is another matter.
        b.heard();
        b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
        CHECK(b.cost(start) > 1000 * quick);
        b.came_back();
        CHECK(b.cost(start) < 10 * quick);
    }

    TEST_CASE("that it waits for an origin excuses it three times in a row, and what meets one "
              "wait together is once") {
        benefit b;
        auto now = start;
        const auto late = [&](steady_time begun) {
            const bool excused = b.is_excused(begun, now);
            if (!excused) {
                b.ended(asking_end::timed_out, 100ms, {50ms}, 0, now, said_so_far::an_answer);
            }
            return excused;
        };
        const auto excused_in_a_row = [&] {
            unsigned times = 0;
            while (times < 100) {
                const auto begun = now;
                now += 100ms;
                if (!late(begun)) {
                    break;
                }
                CHECK(late(begun));
                CHECK(late(begun));
                ++times;
            }
            return times;
        };
        CHECK(excused_in_a_row() == 3);
        CHECK(excused_in_a_row() == 0);
        CHECK(b.figures().ended[static_cast<std::size_t>(asking_end::timed_out)] == 2);
        b.ended(asking_end::failed, 1ms, {50ms}, 0, now);
        CHECK(excused_in_a_row() == 0);
        for (const auto how : {asking_end::true_hit, asking_end::false_hit}) {
            b.ended(how, 1ms, {50ms}, 0, now);
            CHECK(excused_in_a_row() == 3);
        }
        for (unsigned i = 0; i < 20; ++i) {
            now += 100ms;
            (void)late(now - 100ms);
        }
        CHECK(b.figures().one_in == 256);
        b.forget();
        CHECK(excused_in_a_row() == 3);
    }

    TEST_CASE("one that another was faster than is neither silent nor heard of") {
        benefit b;
        b.ended(asking_end::true_hit, 2ms, {50ms}, 100, start);
        const auto quick = b.cost(start);
        b.ended(asking_end::timed_out, 20ms, {50ms}, 0, start, said_so_far::unclear);
        CHECK(b.cost(start) < 10 * quick);
        b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
        b.ended(asking_end::timed_out, 20ms, {50ms}, 0, start, said_so_far::unclear);
        CHECK(b.cost(start) > 1000 * quick);
        b.ended(asking_end::timed_out, 100ms, {50ms}, 0, start, said_so_far::an_answer);
        CHECK(b.cost(start) < 10 * quick);
    }

    TEST_CASE("one that gives nothing is not asked more often because its digest is had again") {
        benefit b;
        for (unsigned i = 0; i < 50; ++i) {
            b.ended(asking_end::false_hit, 100ms, {50ms}, 0, start);
        }
        (void)b.may_ask(start);
        b.came_back();
        b.heard();
        CHECK(asked_of(b, 30, start + 2ms) == 0);
    }

    TEST_CASE("one that has just been silent comes behind all that answer, until it does") {
        benefit quick, poor;
        quick.ended(asking_end::true_hit, 1ms, {50ms}, 100, start);
        for (unsigned i = 0; i < 50; ++i) {
            poor.ended(asking_end::false_hit, 40ms, {50ms}, 0, start);
        }
        CHECK(quick.cost(start) < poor.cost(start));
        quick.ended(asking_end::timed_out, 100ms, {50ms}, 0, start);
        CHECK(quick.cost(start) > poor.cost(start));
        CHECK(quick.cost(start + 1s) < poor.cost(start + 1s));  // it is tried again
        quick.ended(asking_end::true_hit, 1ms, {50ms}, 100, start);
        CHECK(quick.cost(start) < poor.cost(start));
        // What came too late to be of use was no silence.
        quick.ended(asking_end::timed_out, 100ms, {50ms}, 0, start, said_so_far::an_answer);
        CHECK(quick.cost(start) < poor.cost(start));
    }

    TEST_CASE("one that gives again is asked again") {
        benefit b;
        for (unsigned i = 0; i < 20; ++i) {
            b.ended(asking_end::timed_out, 300ms, {50ms}, 0, start);
        }
        CHECK(b.figures().one_in == 256);
        for (unsigned i = 0; i < 8; ++i) {
            b.ended(asking_end::true_hit, 2ms, {50ms}, 100, start);
        }
        CHECK(b.figures().one_in == 1);
        b.ended(asking_end::false_hit, 2ms, {50ms}, 0, start);
        CHECK(b.figures().one_in <= 2);
    }

    TEST_CASE("one that never had anything comes after those that have, and after the untried") {
        benefit good;
        benefit bad;
        const benefit untried;
        for (unsigned i = 0; i < 20; ++i) {
            good.ended(asking_end::true_hit, 40ms, {50ms}, 100, start);
            bad.ended(asking_end::timed_out, 300ms, {50ms}, 0, start);
        }
        CHECK(bad.cost(start) > good.cost(start));
        CHECK(good.cost(start) > untried.cost(start));
    }

    TEST_CASE("false hits among many true ones cost nothing") {
        benefit b;
        for (unsigned i = 0; i < 1000; ++i) {
            b.ended(
                i % 5 == 0 ? asking_end::false_hit : asking_end::true_hit, 2ms, {40ms}, 100, start);
        }
        CHECK(b.figures().one_in == 1);
        CHECK(b.figures().true_hit_rate == doctest::Approx(0.8).epsilon(0.15));
        CHECK(b.figures().worth_ms > 20);
    }

    TEST_CASE("a sibling slower than the origin is not worth asking, though it has everything") {
        benefit b;
        for (unsigned i = 0; i < 20; ++i) {
            b.ended(asking_end::true_hit, 90ms, {10ms}, 100, start);
        }
        CHECK(b.figures().one_in > 1);
    }

    TEST_CASE("unless a hit is worth more than that beside its time") {
        benefit b;
        for (unsigned i = 0; i < 20; ++i) {
            b.ended(asking_end::true_hit, 90ms, {.time = 10ms, .beside = 81ms}, 100, start);
        }
        CHECK(b.figures().one_in == 1);
        CHECK(b.figures().worth_ms == doctest::Approx(1));
        for (unsigned i = 0; i < 20; ++i) {
            b.ended(asking_end::true_hit, 11ms, {.time = 10ms, .beside = 0ms}, 100, start);
        }
        CHECK(b.figures().one_in > 1);
    }

    TEST_CASE("false hits are expected of every look-up of what it lacks") {
        benefit b;
        for (unsigned i = 0; i < 1000; ++i) {
            b.offered(1);
            if (i < 110) {
                b.named();
            }
        }
        for (unsigned i = 0; i < 100; ++i) {
            b.ended(asking_end::true_hit, 2ms, {40ms}, 1, start);
        }
        for (unsigned i = 0; i < 10; ++i) {
            b.ended(asking_end::false_hit, 2ms, {40ms}, 1, start);
        }
        CHECK(b.figures().named == 110);
        CHECK(b.figures().expected_false(0.01) == doctest::Approx(9));
    }

    // A digest of rate r, of which half of the look-ups that it names are held back: half of what
    // it would have got wrong is met, and half is to be expected.
    TEST_CASE("what is never found out is not expected either") {
        for (const unsigned asked_one_in : {1u, 2u, 8u}) {
            CAPTURE(asked_one_in);
            benefit b;
            unsigned named = 0;
            for (unsigned i = 0; i < 10'000; ++i) {
                const bool holds = i % 10 == 0;
                const bool errs = !holds && i % 25 == 1;  // 400 of the 9000 that it lacks
                b.offered(1);
                if (holds || errs) {
                    b.named();
                }
                if ((holds || errs) && named++ % asked_one_in == 0) {
                    b.ended(holds ? asking_end::true_hit : asking_end::false_hit,
                            2ms,
                            {40ms},
                            1,
                            start);
                }
            }
            const auto figures = b.figures();
            const auto met = figures.ended[static_cast<std::size_t>(asking_end::false_hit)];
            CHECK(figures.expected_false(400.0 / 9000) ==
                  doctest::Approx(static_cast<double>(met)).epsilon(0.1));
        }
    }

    TEST_CASE("quantiles are bounds by powers of two") {
        benefit b;
        CHECK(b.figures().quantile_ms(0.5) == 0);
        for (unsigned i = 0; i < 90; ++i) {
            b.ended(asking_end::true_hit, 3ms, {40ms}, 1, start);
        }
        for (unsigned i = 0; i < 10; ++i) {
            b.ended(asking_end::true_hit, 100ms, {40ms}, 1, start);
        }
        CHECK(b.figures().quantile_ms(0.5) == 4);
        CHECK(b.figures().quantile_ms(0.99) == 128);
    }

    TEST_CASE("who takes over a slot begins anew") {
        benefit b;
        for (unsigned i = 0; i < 20; ++i) {
            b.ended(asking_end::failed, 300ms, {50ms}, 0, start);
        }
        b.forget();
        CHECK(b.figures().asked() == 0);
        CHECK(b.figures().one_in == 1);
        CHECK(b.cost(start) <= 1);
    }
}

}  // namespace reprise::proxy::peer::test::of_benefit
