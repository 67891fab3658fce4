#include "filter/bit_changes.hpp"
#include "filter/digest.hpp"
#include "filter/stamped.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>

namespace reprise::filter {

using test::nth_key;

TEST_SUITE("filter/stamped") {
    TEST_CASE("a key is known for generations() - 1 whole generations, and gone with the next") {
        for (const unsigned generations : {2, 3, 8, 14}) {
            CAPTURE(generations);
            stamped_bloom filter{{1'000, 3}, generations};
            for (unsigned begun = 0; begun < 40; ++begun) {
                const auto key = nth_key(generations, begun);
                filter.insert(key);
                for (unsigned later = 1; later <= generations; ++later) {
                    CHECK(filter.may_contain(key));
                    filter.advance();
                }
                CHECK(filter.may_contain(key));  // over, and not swept yet
                CHECK(filter.sweep(1));
                CHECK(!filter.sweep());
                CHECK(!filter.may_contain(key));
                CHECK(filter.bits_on() == 0);
            }
        }
    }

    TEST_CASE("a key that is written again is as young as any") {
        stamped_bloom filter{{1'000, 3}, 4};
        for (unsigned i = 0; i < 100; ++i) {
            filter.insert(nth_key(1, 1));
            filter.advance();
            filter.sweep();
        }
        CHECK(filter.may_contain(nth_key(1, 1)));
        CHECK(filter.bits_on() == 3);
    }

    TEST_CASE("whatever is written when, nothing held is missing, and bits are told as they turn") {
        for (std::uint64_t seed = 1; seed <= 30; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            const auto generations = static_cast<unsigned>(2 + random() % 13);
            const bloom_size size{.bits = 1 + random() % 5'000,
                                  .probes = static_cast<unsigned>(1 + random() % 5)};
            stamped_bloom filter{size, generations};
            bit_changes told{size};
            const auto turn = [&](std::uint64_t place) { told.turn(place); };
            std::map<std::uint64_t, std::uint64_t> written;  // in which generation
            std::uint64_t now = 0;
            for (unsigned step = 0; step < 3'000; ++step) {
                const auto what = random() % 100;
                if (what < 3) {
                    filter.advance(turn);
                    ++now;
                } else if (what < 30) {
                    filter.sweep(random() % 500, turn);
                } else {
                    const auto key = random() % 400;
                    filter.insert(nth_key(seed, key), turn);
                    written[key] = now;
                }
            }
            std::uint64_t missing = 0;
            for (const auto& [key, when] : written) {
                const bool is_held = now - when < generations;
                missing += is_held && !filter.may_contain(nth_key(seed, key)) ? 1 : 0;
            }
            CHECK(missing == 0);
            CHECK(told.publish() == filter.snapshot());
            CHECK(filter.snapshot().bits_on() == filter.bits_on());
            // Swept, it is the filter of what is alive and of nothing else.
            filter.sweep(UINT64_MAX, turn);
            stamped_bloom expected{size, generations};
            for (auto age = std::min<std::uint64_t>(generations, now + 1); age-- > 0;) {
                for (const auto& [key, when] : written) {
                    if (now - when == age) {
                        expected.insert(nth_key(seed, key));
                    }
                }
                if (age > 0) {
                    expected.advance();
                }
            }
            // A key written again left its older stamp nowhere.
            CHECK(filter == expected);
        }
    }

    TEST_CASE("of a ring's keys none is missing, and 1 / (2 G - 1) of those named are gone") {
        for (const unsigned generations : {4, 14}) {
            CAPTURE(generations);
            constexpr std::uint64_t kept = 20'000;  // keys that the ring keeps, of equal size
            const auto each = kept / (generations - 1);
            stamped_bloom filter{{.bits = 40 * kept, .probes = 6}, generations};
            std::uint64_t missing = 0, named = 0, gone = 0;
            for (std::uint64_t i = 0; i < 5 * kept; ++i) {
                if (i % each == 0 && i > 0) {
                    filter.advance();
                    filter.sweep();
                }
                filter.insert(nth_key(1, i));
                // Looked at now and then, at every point of a generation alike.
                if (i < 2 * kept || i % 1'237 != 0) {
                    continue;
                }
                for (std::uint64_t back = 0; back < 2 * kept; ++back) {
                    const bool is_named = filter.may_contain(nth_key(1, i - back));
                    const bool is_held = back < each * (generations - 1);
                    named += is_named ? 1 : 0;
                    gone += is_named && !is_held ? 1 : 0;
                    missing += is_held && !is_named ? 1 : 0;
                }
            }
            CHECK(missing == 0);
            CHECK(static_cast<double>(gone) / static_cast<double>(named) ==
                  doctest::Approx(stamped_gone(generations)).epsilon(0.1));
        }
        CHECK(stamped_gone(14) == doctest::Approx(1.0 / 27));
        CHECK(stamped_keys(1'300, 14) == 1'400);
        CHECK(stamped_keys(1, 14) == 2);
        CHECK(stamped_keys(0, 2) == 0);
    }

    TEST_CASE("its rate is a standard filter's of the keys of all generations alive") {
        constexpr bloom_size size{200'000, 4};
        stamped_bloom filter{size, 14};
        for (unsigned generation = 0; generation < 20; ++generation) {
            filter.advance();
            for (std::uint64_t i = 0; i < 2'000; ++i) {
                filter.insert(nth_key(generation, i));
            }
        }
        filter.sweep();
        const auto expected = classic_rate(size, 14 * 2'000.0);
        CHECK(filter.false_positive_rate() == doctest::Approx(expected).epsilon(0.03));
        const auto wrong = static_cast<double>(test::found(filter, 99, 300'000));
        CHECK(std::abs(wrong - 300'000 * expected) < 5 * std::sqrt(300'000 * expected) + 100);
    }

    TEST_CASE("sweeping in pieces is sweeping at once, and advancing sweeps what is left") {
        const auto aged = [] {
            stamped_bloom filter{{10'007, 3}, 5};
            for (unsigned generation = 0; generation < 6; ++generation) {
                filter = test::filled(filter, generation, 300);
                if (generation < 5) {
                    filter.advance();
                }
            }
            return filter;
        };
        auto once = aged(), pieces = aged(), late = aged();
        CHECK(!once.is_swept());
        CHECK(!once.sweep());
        unsigned calls = 1;
        while (pieces.sweep(1)) {
            ++calls;
        }
        CHECK(calls == (10'007 + 63) / 64);
        CHECK(pieces == once);
        late.advance();
        once.advance();
        CHECK(late == once);
    }

    TEST_CASE("filters whose generations differ in number are not united") {
        stamped_bloom filter{{100, 3}, 4};
        CHECK(filter.unite(stamped_bloom{{100, 3}, 5}).error() == filter_errc::sizes_differ);
    }

    TEST_CASE("united, each key is as young as in the one that wrote it last") {
        stamped_bloom one{{5'000, 3}, 4}, other{{5'000, 3}, 4};
        one.insert(nth_key(1, 1));
        other.insert(nth_key(1, 2));
        for (unsigned i = 0; i < 3; ++i) {
            one.advance();
        }
        one.insert(nth_key(1, 3));
        REQUIRE(other.unite(one).has_value());
        CHECK(test::found(other, 1, 4) == 3);
        other.advance();
        other.sweep();
        CHECK(!other.may_contain(nth_key(1, 1)));
        CHECK(other.may_contain(nth_key(1, 2)));
        CHECK(other.may_contain(nth_key(1, 3)));
    }

    TEST_CASE("a digest of it has its bits") {
        const auto filter = test::filled(stamped_bloom{{5'001, 3}}, 1, 200);
        const auto made = digest::of(filter, digest_stamp{});
        CHECK(made.bits_on() == filter.bits_on());
        CHECK(test::found(made, 1, 200) == 200);
    }
}

}  // namespace reprise::filter
