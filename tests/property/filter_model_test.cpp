// Filters against an exact model, over schedules made from seeds.
//
// The model is the multiset of keys. Whatever was done to a filter (inserted, erased, united,
// folded, cleared), it must be bit for bit the filter that the model's keys make when they are
// inserted one by one into a new one. No false negative follows from that; it is checked beside it,
// for a mistake that the new filter would make as well.

#include "filter/bit_changes.hpp"
#include "filter/bloom.hpp"
#include "filter/counting.hpp"
#include "filter/estimators.hpp"
#include "filter/partitioned.hpp"
#include "filter/split_block.hpp"
#include "filter/standard.hpp"
#include "tests/support/must.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

namespace reprise::filter::test::of_filter_model {

using test::nth_key;

namespace {

using multiset = std::unordered_map<std::uint64_t, unsigned>;

/// A source of small numbers.
class chance {
public:
    explicit chance(std::uint64_t seed) : random_{seed} {}
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    bool one_in(std::uint64_t times) { return below(times) == 0; }

private:
    std::mt19937_64 random_;
};

template <class Filter>
Filter made_of(const Filter& empty, const multiset& keys, std::uint64_t family) {
    auto filter = empty;
    for (const auto& [key, times] : keys) {
        for (unsigned i = 0; i < times; ++i) {
            filter.insert(nth_key(family, key));
        }
    }
    return filter;
}

template <class Filter>
std::uint64_t missing(const Filter& filter, const multiset& keys, std::uint64_t family) {
    std::uint64_t out = 0;
    for (const auto& [key, times] : keys) {
        out += filter.may_contain(nth_key(family, key)) ? 0 : 1;
    }
    return out;
}

/// The same schedule for every filter that is a set: insert, unite, fold, clear.
/// `empty_of(half)` makes an empty filter as large as the first one, halved so often.
template <class Filter>
void live_as_a_set(std::uint64_t seed, const std::function<Filter(unsigned halved)>& empty_of) {
    chance random{seed};
    const std::uint64_t universe = 1 + random.below(600);
    unsigned halved = 0;
    auto filter = empty_of(halved);
    multiset keys;
    for (int step = 0; step < 400; ++step) {
        CAPTURE(step);
        const auto key = random.below(universe);
        if (random.one_in(150)) {
            filter.clear();
            keys.clear();
        } else if (random.one_in(60)) {
            auto other = empty_of(halved);
            for (std::uint64_t n = random.below(40); n > 0; --n) {
                const auto theirs = random.below(universe);
                other.insert(nth_key(seed, theirs));
                keys[theirs] = 1;
            }
            REQUIRE(filter.unite(other).has_value());
        } else if (random.one_in(80)) {
            auto folded = filter.folded();
            if (folded) {
                filter = std::move(*folded);
                ++halved;
            }
        } else if (random.one_in(2)) {
            const bool before = filter.may_contain(nth_key(seed, key));
            MUST((before || keys.count(key) == 0));
            MUST(filter.insert_and_test(nth_key(seed, key)) == before);
            keys[key] = 1;
        } else {
            MUST((filter.may_contain(nth_key(seed, key)) || keys.count(key) == 0));
        }
    }
    CHECK(missing(filter, keys, seed) == 0);
    CHECK(filter == made_of(empty_of(halved), keys, seed));
}

}  // namespace

TEST_SUITE("property/filter_model") {
    TEST_CASE("a standard filter is what its keys make, whatever the schedule") {
        for (std::uint64_t seed = 1; seed <= 300; ++seed) {
            CAPTURE(seed);
            chance random{seed * 7};
            const auto probes = 1 + static_cast<unsigned>(random.below(12));
            const auto bits = (probes + random.below(1'500)) << random.below(4);
            live_as_a_set<standard_bloom>(seed, [&](unsigned halved) {
                return standard_bloom{{bits >> halved, probes}};
            });
        }
    }

    TEST_CASE("a partitioned filter is what its keys make, whatever the schedule") {
        for (std::uint64_t seed = 1; seed <= 300; ++seed) {
            CAPTURE(seed);
            chance random{seed * 7};
            const auto probes = 1 + static_cast<unsigned>(random.below(12));
            const auto partition = (1 + random.below(300)) << random.below(4);
            live_as_a_set<partitioned_bloom>(seed, [&](unsigned halved) {
                return partitioned_bloom{{(partition >> halved) * probes, probes}};
            });
        }
    }

    TEST_CASE("a split-block filter is what its keys make, whatever the schedule") {
        for (std::uint64_t seed = 1; seed <= 300; ++seed) {
            CAPTURE(seed);
            chance random{seed * 7};
            const auto blocks = (1 + random.below(20)) << random.below(4);
            live_as_a_set<split_block_bloom>(
                seed, [&](unsigned halved) { return split_block_bloom{blocks >> halved}; });
        }
    }

    TEST_CASE("a blocked filter misses nothing that was inserted, whatever the schedule") {
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            CAPTURE(seed);
            chance random{seed};
            blocked_bloom filter{1 + random.below(30)};
            multiset keys;
            for (int step = 0; step < 500; ++step) {
                const auto key = random.below(400);
                if (random.one_in(200)) {
                    filter.clear();
                    keys.clear();
                } else if (random.one_in(2)) {
                    const bool before = filter.may_contain(nth_key(seed, key));
                    MUST((before || keys.count(key) == 0));
                    MUST(filter.insert_and_test(nth_key(seed, key)) == before);
                    keys[key] = 1;
                }
            }
            CHECK(missing(filter, keys, seed) == 0);
        }
    }

    TEST_CASE("a counting filter is what the keys still inside make, whatever the schedule") {
        for (std::uint64_t seed = 1; seed <= 300; ++seed) {
            CAPTURE(seed);
            chance random{seed};
            const auto probes = 1 + static_cast<unsigned>(random.below(8));
            auto bits = (probes + 300 + random.below(2'000)) << random.below(3);
            const auto universe = 1 + random.below(bits / probes);
            counting_bloom filter{{bits, probes}};
            std::optional<bit_changes> published{std::in_place, bloom_size{bits, probes}};
            const auto turn = [&](std::uint64_t place) { published->turn(place); };
            multiset keys;
            for (int step = 0; step < 600; ++step) {
                CAPTURE(step);
                const auto key = random.below(universe);
                const auto hash = nth_key(seed, key);
                auto& times = keys[key];
                if (random.one_in(250)) {
                    filter.clear();
                    keys.clear();
                    published.emplace(filter.size());
                } else if (random.one_in(100)) {
                    counting_bloom other{filter.size()};
                    other.insert(hash);
                    ++times;
                    REQUIRE(filter.merge(other).has_value());
                    published.emplace(filter.snapshot());
                } else if (random.one_in(150)) {
                    if (auto folded = filter.folded()) {
                        filter = std::move(*folded);
                        bits /= 2;
                        published.emplace(filter.snapshot());
                    }
                } else if (random.one_in(2)) {
                    filter.insert(hash, turn);
                    ++times;
                } else if (times > 0) {
                    MUST(filter.erase(hash, turn));
                    --times;
                } else if (!filter.may_contain(hash)) {
                    MUST(!filter.erase(hash, turn));
                }
                if (filter.stuck() > 0) {
                    break;  // what sticks is no longer exact; the next case has that
                }
            }
            std::erase_if(keys, [](const auto& entry) { return entry.second == 0; });
            CHECK(missing(filter, keys, seed) == 0);
            CHECK(published->publish() == filter.snapshot());
            if (filter.stuck() == 0) {
                const counting_bloom empty{{bits, probes}};
                const auto expected = made_of(empty, keys, seed);
                CHECK(filter == expected);
                CHECK(filter.snapshot() == made_of(standard_bloom{{bits, probes}}, keys, seed));
            }
        }
    }

    TEST_CASE("counters that stick leave bits on and lose no key") {
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            CAPTURE(seed);
            chance random{seed};
            const bloom_size size{20 + random.below(200), 3};
            counting_bloom filter{size};
            multiset keys;
            // Crowded enough to stick, then emptied to the last key.
            for (int step = 0; step < 3'000; ++step) {
                const auto key = random.below(100);
                if (random.below(3'000) > static_cast<std::uint64_t>(step)) {
                    filter.insert(nth_key(seed, key));
                    ++keys[key];
                } else if (keys[key] > 0) {
                    MUST(filter.erase(nth_key(seed, key)));
                    --keys[key];
                }
            }
            CHECK(filter.stuck() > 0);
            std::erase_if(keys, [](const auto& entry) { return entry.second == 0; });
            CHECK(missing(filter, keys, seed) == 0);
            for (const auto& [key, times] : keys) {
                for (unsigned i = 0; i < times; ++i) {
                    MUST(filter.erase(nth_key(seed, key)));
                }
            }
            CHECK(filter.bits_on() == filter.stuck());
        }
    }

    TEST_CASE("unions and intersections of models are found where the bits are combined") {
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            CAPTURE(seed);
            chance random{seed};
            const bloom_size size{500 + random.below(4'000), 4};
            standard_bloom a{size};
            standard_bloom b{size};
            multiset both;
            multiset either;
            for (std::uint64_t key = 0; key < 200; ++key) {
                const auto where = random.below(4);  // nowhere, in a, in b, in both
                if (where % 2 == 1) {
                    a.insert(nth_key(seed, key));
                }
                if (where >= 2) {
                    b.insert(nth_key(seed, key));
                }
                if (where != 0) {
                    either[key] = 1;
                }
                if (where == 3) {
                    both[key] = 1;
                }
            }
            // Of 200 filters none may be further off than six sigma.
            const auto pair = compare(a, b).value();
            const auto common = estimate_intersection(pair);
            CHECK(std::abs(common.keys - static_cast<double>(both.size())) <
                  6 * common.standard_error + 1);
            auto united = a;
            REQUIRE(united.unite(b).has_value());
            CHECK(united == made_of(standard_bloom{size}, either, seed));
            REQUIRE(a.intersect(b).has_value());
            CHECK(missing(a, both, seed) == 0);
        }
    }
}

}  // namespace reprise::filter::test::of_filter_model
