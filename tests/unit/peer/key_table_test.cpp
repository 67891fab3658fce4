#include "proxy/peer/key_table.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <random>
#include <vector>

namespace reprise::proxy::peer::test::of_key_table {
namespace {

using namespace std::chrono_literals;
using filter::test::nth_key;

constexpr wall_time now{1'763'668'089'500ms};

// What the table keeps of a key.
std::pair<std::uint64_t, std::uint64_t> seen_of(const filter::key_hash& key) {
    return {key.low & 255, key.high >> 24};
}

}  // namespace

TEST_SUITE("peer/key_table") {
    TEST_CASE("a table is what a map would be, whatever is put and erased") {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            key_table table{true};
            std::map<std::pair<std::uint64_t, std::uint64_t>, key_facts> model;
            for (int step = 0; step < 40'000; ++step) {
                const auto key = nth_key(seed, random() % 6000);
                if (random() % 5 < 3) {
                    key_facts facts{.name = random(),
                                    .holders = static_cast<std::uint8_t>(1 + random() % 7),
                                    .listed = random() % 2 == 0,
                                    .until = {static_cast<std::uint32_t>(random() % (1 << 21)),
                                              static_cast<std::uint32_t>(random() % (1 << 21))}};
                    facts.squid[3] = static_cast<std::byte>(random());
                    table.put(key, facts);
                    model[seen_of(key)] = facts;
                } else {
                    table.erase(key);
                    model.erase(seen_of(key));
                }
            }
            CHECK(table.keys() == model.size());
            for (std::uint64_t i = 0; i < 6000; ++i) {
                const auto key = nth_key(seed, i);
                const auto expected = model.find(seen_of(key));
                key_facts facts;
                REQUIRE(table.find(key, facts) == (expected != model.end()));
                if (expected != model.end()) {
                    CHECK(facts.name == expected->second.name);
                    CHECK(facts.holders == expected->second.holders);
                    CHECK(facts.listed == expected->second.listed);
                    CHECK(facts.until == expected->second.until);
                    CHECK(facts.squid == expected->second.squid);
                }
            }
        }
    }

    TEST_CASE("visits see each key once, and may erase") {
        key_table table{false};
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            table.put(nth_key(1, i), {.name = i, .holders = 1});
        }
        std::vector<int> seen(20'000);
        for (std::size_t shard = 0; shard < key_table::shards; ++shard) {
            table.visit(shard, [&](key_facts& facts) {
                ++seen[facts.name];
                facts.listed = true;
                return true;
            });
        }
        CHECK(seen == std::vector<int>(20'000, 1));
        for (std::size_t shard = 0; shard < key_table::shards; ++shard) {
            table.visit(shard, [&](const key_facts& facts) {
                CHECK(facts.listed);
                return facts.name % 3 != 0;
            });
        }
        for (std::uint64_t i = 0; i < 20'000; ++i) {
            key_facts facts;
            REQUIRE(table.find(nth_key(1, i), facts) == (i % 3 != 0));
        }
    }

    TEST_CASE("only what the disk's index knows of a key is looked at") {
        key_table table{false};
        const auto key = nth_key(1, 1);
        table.put(key, {.name = 7, .holders = 2});
        const filter::key_hash partial{.low = key.low & 255, .high = key.high >> 16 << 16};
        key_facts facts;
        CHECK(table.find(partial, facts));
        table.erase(partial);
        CHECK(table.keys() == 0);
    }

    TEST_CASE("a key takes 22 to 29 bytes from ten thousand on") {
        key_table table{false};
        std::uint64_t keys = 0;
        for (const auto upto : {10'000u, 12'000u, 15'000u, 20'000u, 30'000u, 100'000u, 300'000u}) {
            for (; keys < upto; ++keys) {
                table.put(nth_key(2, keys), {.name = keys, .holders = 1});
            }
            CAPTURE(upto);
            const auto each = static_cast<double>(table.bytes()) / upto;
            CHECK(each > 18);
            CHECK(each < 29);
            MESSAGE(upto << " keys: " << each << " bytes each");
        }
    }

    TEST_CASE("a time is rounded down, and ahead until its unit begins") {
        const auto packed = key_table::pack_time(now + 100s, now);
        REQUIRE(packed != 0);
        CHECK(key_table::is_ahead(packed, now));
        CHECK(key_table::is_ahead(packed, now + 90s));
        CHECK_FALSE(key_table::is_ahead(packed, now + 100s));
        CHECK(key_table::pack_time(now, now) == 0);
        CHECK(key_table::pack_time(now - 5s, now) == 0);
        CHECK_FALSE(key_table::is_ahead(0, now));
    }

    TEST_CASE("far times count as 90 days, at every phase of the count") {
        for (int days = 0; days < 400; days += 7) {
            CAPTURE(days);
            const auto then = now + std::chrono::hours{24} * days;
            const auto packed = key_table::pack_time(then + std::chrono::hours{24} * 1000, then);
            CHECK(key_table::is_ahead(packed, then));
            CHECK(key_table::is_ahead(packed, then + std::chrono::hours{24} * 89));
            CHECK_FALSE(key_table::is_ahead(packed, then + std::chrono::hours{24} * 91));
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_key_table
