#include "proxy/cache/memory/entry_table.hpp"
#include "tests/unit/cache/responses.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_entry_table {
namespace {

filter::key_hash key(std::uint64_t number) {
    return filter::test::nth_key(9, number);
}

std::vector<const memory_entry*> under(const entry_table& table, const filter::key_hash& of) {
    std::vector<const memory_entry*> all;
    for (const auto& one : table.find(of)) {
        all.push_back(&one);
    }
    return all;
}

}  // namespace

TEST_SUITE("cache/memory/entry_table") {
    TEST_CASE("what was added is found under its key, in the order in which it came") {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            entry_table table;
            std::map<std::uint64_t, std::vector<const memory_entry*>> model;
            for (int step = 0; step < 3'000; ++step) {
                const auto number = random() % 700;
                auto& known = model[number];
                if (!known.empty() && random() % 3 == 0) {
                    const auto at = known.begin() +
                                    static_cast<std::ptrdiff_t>(random() % known.size());
                    auto all = table.find(key(number));
                    const auto gone = std::find_if(
                        all.begin(), all.end(), [&](const auto& one) { return &one == *at; });
                    REQUIRE(gone != all.end());
                    CHECK(table.take(*gone).get() == *at);
                    known.erase(at);
                } else if (known.size() < 4) {
                    known.push_back(&table.add(memory_entry::make(key(number), "http://a/")));
                }
                if (step % 100 == 0) {
                    for (const auto& [each, entries] : model) {
                        REQUIRE(under(table, key(each)) == entries);
                    }
                }
            }
        }
    }

    TEST_CASE("keys that share a bucket for ever are told apart") {
        entry_table table;
        const filter::key_hash one{7, 1};
        const filter::key_hash other{7, 2};
        auto& first = table.add(memory_entry::make(one, "http://a/"));
        auto& second = table.add(memory_entry::make(other, "http://b/"));
        auto& third = table.add(memory_entry::make(one, "http://a/"));
        CHECK(under(table, one) == std::vector<const memory_entry*>{&first, &third});
        CHECK(under(table, other) == std::vector<const memory_entry*>{&second});
        CHECK(table.find(one).size() == 2);
        CHECK(table.find({7, 3}).empty());
    }

    TEST_CASE("an empty table holds nothing") {
        const entry_table table;
        CHECK(table.find(key(1)).empty());
    }

    TEST_CASE("an entry has its URL, of any length") {
        for (const std::size_t size : {0u, 1u, 7u, 8u, 100u, 70'000u}) {
            const std::string url(size, 'u');
            const auto made = memory_entry::make(key(1), url);
            CHECK(made->url() == url);
            CHECK(made->key == key(1));
            CHECK(!made->was_found());
        }
    }

    TEST_CASE("an entry owns its response, and none of its numbers reaches another's bits") {
        const stored_ptr first = response({.content = "first"}),
                         second = response({.content = "second"});
        const auto one = memory_entry::make(key(1), "/"), other = memory_entry::make(key(2), "/");
        CHECK(one->exchange(first) == nullptr);
        one->set_next(other.get());
        one->note_found();
        constexpr auto most = memory_entry::most_checked;
        for (const std::uint64_t epoch :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 20, most - 1, most}) {
            one->note_checked(epoch);
            CHECK(one->checked() == epoch);
            CHECK(&one->response() == first.get());
            CHECK(one->next() == other.get());
            CHECK(one->was_found());
        }
        one->note_checked(most + 1);
        CHECK(one->checked() == most);
        CHECK(one->exchange(second) == first);
        CHECK(one->held_response() == second);
        one->set_next(nullptr);
        CHECK(one->next() == nullptr);
        CHECK(other->checked() == 0);
        CHECK(!other->was_found());
    }

    TEST_CASE("a charge beyond what can be told counts as the most") {
        evictable one;
        for (const std::uint64_t bytes :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xffff'ffff}, packed_bytes::most}) {
            one.charge = bytes;
            CHECK(one.charge == bytes);
        }
        one.charge = packed_bytes::most + 1;
        CHECK(one.charge == packed_bytes::most);
    }
}

}  // namespace reprise::proxy::cache::test::of_entry_table
