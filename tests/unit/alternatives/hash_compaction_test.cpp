#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/hash_compaction.hpp"

namespace reprise::alternatives {

using namespace test;

TEST_SUITE("alternatives/hash_compaction") {
    TEST_CASE("an empty one has no key, and a cleared one is an empty one") {
        const compaction_size size{.slots = 100, .bits = 9};
        hash_compaction table{size};
        CHECK(!table.may_contain(nth_key(1, 1)));
        CHECK(table.rate() == 0);
        CHECK(table.insert(nth_key(1, 1)));
        CHECK(table.may_contain(nth_key(1, 1)));
        table.clear();
        CHECK(table == hash_compaction{size});
    }

    TEST_CASE("the measured rate is the predicted one, and at capacity at most that asked for") {
        constexpr std::uint64_t keys = 60'000;
        for (const double rate : {0.1, 0.01, 0.001}) {
            CAPTURE(rate);
            const auto size = compaction_size_for(keys, rate);
            hash_compaction table{size};
            for (const auto key : keys_of(1, keys)) {
                must_insert(table, key);
            }
            CHECK(false_negatives(table, keys_of(1, keys)) == 0);
            CHECK(compaction_rate(size, keys) <= rate);
            check_rate(table, table.rate());
        }
    }

    TEST_CASE("what was taken for another on the way in takes no slot, and is found all the same") {
        hash_compaction table{{.slots = 3'000, .bits = 4}};
        for (const auto key : keys_of(1, 2'000)) {
            must_insert(table, key);
        }
        CHECK(table.keys() < 2'000);
        CHECK(false_negatives(table, keys_of(1, 2'000)) == 0);
    }

    TEST_CASE("a full table refuses what it would have to push out") {
        hash_compaction table{{.slots = 50, .bits = 30}};
        const auto taken = fill(table, 1'000);
        CHECK(taken <= 50);
        CHECK(taken >= 45);
        CHECK(false_negatives(table, keys_of(1, taken)) == 0);
    }
}

}  // namespace reprise::alternatives
