// What the ghosts tell: their figures, the sample that these are of, and the advice for people.

#include "proxy/cache/policy/what_if.hpp"
#include "tests/unit/cache/policy/what_if_requests.hpp"
#include "tests/unit/cache/policy/what_if_rows.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace reprise;
using namespace reprise::proxy;
using namespace reprise::proxy::cache;
using filter::test::nth_key;
using std::chrono::minutes;
using std::chrono::seconds;
using test::play;
using test::row_of;
using test::start;

namespace {

/// Objects whose popularity falls as 1 / rank, of 1,000 bytes; one request in three is for an
/// object that nobody asks for again.
std::vector<std::uint64_t> popular_and_not(std::uint64_t seed, std::size_t requests) {
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> uniform;
    std::vector<std::uint64_t> keys;
    for (std::size_t i = 0; i < requests; ++i) {
        keys.push_back(random() % 3 == 0
                           ? 1'000'000 + i
                           : static_cast<std::uint64_t>(std::exp(uniform(random) * 9.2)));
    }
    return keys;
}

}  // namespace

TEST_SUITE("cache/policy/what_if") {
    TEST_CASE("nothing is told before anything was asked for") {
        const what_if none{{.capacity = 1'000'000}, start, 1};
        const auto report = none.report(start + seconds{5});
        CHECK(report.rows.empty());
        CHECK_FALSE(report.advice);
        CHECK(report.requests == 0);
        CHECK(report.span == seconds{5});
        CHECK_FALSE(report.text.empty());
    }

    TEST_CASE("of a few requests the ghosts' hits are exact") {
        what_if ghosts{{.capacity = 10'000}, start, 1};
        // Three requests for one object, one for another.
        for (const int key : {1, 1, 1, 2}) {
            ghosts.note(nth_key(1, static_cast<std::uint64_t>(key)), 500, start);
        }
        const auto report = ghosts.report(start);
        CHECK(report.requests == 4);
        CHECK(row_of(report, "always").hit_ratio == doctest::Approx(2.0 / 4));
        CHECK(row_of(report, "always").written_bytes == 1'000);
        CHECK(row_of(report, "second-hit").hit_ratio == doctest::Approx(1.0 / 4));
        CHECK(row_of(report, "second-hit").written_bytes == 500);
        CHECK(row_of(report, "second-hit").in_force);
        CHECK(row_of(report, "nth-hit 3").hit_ratio == 0);
        CHECK(row_of(report, "nth-hit 3").written_bytes == 500);
        // Nothing has left yet, so tinylfu takes all.
        CHECK(row_of(report, "tinylfu").hit_ratio == doctest::Approx(2.0 / 4));
        // 2 % are 200 bytes: an object of 500 waits while there is room beside.
        CHECK(row_of(report, "second-hit with probation 2%").hit_ratio == doctest::Approx(2.0 / 4));
        CHECK(row_of(report, "second-hit with probation 2%").written_bytes == 500);
        CHECK(report.lost_to_admission == doctest::Approx(1.0 / 4));
        CHECK(report.won_by_admission == 0);
    }

    TEST_CASE("a ghost by tinylfu goes on admitting after what was asked for most often has left") {
        // A hundred fit. First a hundred that are popular, then as many others.
        what_if ghosts{{.capacity = 100'000, .policy = eviction_kind::lru}, start, 1};
        auto now = start;
        const auto counts = [&] {
            const auto report = ghosts.report(now);
            const auto& row = row_of(report, "tinylfu");
            return std::pair{row.hit_ratio * static_cast<double>(report.requests),
                             row.written_bytes};
        };
        const auto ask = [&](std::uint64_t first, std::uint64_t times) {
            std::vector<std::uint64_t> keys;
            for (std::uint64_t n = 0; n < 100 * times; ++n) {
                keys.push_back(first + n % 100);
            }
            play(ghosts, keys, 1'000, now);
            now += seconds{100 * times / what_if::most_pace + 1};
        };
        ask(0, 40);
        ask(1'000, 40);
        const auto before = counts();
        ask(1'000, 20);
        CHECK(counts().first - before.first > 1'900);
        // What is asked for five times each gets in too, though seldom, while those are worth more.
        const auto written = counts().second;
        for (std::uint64_t n = 0; n < 400; ++n) {
            play(ghosts, std::vector<std::uint64_t>(5, 2'000 + n), 1'000, now);
        }
        CHECK(counts().second > written + 10'000);
    }

    TEST_CASE("where seconds are the objective, hits are worth what their fetches took") {
        what_if ghosts{
            {.capacity = 10'000, .wanted = config::caching_objective::seconds}, start, 1};
        const packed_wait fast{std::chrono::milliseconds{5}}, slow{std::chrono::milliseconds{500}};
        // Three requests for one that is slow, of which the last does not say so; five for the other.
        for (const auto& [key, wait] : {std::pair{1, slow},
                                        {1, slow},
                                        {1, packed_wait{}},
                                        {2, fast},
                                        {2, fast},
                                        {2, fast},
                                        {2, fast},
                                        {2, fast}}) {
            ghosts.note(nth_key(1, static_cast<std::uint64_t>(key)), 500, start, wait);
        }
        const auto report = ghosts.report(start);
        CHECK(row_of(report, "always").hit_ratio == doctest::Approx(6.0 / 8));
        const auto all = 3 * slow.seconds() + 5 * fast.seconds();
        CHECK(row_of(report, "always").wait_hit_ratio ==
              doctest::Approx((2 * slow.seconds() + 4 * fast.seconds()) / all));
        CHECK(row_of(report, "second-hit").wait_hit_ratio ==
              doctest::Approx((slow.seconds() + 3 * fast.seconds()) / all));
    }

    TEST_CASE("the advice is what spares most waiting, and says so") {
        // What is slow comes twice, what is fast comes three times: strict admission costs all of the
        // slow ones' hits.
        what_if ghosts{
            {.capacity = 10'000'000, .wanted = config::caching_objective::seconds}, start, 1};
        for (std::uint64_t n = 0; n < 2'000; ++n) {
            const packed_wait wait{n % 2 == 0 ? std::chrono::milliseconds{500}
                                              : std::chrono::milliseconds{5}};
            for (std::uint64_t times = 0; times < 2 + n % 2; ++times) {
                ghosts.note(nth_key(1, n), 500, start, wait);
            }
        }
        const auto report = ghosts.report(start);
        REQUIRE(report.advice);
        CHECK(report.advice->gain > 0.4);
        CHECK(report.text.find("of all waiting more") != std::string::npos);
    }

    TEST_CASE("there is a row for every size and every other policy") {
        what_if ghosts{{.capacity = 10'000, .policy = eviction_kind::lru}, start, 1};
        ghosts.note(nth_key(1, 1), 500, start);
        const auto report = ghosts.report(start);
        for (const auto* size : {"x1/4", "x1/2", "x2", "x4"}) {
            (void)row_of(report, size, what_if_row::group::size);
        }
        for (const auto& [name, kind] : config::eviction_names) {
            const auto named = std::count_if(
                report.rows.begin(), report.rows.end(), [kind](const auto& row) {
                    return row.of == what_if_row::group::policy && row.name == to_string(kind);
                });
            CHECK(named == (kind == eviction_kind::lru ? 0 : 1));
        }
        CHECK(std::count_if(report.rows.begin(), report.rows.end(), [](const auto& row) {
                  return row.in_force;
              }) == 1);
    }

    TEST_CASE("what is in force has a row, whatever it is") {
        const admission_variant own{.hits = 3, .probation = 0.05};
        what_if ghosts{{.capacity = 10'000, .admission = own}, start, 1};
        ghosts.note(nth_key(1, 1), 500, start);
        CHECK(row_of(ghosts.report(start), "nth-hit 3 with probation 5%").in_force);
    }

    TEST_CASE("a larger cache has more hits, and admission spares writes") {
        what_if ghosts{{.capacity = 1'000'000}, start, 1};
        play(ghosts, popular_and_not(1, 60'000));
        const auto report = ghosts.report(start + minutes{1});
        double before = 0;
        for (const auto* size : {"x1/4", "x1/2", "x2", "x4"}) {
            const auto ratio = row_of(report, size, what_if_row::group::size).hit_ratio;
            CHECK(ratio > before);
            before = ratio;
        }
        CHECK(row_of(report, "second-hit").written_bytes <
              row_of(report, "always").written_bytes / 2);
        CHECK(row_of(report, "second-hit with probation 2%").hit_ratio >
              row_of(report, "second-hit").hit_ratio);
    }

    TEST_CASE("a sample of the keys tells about what all of them do") {
        const auto keys = popular_and_not(2, 200'000);
        const what_if_setup setup{.capacity = 2'000'000};
        what_if whole{setup, start, 1};
        what_if sampled{setup, start, 0.25};
        play(whole, keys);
        play(sampled, keys);
        const auto all = whole.report(start + minutes{4});
        const auto some = sampled.report(start + minutes{4});
        CHECK(some.sample == doctest::Approx(0.25));
        CHECK(static_cast<double>(some.requests) / static_cast<double>(all.requests) ==
              doctest::Approx(0.25).epsilon(0.3));
        REQUIRE(some.rows.size() == all.rows.size());
        const auto difference = [](const what_if_report& in, const char* name) {
            return row_of(in, name).hit_ratio - row_of(in, "second-hit").hit_ratio;
        };
        for (const auto* name : {"always", "nth-hit 3", "second-hit with probation 2%"}) {
            CAPTURE(name);
            // By hash alone, with a fixed seed: what a sample of 2,500 popular keys is off by.
            CHECK(std::abs(difference(some, name) - difference(all, name)) < 0.01);
        }
        const auto written = [](const what_if_report& in) {
            return static_cast<double>(row_of(in, "always").written_bytes);
        };
        CHECK(written(some) == doctest::Approx(written(all)).epsilon(0.05));
    }

    TEST_CASE("a sample that grows too large is halved, and goes on telling about the same") {
        // All fits, so that many keys are held.
        what_if ghosts{{.capacity = 1u << 30}, start, 1};
        std::vector<std::uint64_t> keys;
        for (std::uint64_t n = 0; n < 20'000; ++n) {
            keys.push_back(n);
        }
        play(ghosts, keys);
        auto report = ghosts.report(start + minutes{1});
        CHECK(report.sample == 0.5);
        CHECK(report.keys <= what_if::most_slots);
        CHECK(report.keys > 9'000);
        play(ghosts, keys);
        report = ghosts.report(start + minutes{1});
        CHECK(row_of(report, "always").hit_ratio > 0.3);
        CHECK(row_of(report, "always").written_bytes == doctest::Approx(20e6).epsilon(0.05));
    }

    TEST_CASE("a request halves no sample: what comes is left out until somebody keeps house") {
        what_if ghosts{{.capacity = 1u << 30}, start, 1};
        const auto note = [&ghosts](std::uint64_t from, std::uint64_t to) {
            for (auto n = from; n < to; ++n) {
                ghosts.note(nth_key(1, n), 1'000, start + seconds{n / what_if::most_pace});
            }
        };
        note(0, 30'000);
        auto report = ghosts.report(start + minutes{1});
        CHECK(report.sample == 1);
        CHECK(report.keys == what_if::most_slots + 1);
        CHECK(report.requests == what_if::most_slots + 1);
        CHECK(report.dropped == 30'000 - report.requests);
        ghosts.tend();
        report = ghosts.report(start + minutes{1});
        CHECK(report.sample == 0.5);
        CHECK(report.keys < what_if::most_slots * 6 / 10);
        note(30'000, 31'000);
        CHECK(ghosts.report(start + minutes{1}).requests > report.requests + 400);
    }

    TEST_CASE("thin traffic is measured whole, and fast traffic by so many requests a second") {
        // A thousand keys, 100 a minute, and 20,000 a second.
        what_if thin{{.capacity = 1'000'000}, start}, fast{{.capacity = 1'000'000}, start};
        for (std::uint64_t n = 0; n < 3'000; ++n) {
            thin.note(nth_key(1, n % 1'000), 500, start + std::chrono::milliseconds{n * 600});
        }
        CHECK(thin.report(start + minutes{30}).sample == 1);
        CHECK(thin.report(start + minutes{30}).requests == 3'000);
        const auto play_fast = [&fast](std::uint64_t from, std::uint64_t to) {
            for (auto n = from * 20'000; n < to * 20'000; ++n) {
                fast.note(nth_key(1, n % 1'000), 500, start + std::chrono::microseconds{n * 50});
                fast.tend();
            }
            return fast.report(start + seconds{to}).requests;
        };
        const auto first = play_fast(0, 60);
        const auto second = play_fast(60, 80);
        CHECK(second - first <= 20 * what_if::most_pace * 5 / 4);
        CHECK(second - first >= 20 * what_if::most_pace / 4);
    }

    TEST_CASE("what is set aside counts for the pace as little as it costs") {
        what_if ghosts{{.capacity = 1'000'000}, start};
        for (std::uint64_t n = 0; n < 100'000; ++n) {  // 10 s
            ghosts.note(nth_key(1, n), 500, start + std::chrono::microseconds{n * 100}, {}, 7);
        }
        CHECK(ghosts.report(start + seconds{10}).sample == 1);
        for (std::uint64_t n = 0; n < 3'000'000; ++n) {
            ghosts.note(
                nth_key(1, n), 500, start + seconds{10} + std::chrono::microseconds{n * 5}, {}, 7);
            ghosts.tend();
        }
        CHECK(ghosts.report(start + seconds{25}).sample < 0.5);
    }

    TEST_CASE("whatever is remembered, the ghosts' filter and sketch are bounded") {
        what_if ghosts{{.capacity = 1u << 30, .remembers = 100'000'000, .counts = 50'000'000},
                       start};
        CHECK(ghosts.report(start).memory_bytes < 6u << 20);
        // Only what is stored needs a slot; here it is the filter that would forget too soon.
        what_if small{{.capacity = 100'000, .remembers = 100'000'000}, start};
        std::uint64_t n = 0;
        const auto come = [&](std::uint64_t keys) {
            for (const auto end = n + keys; n < end; ++n) {
                small.note(nth_key(1, n), 1'000, start + std::chrono::milliseconds{n * 2});
                small.tend();
            }
        };
        come(what_if::most_remembered / 2);
        CHECK(small.report(start + minutes{1}).sample == 1);
        come(3 * what_if::most_remembered);
        CHECK(small.report(start + minutes{1}).sample <= 0.5);
        CHECK(small.report(start + minutes{1}).memory_bytes < 30u << 20);
    }

    TEST_CASE("a filter of another size knows what the former one knew") {
        what_if ghosts{{.capacity = 1'000'000, .remembers = 50'000}, start};
        for (std::uint64_t n = 0; n < 1'000; ++n) {
            ghosts.note(nth_key(1, n), 500, start);
        }
        ghosts.remember(5'000, std::chrono::hours{5});
        const auto later = start + minutes{1};
        for (int times = 0; times < 2; ++times) {
            for (std::uint64_t n = 0; n < 1'000; ++n) {
                ghosts.note(nth_key(1, n), 500, later);
            }
        }
        // Of three rounds the third is all hits: the second was a second sight.
        CHECK(row_of(ghosts.report(later), "second-hit").hit_ratio == doctest::Approx(1.0 / 3));
    }

    TEST_CASE("an hour later nothing is told of what was") {
        what_if ghosts{{.capacity = 1'000'000}, start, 1};
        play(ghosts, popular_and_not(3, 5'000));
        CHECK(ghosts.report(start + minutes{59}).requests == 5'000);
        CHECK(ghosts.report(start + minutes{61}).requests == 0);
    }

    TEST_CASE("when admission costs more hits than it brings, the advice names what would not") {
        // All but twenty are asked for exactly twice, soon: strict second-hit has no hit at all.
        std::vector<std::uint64_t> keys;
        for (std::uint64_t n = 0; n < 5'000; ++n) {
            keys.push_back(n);
            keys.push_back(n);
        }
        for (std::uint64_t n = 5'000; n < 5'020; ++n) {
            keys.push_back(n);
        }
        what_if ghosts{{.capacity = 1'000'000}, start, 1};
        play(ghosts, keys);
        const auto report = ghosts.report(start + minutes{1});
        CHECK(report.lost_to_admission == doctest::Approx(0.5).epsilon(0.01));
        REQUIRE(report.advice);
        CHECK(report.advice->gain == doctest::Approx(0.499).epsilon(0.001));
        // As many hits as always, and the fewest bytes written.
        CHECK(report.advice->admission.probation > 0);
        CHECK(report.text.find("\"probation\": \"") != std::string::npos);
        CHECK(report.text.find("49.9%") != std::string::npos);
    }

    TEST_CASE("when admission costs little there is no advice") {
        // Many requests each for few objects.
        std::vector<std::uint64_t> keys;
        for (std::uint64_t n = 0; n < 10'000; ++n) {
            keys.push_back(n % 50);
        }
        what_if ghosts{{.capacity = 1'000'000}, start, 1};
        play(ghosts, keys);
        const auto report = ghosts.report(start + minutes{1});
        CHECK(report.lost_to_admission == doctest::Approx(0.005));
        CHECK_FALSE(report.advice);
        CHECK(report.text.starts_with("admission costs little"));
    }

    TEST_CASE("from few requests nothing follows") {
        what_if ghosts{{.capacity = 1'000'000}, start, 1};
        play(ghosts, {1, 1, 2, 2, 3, 3});
        CHECK_FALSE(ghosts.report(start).advice);
        CHECK(ghosts.report(start).text.starts_with("too few"));
    }

    TEST_CASE("setups may change in any order, and no entry is left in what ended") {
        what_if ghosts{{.capacity = 300'000}, start, 1};
        const auto keys = popular_and_not(4, 3'000);
        const admission_variant odd{.hits = 3, .probation = 0.3};
        for (int round = 0; round < 8; ++round) {
            const auto now = start + seconds{8 * round};
            what_if_setup setup{.capacity = 300'000u + 1'000u * static_cast<unsigned>(round % 3)};
            setup.admission = round % 2 == 0 ? odd : admission_variant{};
            const auto next = static_cast<std::size_t>(round) % config::eviction_names.size();
            setup.policy = config::eviction_names[next].second;
            setup.wanted = static_cast<config::caching_objective>(round % 3);
            ghosts.set(setup, now);
            play(ghosts, keys, 1'000, now);
            CHECK(ghosts.report(now + minutes{1}).requests == 3'000);
        }
    }

    TEST_CASE("with gdsf there is a row for each rung of the exponent's ladder") {
        what_if ghosts{
            {.capacity = 10'000, .policy = eviction_kind::gdsf, .exponent = 0.3}, start, 1};
        ghosts.note(nth_key(1, 1), 500, start);
        std::vector<std::string> names;
        for (const auto& row : ghosts.report(start).rows) {
            if (row.of == what_if_row::group::exponent) {
                names.push_back(row.name);
            }
        }
        CHECK(names == std::vector<std::string>{"0", "0.05", "0.15", "0.3", "0.5", "0.7", "1"});
        what_if without{{.capacity = 10'000}, start, 1};
        CHECK_FALSE(without.report(start).exponent);
    }

    TEST_CASE("an object that the store would not take is in no ghost") {
        what_if ghosts{{.capacity = 10'000, .largest = 2'000}, start, 1};
        for (int times = 0; times < 4; ++times) {
            ghosts.note(nth_key(1, 1), 2'000, start);
            ghosts.note(nth_key(1, 2), 2'001, start);
        }
        const auto report = ghosts.report(start);
        CHECK(row_of(report, "always").hit_ratio == doctest::Approx(3.0 / 8));
        CHECK(row_of(report, "x2", what_if_row::group::size).hit_ratio ==
              doctest::Approx(2 * 2.0 / 8));
    }

    TEST_CASE(
        "one client's scan or loop can't make the advice another than all others' requests do") {
        // Others ask for everything twice, soon: storing at the second request costs them all hits.
        for (const bool scans : {true, false}) {
            CAPTURE(scans);
            what_if ghosts{{.capacity = 2'000'000}, start, 1};
            std::uint64_t fresh = 0;
            for (std::uint64_t minute = 0; minute < 5; ++minute) {
                const auto now = start + minutes{minute};
                for (std::uint64_t n = 0; n < 2'000; ++n) {
                    const auto key = nth_key(2, minute * 1'000 + n / 2);
                    ghosts.note(key, 1'000, now, {}, 1 + n % 50);
                    for (int times = 0; times < 20; ++times) {
                        ghosts.note(nth_key(3, scans ? fresh++ : n % 5), 1'000, now, {}, 77);
                    }
                }
            }
            const auto report = ghosts.report(start + minutes{5});
            CHECK(report.set_aside > 150'000);
            CHECK(report.requests <= 21'000);
            REQUIRE(report.advice);
            CHECK(report.advice->gain > 0.2);
        }
    }

    TEST_CASE("a client alone is measured, up to its bound, and one who speaks for many whole") {
        for (const std::uint64_t client : {0, 5}) {
            what_if ghosts{{.capacity = 1'000'000}, start, 1};
            for (std::uint64_t n = 0; n < 3'000; ++n) {
                ghosts.note(nth_key(1, n), 1'000, start, {}, client);
            }
            CHECK(ghosts.report(start).requests == (client == 0 ? 3'000 : what_if::client_notes));
        }
    }

    TEST_CASE("threads note while reports are made") {
        what_if ghosts{{.capacity = 100'000}, start, 1};
        std::vector<std::jthread> threads;
        for (std::uint64_t t = 0; t < 3; ++t) {
            threads.emplace_back([&ghosts, t] {
                for (std::uint64_t n = 0; n < 1'000; ++n) {
                    ghosts.note(nth_key(1, n % (100 * (t + 1))), 1'000, start);
                }
            });
        }
        for (int i = 0; i < 20; ++i) {
            (void)ghosts.report(start);
            (void)ghosts.decide(start);
        }
        threads.clear();
        const auto report = ghosts.report(start);
        CHECK(report.requests + report.dropped == 3'000);
        CHECK(report.requests > 0);
    }

    TEST_CASE("who finds another thread at the ghosts does not wait, and is counted") {
        what_if ghosts{{.capacity = 100'000}, start, 1};
        constexpr std::uint64_t most = 800'000;  // far more than two threads need to meet
        std::atomic<std::uint64_t> noted{0};
        std::atomic<bool> met{false};
        {
            std::vector<std::jthread> threads;
            for (std::uint64_t t = 0; t < 2; ++t) {
                threads.emplace_back([&, t] {
                    for (std::uint64_t n = 0; n < most && !met; ++n) {
                        // Not so fast that the sample is halved, and all within the hour.
                        const auto now = start + std::chrono::milliseconds{noted * 2};
                        ghosts.note(nth_key(1, n % (50 * (t + 1))), 1'000, now);
                        ++noted;
                        if (n % 256 == 0 && ghosts.report(now).dropped > 0) {
                            met = true;
                        }
                    }
                });
            }
        }
        const auto end = start + std::chrono::milliseconds{noted * 2};
        const auto report = ghosts.report(end);
        CHECK(report.dropped > 0);
        CHECK(report.requests + report.dropped == noted);
        // An hour later they are forgotten with the rest; those since the last sampled request are
        // told of until the next one has its minute.
        ghosts.note(nth_key(1, 1), 1'000, end);
        CHECK(ghosts.report(end + minutes{61}).dropped == 0);
    }
}
