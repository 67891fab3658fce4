// "remember": "auto": the gate's filter follows how long what nobody asks for stays in the store.

#include "proxy/cache/admission/admission_gate.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace reprise::proxy::cache::test::of_following_gate {

using config::admission_policy;
using filter::test::nth_key;

namespace {

constexpr wall_time now{std::chrono::hours{500'000}};

constexpr admission_choice_for second_hit{{admission_policy::second_hit, 2}, ~std::size_t{0}};

}  // namespace

TEST_SUITE_BEGIN("cache/admission/following_gate");

TEST_CASE("a filter that follows keeps its promises: what was seen is known, few others are") {
    config::options options;
    options.memory.size = 16u << 20;
    options.admission.false_positive_rate = 0.01;
    admission_gate gate{options, now};
    const auto first = gate.settings();
    CHECK(first.age == std::chrono::hours{50});
    CHECK(first.false_positive_rate < 0.01);
    for (std::uint64_t n = 0; n < 2'000; ++n) {
        (void)gate.note(nth_key(1, n), second_hit, now);
    }
    // The store turns over in five minutes: a younger, smaller filter.
    auto later = now + std::chrono::minutes{2};
    gate.housekeep(std::chrono::minutes{5}, later);
    CHECK(gate.settings().age == std::chrono::seconds{512});
    CHECK(gate.settings().objects < first.objects);
    unsigned wrong = 0;
    for (std::uint64_t n = 0; n < 2'000; ++n) {
        CHECK(gate.peek(nth_key(1, n), second_hit).admitted);
    }
    constexpr std::uint64_t strangers = 20'000;
    for (std::uint64_t n = 0; n < strangers; ++n) {
        wrong += gate.peek(nth_key(2, n), second_hit).admitted ? 1 : 0;
    }
    CHECK(wrong <= 0.01 * strangers);  // far from full, far below
    // Within the new age nothing is forgotten; after two of them everything is.
    later += std::chrono::seconds{1'024};
    for (std::uint64_t n = 0; n < 3'000; ++n) {
        (void)gate.note(nth_key(3, n), second_hit, later);
    }
    gate.housekeep(std::chrono::minutes{10}, later);
    later += std::chrono::seconds{1'100};
    for (std::uint64_t n = 0; n < 1'000; ++n) {
        (void)gate.note(nth_key(4, n), second_hit, later);
    }
    wrong = 0;
    for (std::uint64_t n = 0; n < 2'000; ++n) {
        wrong += gate.peek(nth_key(1, n), second_hit).admitted ? 1 : 0;
    }
    CHECK(wrong <= 40);
}

TEST_CASE("during a change of size what is remembered is said of both filters") {
    config::options options;
    options.memory.size = 16u << 20;
    admission_gate gate{options, now};
    for (std::uint64_t n = 0; n < 2'000; ++n) {
        (void)gate.note(nth_key(1, n), second_hit, now);
    }
    const auto first = gate.settings();
    const auto later = now + std::chrono::minutes{2};
    gate.housekeep(std::chrono::minutes{5}, later);
    REQUIRE(gate.settings() != first);
    for (std::uint64_t n = 0; n < 300; ++n) {
        (void)gate.note(nth_key(2, n), second_hit, later);
    }
    const auto told = gate.figures(later);
    CHECK(told.young.estimated_keys == doctest::Approx(300).epsilon(0.05));
    CHECK(told.young.estimated_keys + told.old.estimated_keys ==
          doctest::Approx(2'300).epsilon(0.05));
}

TEST_CASE("while nothing is evicted no first sight is forgotten, however fast they come") {
    for (const std::uint64_t memory : {64u << 20, 512u << 20}) {
        for (const std::uint64_t rate : {1'000u, 20'000u, 100'000u}) {
            CAPTURE(memory);
            CAPTURE(rate);
            config::options options;
            options.memory.size = memory;
            options.disk.size = 2u << 30;
            options.disk.path = "/somewhere";
            REQUIRE(options.admission.remember.automatic);
            admission_gate gate{options, now};
            const std::uint64_t urls = memory >= 512u << 20 ? 300'000 : 100'000;
            std::uint64_t asked = 0, forgotten = 0;
            for (std::uint64_t turn = 0; turn < 2; ++turn) {
                for (std::uint64_t i = 0; i < urls; ++i) {
                    const auto at = now + std::chrono::milliseconds{asked * 1000 / rate};
                    if (++asked % rate == 0) {
                        gate.housekeep(std::nullopt, at);
                    }
                    const auto ruled = gate.note(nth_key(7, i), second_hit, at);
                    forgotten += turn == 1 && !ruled.admitted ? 1 : 0;
                }
            }
            CHECK(forgotten == 0);
        }
    }
}

TEST_CASE("a filter that follows may grow as far as a reload gives memory for") {
    config::options options;
    options.memory.size = 16u << 20;
    admission_gate gate{options, now};
    const auto first = gate.settings().objects;
    std::uint64_t next = 0;
    while (next < first * 4 / 5) {
        (void)gate.note(nth_key(1, next++), second_hit, now);
    }
    gate.housekeep(std::nullopt, now);
    REQUIRE(gate.settings().objects == first);  // as many as 16 MiB allow
    options.memory.size = 256u << 20;
    gate.adopt(options);
    gate.housekeep(std::nullopt, now);
    CHECK(gate.settings().objects == 4 * first);
    for (std::uint64_t n = 0; n < next; ++n) {
        CHECK(gate.peek(nth_key(1, n), second_hit).admitted);
    }
}

TEST_CASE("a filter that was made small grows under a flow that would turn it every few seconds") {
    // The larger memory has room for the minute that the store keeps things, the smaller has not,
    // and says so.
    for (const bool enough : {false, true}) {
        CAPTURE(enough);
        config::options options;
        options.memory.size = (enough ? 256u : 128u) << 20;
        admission_gate gate{options, now};
        // Few come, and leave soon: it shrinks. Then 5,000 a second come, and stay a minute.
        auto at = now;
        std::uint64_t next = 0, turned = 0;
        const auto come = [&](std::uint64_t a_second) {
            for (int second = 0; second < 130; ++second) {
                for (std::uint64_t i = 0; i < a_second; ++i) {
                    (void)gate.note(nth_key(8, next++), second_hit, at);
                }
                at += std::chrono::seconds{1};
                gate.housekeep(std::chrono::seconds{64}, at);
                const auto turned_now = gate.figures(at).swaps;
                CHECK(turned_now >= turned);  // through every change of size
                turned = turned_now;
            }
        };
        come(100);
        CHECK(gate.settings().objects <= 1u << 16);
        come(5'000);
        CHECK(gate.settings().objects == (enough ? 1u << 19 : 1u << 18));
        const auto told = gate.figures(at).remembers_for;
        CHECK(told >= std::chrono::seconds{enough ? 60 : 50});
        CHECK(told <= std::chrono::seconds{enough ? 64 : 53});
        // What it says is so.
        std::uint64_t known = 0;
        const auto since = static_cast<std::uint64_t>(told.count() - 1) * 5'000;
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            known += gate.peek(nth_key(8, next - since + i), second_hit).admitted ? 1 : 0;
        }
        CHECK(known == 20'000);
    }
}

TEST_CASE("a filter that follows comes back from its file in the size it had") {
    const tests::temp_dir directory;
    config::options options;
    options.memory.size = 16u << 20;
    options.admission.state = directory.file("state");
    std::uint64_t objects = 0;
    {
        admission_gate gate{options, now};
        for (std::uint64_t n = 0; n < 2'000; ++n) {
            (void)gate.note(nth_key(1, n), second_hit, now);
        }
        gate.housekeep(std::chrono::minutes{10}, now + std::chrono::minutes{2});
        objects = gate.settings().objects;
        for (std::uint64_t n = 0; n < 500; ++n) {
            (void)gate.note(nth_key(2, n), second_hit, now);
        }
        REQUIRE(!gate.save(options.admission.state));
    }
    REQUIRE(objects != admission_gate(config::options{}, now).settings().objects);
    const admission_gate again{options, now + std::chrono::minutes{3}};
    CHECK(again.settings().objects == objects);
    for (std::uint64_t n = 0; n < 500; ++n) {
        CHECK(again.peek(nth_key(2, n), second_hit).admitted);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_following_gate
