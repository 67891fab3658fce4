#include "proxy/cache/disk/space.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

using namespace reprise::proxy::cache::disk;
using reprise::proxy::cache::packed_wait;

namespace {

constexpr std::uint64_t segment_bytes = 1000;

space_settings settings_of(segment_number segments, double carry = 0.5, double exponent = 1) {
    return {
        .segments = segments, .segment_bytes = segment_bytes, .carry = carry, .exponent = exponent};
}

occupant record(std::uint64_t bytes, unsigned frequency) {
    return {.bytes = bytes, .length = bytes, .frequency = frequency, .wait = {}};
}

/// Fills every segment of `it` with one record each, in the order of their numbers.
void fill(space& it, segment_number segments, std::uint64_t first_sequence = 1) {
    for (segment_number i = 0; i < segments; ++i) {
        it.open(i, first_sequence + i);
        it.wrote(i, record(segment_bytes, 1), false);
        it.close(i);
    }
}

std::uint64_t bytes_of(const std::vector<occupant>& all, const std::vector<std::uint32_t>& some) {
    return std::accumulate(
        some.begin(), some.end(), std::uint64_t{0}, [&all](std::uint64_t sum, std::uint32_t i) {
            return sum + all[i].bytes;
        });
}

}  // namespace

TEST_SUITE("cache/disk/space") {
    TEST_CASE("where no more segments can be made the disk is full, until one is made after all") {
        space it{settings_of(32)};
        it.open(0, 1);
        it.close(0);
        REQUIRE(it.filling());
        it.no_more_room();
        CHECK_FALSE(it.filling());
        CHECK_FALSE(it.worth_writing(1, 100, {}));
        it.open(0, 2);  // again: no new one
        it.close(0);
        CHECK_FALSE(it.filling());
        it.open(1, 3);
        CHECK(it.filling());
    }

    TEST_CASE("free segments are written before any is reclaimed, then the oldest") {
        space it{settings_of(3)};
        for (segment_number i = 0; i < 3; ++i) {
            REQUIRE(it.next() == i);
            it.open(i, 10 - i);  // the last one is the oldest
            CHECK(it.figures().reclaimed == 0);
            it.close(i);
        }
        REQUIRE(it.next() == 2);
        it.open(2, 11);
        it.close(2);
        CHECK(it.next() == 1);
        CHECK(it.figures().reclaimed == 1);
    }

    TEST_CASE("the open segment is not reclaimed") {
        space it{settings_of(1)};
        it.open(0, 1);
        CHECK_FALSE(it.next());
        it.close(0);
        CHECK(it.next() == 0);
    }

    TEST_CASE("density is frequency by length to the exponent") {
        CHECK(space{settings_of(2, 0.5, 1)}.density(6, 3, {}) == doctest::Approx(2));
        CHECK(space{settings_of(2, 0.5, 0)}.density(6, 1'000'000, {}) == doctest::Approx(6));
        CHECK(space{settings_of(2, 0.5, 0.5)}.density(6, 100, {}) == doctest::Approx(0.6));
        CHECK(std::isfinite(space{settings_of(2, 0.5, 1)}.density(6, 0, {})));
    }

    TEST_CASE(
        "where the objective is seconds, density is what requests would wait, and only there") {
        const packed_wait fast{std::chrono::milliseconds{5}}, slow{std::chrono::milliseconds{500}};
        auto settings = settings_of(2, 0.5, 0.5);
        CHECK(space{settings}.density(6, 100, slow) == space{settings}.density(6, 100, fast));
        settings.by_wait = true;
        space it{settings};
        CHECK(it.density(6, 100, slow) == doctest::Approx(0.3).epsilon(0.05));
        CHECK(it.density(6, 100, slow) / it.density(6, 100, fast) ==
              doctest::Approx(100).epsilon(0.1));
        for (int i = 0; i < 1'000; ++i) {
            it.note_wait(slow);
            it.note_wait({});
        }
        CHECK(it.density(6, 100, {}) == doctest::Approx(it.density(6, 100, slow)));
        // The slow one is carried, though the other was asked for ten times as often.
        auto often = record(500, 10), seldom = record(500, 1);
        often.wait = fast;
        seldom.wait = slow;
        CHECK(it.choose(std::vector<occupant>{often, seldom}) == std::vector<std::uint32_t>{1});
    }

    TEST_CASE("the densest are carried, in the order in which they lie") {
        space it{settings_of(2)};
        const std::vector<occupant> live{
            record(200, 2), record(200, 8), record(200, 1), record(200, 4), record(200, 9)};
        CHECK(it.choose(live) == std::vector<std::uint32_t>{1, 4});
        CHECK(it.figures().let_go == 3);
        CHECK(it.figures().let_go_bytes == 600);
    }

    TEST_CASE("with exponent 1 a small record is carried before a large one asked for as often") {
        const std::vector<occupant> live{record(500, 3), record(100, 3), record(400, 3)};
        CHECK(space{settings_of(2, 0.5, 1)}.choose(live) == std::vector<std::uint32_t>{1, 2});
        CHECK(space{settings_of(2, 0.5, 0)}.choose(live) == std::vector<std::uint32_t>{0});
    }

    TEST_CASE("another exponent judges what follows, and the threshold goes with it") {
        space it{settings_of(2, 0.5, 1)};
        for (int i = 0; i < 200; ++i) {
            (void)it.choose(std::vector<occupant>{record(500, 4), record(500, 4), record(500, 4)});
        }
        REQUIRE(it.threshold() == doctest::Approx(4.0 / 500).epsilon(0.01));
        it.set_exponent(0.3);
        CHECK(it.density(4, 500, {}) == doctest::Approx(4 / std::pow(500, 0.3)));
        // For one of the usual length nothing has changed.
        CHECK(it.threshold() == doctest::Approx(it.density(4, 500, {})).epsilon(0.01));
    }

    TEST_CASE("what nobody asked for lately is not carried, however much room there is") {
        space it{settings_of(2, 0.9)};
        CHECK(it.choose(std::vector<occupant>{record(10, 0), record(10, 0)}).empty());
        CHECK(it.choose({}).empty());
    }

    TEST_CASE("no segment's carried bytes are more than its share, whatever is in it") {
        std::mt19937_64 random{5};
        for (const double carry : {0.0, 0.25, 0.6, 0.9}) {
            space it{settings_of(2, carry, 0.3)};
            for (int round = 0; round < 200; ++round) {
                std::vector<occupant> live(random() % 40);
                for (auto& one : live) {
                    one = record(1 + random() % 300, static_cast<unsigned>(random() % 16));
                }
                const auto all = std::accumulate(
                    live.begin(), live.end(), 0.0, [](double sum, const occupant& one) {
                        return sum + static_cast<double>(one.bytes);
                    });
                const auto kept = it.choose(live);
                CHECK(static_cast<double>(bytes_of(live, kept)) <= carry * all);
                CHECK(std::is_sorted(kept.begin(), kept.end()));
                CHECK(std::adjacent_find(kept.begin(), kept.end()) == kept.end());
                // None that is left is denser than one that is carried.
                std::vector<bool> is_kept(live.size());
                double least = 1e300, most = 0;
                for (const auto i : kept) {
                    is_kept[i] = true;
                    least = std::min(least, it.density(live[i].frequency, live[i].length, {}));
                }
                for (std::size_t i = 0; i < live.size(); ++i) {
                    most = is_kept[i]
                               ? most
                               : std::max(most, it.density(live[i].frequency, live[i].length, {}));
                }
                CHECK(least >= most);
            }
        }
    }

    TEST_CASE("while more than a sixteenth of the segments is free everything is worth writing") {
        space it{settings_of(32)};
        CHECK(it.filling());
        CHECK(it.worth_writing(0, segment_bytes, {}));
        for (segment_number i = 0; i < 29; ++i) {
            it.open(i, i + 1);
            it.close(i);
        }
        CHECK(it.filling());
        it.open(29, 30);
        CHECK_FALSE(it.filling());
        CHECK_FALSE(it.worth_writing(0, segment_bytes, {}));
    }

    TEST_CASE("the threshold comes to what is let go, and is what writing is judged by") {
        space it{settings_of(4, 0.5, 0)};
        fill(it, 4);
        const std::vector<occupant> live{
            record(250, 9), record(250, 8), record(250, 5), record(250, 1)};
        for (int i = 0; i < 300; ++i) {
            (void)it.choose(live);
        }
        CHECK(it.threshold() == doctest::Approx(5).epsilon(0.01));
        CHECK(it.worth_writing(6, 100, {}));
        CHECK_FALSE(it.worth_writing(4, 100, {}));
    }

    TEST_CASE("a threshold that nothing passes is halved with the sketch, until something does") {
        space it{settings_of(4, 0.5, 0)};
        fill(it, 4);
        for (int i = 0; i < 300; ++i) {
            (void)it.choose(std::vector<occupant>{record(500, 16), record(500, 16)});
        }
        CHECK_FALSE(it.worth_writing(8, 100, {}));
        it.aged_to(1);
        it.aged_to(1);  // told twice, halved once
        CHECK_FALSE(it.worth_writing(7, 100, {}));
        CHECK(it.worth_writing(9, 100, {}));
        it.aged_to(3);
        CHECK(it.worth_writing(3, 100, {}));
        const auto before = it.threshold();
        it.aged_to(2);  // a thread that comes late
        it.aged_to(3);
        CHECK(it.threshold() == before);
        it.aged_to(1'000'000);
        CHECK(it.worth_writing(2, 100, {}));
        CHECK_FALSE(it.worth_writing(1, 100, {}));  // once is never enough
    }

    TEST_CASE("a segment without anything live leaves the threshold as it is") {
        space it{settings_of(4, 0.5, 0)};
        fill(it, 4);
        (void)it.choose(std::vector<occupant>{record(500, 16), record(500, 16)});
        const auto before = it.threshold();
        for (int i = 0; i < 100; ++i) {
            (void)it.choose({});
        }
        CHECK(it.threshold() == before);
    }

    TEST_CASE("where nothing may be carried everything is written") {
        space it{settings_of(4, 0)};
        fill(it, 4);
        for (int i = 0; i < 100; ++i) {
            CHECK(it.choose(std::vector<occupant>{record(500, 16)}).empty());
        }
        CHECK(it.worth_writing(0, segment_bytes, {}));
    }

    TEST_CASE("live and written bytes are the sums of what came, went and was reclaimed") {
        space it{settings_of(3)};
        it.found(2, 1, 700);
        it.open(0, 2);
        it.wrote(0, record(300, 1), false);
        it.wrote(0, record(200, 1), true);
        it.close(0);
        CHECK(it.live_bytes() == 1200);
        CHECK(it.live_bytes(0) == 500);
        it.died(0, record(300, 1));
        it.died(2, record(900, 1));  // more than it had: none is left
        CHECK(it.live_bytes() == 200);
        CHECK(it.live_bytes(2) == 0);
        it.open(0, 3);
        CHECK(it.live_bytes() == 0);

        const auto figures = it.figures();
        CHECK(figures.written_bytes == 500);
        CHECK(figures.carried == 1);
        CHECK(figures.carried_bytes == 200);
        CHECK(figures.reclaimed == 1);
        CHECK(figures.free == 1);
    }

    TEST_CASE("a disk that was made smaller has no free segment, and gives back those too many") {
        auto settings = settings_of(3);
        settings.numbers = 6;
        space it{settings};
        CHECK(it.filling());
        for (segment_number i = 1; i < 6; ++i) {
            it.found(i, i, 100);
        }
        CHECK_FALSE(it.filling());
        CHECK(it.figures().free == 0);
        CHECK(it.live_bytes() == 500);
        it.gave_back(1);
        it.gave_back(2);
        CHECK(it.live_bytes() == 300);
        CHECK(it.figures().reclaimed == 2);
        CHECK(it.figures().free == 0);
        it.open(0, 6);  // for what was given back
        CHECK(it.figures().free == 0);
        CHECK_FALSE(it.filling());
    }

    TEST_CASE("in the long run the carried share of all bytes written is at most the setting") {
        // A log of 16 segments under skewed requests: each round writes what was reclaimed anew.
        std::mt19937_64 random{11};
        space it{settings_of(16, 0.6, 0.3)};
        std::vector<std::vector<occupant>> footers(16);
        segment_number open = *it.next();
        std::uint64_t sequence = 1, filled = 0;
        it.open(open, sequence);
        const auto put = [&](const occupant& what, bool carried) {
            footers[open].push_back(what);
            filled += what.bytes;
            it.wrote(open, what, carried);
        };
        for (int written = 0; written < 20'000;) {
            if (filled + 100 > segment_bytes) {
                it.close(open);
                open = it.next().value();
                const auto live = std::move(footers[open]);
                const auto kept = it.choose(live);
                footers[open].clear();
                filled = 0;
                it.open(open, ++sequence);
                for (const auto i : kept) {
                    put(live[i], true);
                }
                continue;
            }
            put(record(1 + random() % 100, static_cast<unsigned>(random() % 8)), false);
            ++written;
        }
        const auto figures = it.figures();
        CHECK(figures.carried_bytes > figures.written_bytes / 3);
        CHECK(static_cast<double>(figures.carried_bytes) <=
              0.6 * static_cast<double>(figures.written_bytes));
        CHECK(it.live_bytes() <= 16 * segment_bytes);
    }
}
