#include "proxy/cache/admission/resizable_admission.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::test::of_resizable_admission {

using filter::test::nth_key;

namespace {

constexpr std::chrono::sys_seconds now{std::chrono::hours{500'000}};

std::unique_ptr<filter::admission_filter> filter_for(std::uint64_t objects, unsigned layers = 1) {
    return std::make_unique<filter::admission_filter>(
        filter::admission_settings{.objects = objects, .layers = layers}, now);
}

}  // namespace

TEST_SUITE("cache/admission/resizable_admission") {
    TEST_CASE("what was seen before a change is seen after it") {
        resizable_admission seen{filter_for(1'000)};
        for (std::uint64_t n = 0; n < 800; ++n) {
            CHECK(seen.note(nth_key(1, n), now) == 0);
        }
        seen.change_to({.objects = 4'000}, now);
        CHECK(seen.changing());
        for (std::uint64_t n = 0; n < 800; ++n) {
            CHECK(seen.peek(nth_key(1, n)) == 1);
        }
    }

    TEST_CASE("a sight before a change is known until the new filter has filled a generation") {
        resizable_admission seen{filter_for(1'000)};
        const auto rare = nth_key(1, 1);
        (void)seen.note(rare, now);
        seen.change_to({.objects = 2'000}, now);
        for (std::uint64_t n = 0; n < 1'990; ++n) {
            (void)seen.note(nth_key(2, n), now);
            seen.tidy();
            REQUIRE(seen.peek(rare) == 1);
        }
        REQUIRE(seen.changing());
        for (std::uint64_t n = 0; n < 400 && seen.changing(); ++n) {
            (void)seen.note(nth_key(3, n), now);
            seen.tidy();
        }
        CHECK_FALSE(seen.changing());
        CHECK(seen.peek(rare) == 0);
    }

    TEST_CASE("how often the generations turned over never falls, and a change is one turn") {
        resizable_admission seen{filter_for(100)};
        std::uint64_t key = 0, turns = 0;
        for (unsigned change = 0; change < 4; ++change) {
            const auto before = seen.turns();
            for (unsigned i = 0; i < 1'000; ++i) {
                (void)seen.note(nth_key(1, key++), now);
                CHECK(seen.turns() >= turns);
                turns = seen.turns();
            }
            CHECK(turns > before + 2);
            seen.tidy();
            REQUIRE_FALSE(seen.changing());
            CHECK(seen.turns() == turns);
            seen.change_to({.objects = 200 + change}, now);
            CHECK(seen.turns() == turns + 1);
            turns = seen.turns();
        }
    }

    TEST_CASE("how often a key was seen is carried over whole") {
        resizable_admission seen{filter_for(1'000, 4)};
        const auto key = nth_key(1, 1);
        for (unsigned n = 0; n < 3; ++n) {
            CHECK(seen.note(key, now) == n);
        }
        seen.change_to({.objects = 2'000, .layers = 4}, now);
        CHECK(seen.peek(key) == 3);
        CHECK(seen.note(key, now) == 3);
        CHECK(seen.note(key, now) == 4);
        // The new filter knows it by itself now.
        CHECK(seen.current()->peek(key) == 4);
    }

    TEST_CASE("a change is a new generation: a hit tells the new filter too") {
        resizable_admission seen{filter_for(1'000)};
        const auto before = seen.generation();
        seen.change_to({.objects = 2'000}, now);
        CHECK(seen.generation() > before);
        seen.refresh(nth_key(1, 1), now);
        CHECK(seen.current()->peek(nth_key(1, 1)) == 1);
    }

    TEST_CASE("siblings are told what was seen before a change of age, as of a generation") {
        constexpr std::uint64_t objects = 1'000;
        resizable_admission seen{filter_for(objects)};
        for (std::uint64_t n = 0; n < 1'100; ++n) {
            (void)seen.note(nth_key(1, n), now);
        }
        REQUIRE(seen.current()->generations() == 1);
        const auto before = seen.recent_digest({});
        seen.change_to({.objects = objects, .age = std::chrono::hours{1}}, now);
        for (std::uint64_t n = 0; n < 200; ++n) {
            (void)seen.note(nth_key(2, n), now);
        }
        const auto after = seen.recent_digest({});
        CHECK(after.shape() == before.shape());
        CHECK(after.stamp().keys == before.stamp().keys + 200);
        std::uint64_t told = 0;
        for (std::uint64_t n = 0; n < 1'100; ++n) {
            told += after.may_contain(nth_key(1, n)) ? 1 : 0;
        }
        for (std::uint64_t n = 0; n < 200; ++n) {
            told += after.may_contain(nth_key(2, n)) ? 1 : 0;
        }
        CHECK(told == 1'300);
        // As of a filter whose generations change: once the new one says enough, it speaks alone.
        for (std::uint64_t n = 200; n < objects / 4; ++n) {
            (void)seen.note(nth_key(2, n), now);
        }
        REQUIRE(seen.changing());
        CHECK(seen.recent_digest({}).stamp().keys == objects / 4);
    }

    TEST_CASE("a filter of another size tells siblings what came since, in a digest of its own") {
        resizable_admission seen{filter_for(1'000)};
        (void)seen.note(nth_key(1, 1), now);
        const auto before = seen.recent_digest({});
        seen.change_to({.objects = 4'000}, now);
        (void)seen.note(nth_key(1, 2), now);
        const auto after = seen.recent_digest({});
        CHECK(after.shape() != before.shape());
        CHECK(after.may_contain(nth_key(1, 2)));
        CHECK_FALSE(after.may_contain(nth_key(1, 1)));
        CHECK(seen.peek(nth_key(1, 1)) == 1);
    }

    TEST_CASE("during a change the figures are of both filters") {
        resizable_admission seen{filter_for(1'000)};
        for (std::uint64_t n = 0; n < 1'500; ++n) {
            (void)seen.note(nth_key(1, n), now);
        }
        const auto alone = seen.figures(now);
        CHECK(alone.young.keys + alone.old.keys == doctest::Approx(1'500).epsilon(0.01));
        seen.change_to({.objects = 2'000}, now);
        for (std::uint64_t n = 0; n < 500; ++n) {
            (void)seen.note(nth_key(2, n), now);
        }
        const auto both = seen.figures(now);
        CHECK(both.young.keys == doctest::Approx(500).epsilon(0.01));
        CHECK(both.young_used == doctest::Approx(0.25).epsilon(0.01));
        CHECK(both.old.keys == alone.young.keys + alone.old.keys);
        CHECK(both.old.estimated_keys == alone.young.estimated_keys + alone.old.estimated_keys);
        CHECK(both.old.false_positive_rate == alone.false_positive_rate);
        CHECK(both.false_positive_rate > alone.false_positive_rate);
        // When the change is over the former is nobody's.
        for (std::uint64_t n = 0; n < 2'500; ++n) {
            (void)seen.note(nth_key(3, n), now);
        }
        REQUIRE(seen.current()->generations() == 1);
        const auto after = seen.figures(now);
        CHECK(after.young.keys + after.old.keys == doctest::Approx(3'000).epsilon(0.01));
    }

    TEST_CASE("what is out of use is freed when nobody reads") {
        resizable_admission seen{filter_for(10'000)};
        const auto alone = seen.memory();
        seen.change_to({.objects = 1'000}, now);
        CHECK(seen.memory() > alone);
        for (std::uint64_t n = 0; n < 2'000; ++n) {
            (void)seen.note(nth_key(1, n), now);
        }
        seen.tidy();  // ends the change
        seen.tidy();
        CHECK_FALSE(seen.changing());
        CHECK(seen.memory() < alone);
    }

    TEST_CASE("keys never seen are taken for seen at the promised rate, during a change too") {
        // Filters for two thirds of 0.01, the former one full in both generations.
        constexpr double promised = 0.01;
        const filter::admission_settings made{.objects = 4'000,
                                              .false_positive_rate = promised * 2 / 3};
        resizable_admission seen{std::make_unique<filter::admission_filter>(made, now)};
        for (std::uint64_t n = 0; n < 7'900; ++n) {
            (void)seen.note(nth_key(1, n), now);
        }
        seen.change_to(made, now);
        for (std::uint64_t n = 0; n < 3'900; ++n) {
            (void)seen.note(nth_key(2, n), now);
        }
        REQUIRE(seen.changing());
        unsigned wrong = 0;
        constexpr unsigned asked = 100'000;
        for (std::uint64_t n = 0; n < asked; ++n) {
            wrong += seen.peek(nth_key(3, n)) != 0 ? 1 : 0;
        }
        // Binomial: 1,000 expected at the most, a standard deviation of 32; four of them.
        CHECK(wrong <= promised * asked + 130);
    }

    TEST_CASE("threads note and ask while filters come and go, and no sight is lost") {
        resizable_admission seen{filter_for(100'000)};
        std::atomic<bool> done{false};
        std::atomic<unsigned> lost{0};
        std::vector<std::jthread> threads;
        for (std::uint64_t t = 0; t < 3; ++t) {
            threads.emplace_back([&, t] {
                for (std::uint64_t n = 0; n < 3'000; ++n) {
                    const auto key = nth_key(10 + t, n);
                    (void)seen.note(key, now);
                    lost += seen.peek(key) == 0 ? 1 : 0;
                    (void)seen.generation();
                }
            });
        }
        std::thread changer{[&] {
            for (unsigned i = 0; !done; ++i) {
                if (!seen.changing()) {
                    seen.change_to({.objects = 100'000u + i}, now);
                }
                seen.tidy();
                (void)seen.memory();
                std::this_thread::yield();
            }
        }};
        threads.clear();
        done = true;
        changer.join();
        // A note that read the view before a change writes to what is then the former filter,
        // which is asked too.
        CHECK(lost == 0);
    }
}

}  // namespace reprise::proxy::cache::test::of_resizable_admission
