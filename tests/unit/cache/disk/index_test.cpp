#include "proxy/cache/disk/index.hpp"
#include "tests/support/watched_threads.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::disk {

namespace {

filter::key_hash nth(std::uint64_t n) {
    return filter::test::nth_key(3, n);
}

index_entry entry(std::uint64_t n) {
    return {.place = {.segment = static_cast<std::uint16_t>(n % 60'000),
                      .offset = (n * 7 % (1u << 24)) * alignment},
            .bytes = (1 + n % ((1u << 18) - 1)) * alignment,
            .kind = static_cast<record_kind>(1 + n % 5),
            .uses = static_cast<std::uint8_t>(n % 8),
            .expiry = static_cast<std::uint16_t>(n)};
}

}  // namespace

TEST_SUITE("cache/disk/index") {
    TEST_CASE("a record is found as it was put, to the ends of every field") {
        record_index index;
        const index_entry most{.place = {.segment = 65535, .offset = (256u << 20) - alignment},
                               .bytes = (4u << 20) - alignment,
                               .kind = record_kind::variants,
                               .uses = 7,
                               .expiry = 65535};
        index.put(nth(1), most);
        index.put(nth(2), entry(0));
        CHECK(index.find(nth(1)) == most);
        CHECK(index.find(nth(2)) == entry(0));
        CHECK_FALSE(index.find(nth(3)).has_value());
        CHECK(index.records() == 2);
    }

    TEST_CASE("the newest put wins, and loading only fills what is free") {
        record_index index;
        CHECK_FALSE(index.put(nth(1), entry(1)).has_value());
        CHECK(index.put(nth(1), entry(2)) == entry(1));
        CHECK_FALSE(index.put_if_absent(nth(1), entry(3)));
        CHECK(index.find(nth(1)) == entry(2));
        CHECK(index.put_if_absent(nth(2), entry(3)));
        CHECK(index.find(nth(2)) == entry(3));
    }

    TEST_CASE("only the very record that is meant is erased, moved, counted or dated") {
        record_index index;
        index.put(nth(1), entry(8));
        const auto other = entry(9).place;
        CHECK_FALSE(index.erase(nth(1), other));
        CHECK_FALSE(index.replace(nth(1), other, entry(1)));
        CHECK_FALSE(index.set_expiry(nth(1), other, 5));
        CHECK(index.count_use(nth(1), other) == 0);
        CHECK(index.find(nth(1)) == entry(8));

        CHECK(index.set_expiry(nth(1), entry(8).place, 5));
        CHECK(index.count_use(nth(1), entry(8).place) == 0);
        CHECK(index.count_use(nth(1), entry(8).place) == 1);
        CHECK(index.find(nth(1))->uses == 2);
        CHECK(index.find(nth(1))->expiry == 5);
        CHECK(index.find(nth(1))->place == entry(8).place);
        CHECK(index.replace(nth(1), entry(8).place, entry(11)));
        CHECK(index.find(nth(1)) == entry(11));
        CHECK(index.erase(nth(1), entry(11).place));
        CHECK_FALSE(index.find(nth(1)).has_value());
    }

    TEST_CASE("uses stick at seven") {
        record_index index;
        index.put(nth(1), entry(8));
        for (unsigned i = 0; i < 20; ++i) {
            CHECK(index.count_use(nth(1), entry(8).place) == std::min(i, 7u));
        }
        CHECK(index.find(nth(1)) == index_entry{.place = entry(8).place,
                                                .bytes = entry(8).bytes,
                                                .kind = entry(8).kind,
                                                .uses = 7,
                                                .expiry = entry(8).expiry});
    }

    TEST_CASE("it does what a map does, through growing and shrinking" *
              reprise::test::of_one_thread()) {
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            record_index index;
            std::map<std::uint64_t, index_entry> model;
            const std::uint64_t keys = 20'000;
            for (int i = 0; i < 120'000; ++i) {
                const auto n = random() % keys;
                // First mostly puts, then mostly erasures.
                const bool putting = random() % 8 < (i < 60'000 ? 6u : 1u);
                const auto known = model.find(n);
                if (putting) {
                    const auto made = entry(random());
                    const auto old = index.put(nth(n), made);
                    REQUIRE(old.has_value() == (known != model.end()));
                    model[n] = made;
                } else {
                    const auto old = index.erase(nth(n));
                    REQUIRE(old.has_value() == (known != model.end()));
                    if (old) {
                        REQUIRE(*old == known->second);
                        model.erase(known);
                    }
                }
            }
            CHECK(index.records() == model.size());
            for (std::uint64_t n = 0; n < keys; ++n) {
                const auto known = model.find(n);
                const auto found = index.find(nth(n));
                REQUIRE(found.has_value() == (known != model.end()));
                REQUIRE((!found || *found == known->second));
            }
        }
    }

    TEST_CASE("keys that crowd at one place are all found") {
        record_index index;
        std::vector<filter::key_hash> keys;
        for (std::uint64_t i = 0; i < 300; ++i) {
            // One shard, tags that differ in their lowest bits: all want the same slot.
            keys.push_back({.low = 5, .high = ~std::uint64_t{0} - (i << 16)});
            index.put(keys.back(), entry(i));
        }
        for (std::uint64_t i = 0; i < 300; i += 2) {
            CHECK(index.erase(keys[i]) == entry(i));
        }
        for (std::uint64_t i = 0; i < 300; ++i) {
            CHECK(index.find(keys[i]).has_value() == (i % 2 == 1));
        }
    }

    TEST_CASE("at most 24 bytes a record from ten thousand on, while growing and shrinking" *
              reprise::test::of_one_thread()) {
        // The counts are those of a fixed sequence of keys: nothing here is left to chance.
        record_index index;
        double most = 0, sum = 0, count = 0;
        const auto weigh = [&] {
            const auto share = static_cast<double>(index.bytes()) /
                               static_cast<double>(index.records());
            most = std::max(most, share);
            sum += share;
            count += 1;
        };
        std::uint64_t n = 0;
        for (std::uint64_t next = 10'000; next < 500'000; next += next / 16) {
            for (; n < next; ++n) {
                index.put(nth(n), entry(n));
            }
            weigh();
        }
        MESSAGE("bytes a record: " << sum / count << " on average, " << most << " at most");
        CHECK(most <= 24);
        for (; n > 10'000; --n) {
            index.erase(nth(n - 1));
            if (n % 1000 == 0) {
                weigh();
            }
        }
        CHECK(most <= 24);
    }

    TEST_CASE("a walk shard by shard sees every record once, by what the index knows of its key") {
        record_index index;
        std::set<std::pair<std::uint64_t, std::uint64_t>> expected, seen;
        for (std::uint64_t n = 0; n < 5000; ++n) {
            index.put(nth(n), entry(n));
            const auto partial = record_index::partial(nth(n));
            expected.insert({partial.low, partial.high});
        }
        std::uint64_t calls = 0;
        for (std::size_t shard = 0; shard < record_index::shards; ++shard) {
            index.for_each(shard, [&](const filter::key_hash& key, const index_entry&) {
                seen.insert({key.low, key.high});
                ++calls;
            });
        }
        CHECK(seen == expected);
        CHECK(calls == 5000);
    }

    TEST_CASE("threads that put, look, count and erase leave what they agree on") {
        record_index index;
        constexpr std::uint64_t each = 4000;
        std::vector<std::jthread> threads;
        for (std::uint64_t t = 0; t < 4; ++t) {
            threads.emplace_back([&index, t] {
                for (std::uint64_t i = 0; i < each; ++i) {
                    const auto n = t * each + i;
                    index.put(nth(n), entry(n));
                    (void)index.find(nth(n ^ 1));
                    index.count_use(nth(n), entry(n).place);
                    if (i % 2 == 1) {
                        index.erase(nth(n), entry(n).place);
                    }
                }
            });
        }
        threads.clear();
        CHECK(index.records() == 2 * each);
        for (std::uint64_t n = 0; n < 4 * each; ++n) {
            REQUIRE(index.find(nth(n)).has_value() == (n % 2 == 0));
        }
    }
}

}  // namespace reprise::proxy::cache::disk
