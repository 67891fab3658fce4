#pragma once
// What every filter that takes keys and gives them back is tried with.

#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

namespace reprise::alternatives::test {

using filter::key_hash;
using filter::test::nth_key;

inline std::vector<key_hash> keys_of(std::uint64_t family, std::uint64_t count) {
    std::vector<key_hash> keys(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        keys[i] = nth_key(family, i);
    }
    return keys;
}

/// Inserted keys that are not found: none, whatever the filter.
template <class Filter>
std::uint64_t false_negatives(const Filter& filter, const std::vector<key_hash>& keys) {
    std::uint64_t missed = 0;
    for (const auto key : keys) {
        missed += filter.may_contain(key) ? 0 : 1;
    }
    return missed;
}

/// Asks 300,000 strangers; the share found must be `rate` within five sigma of asking and one in
/// a hundred for this filter being one of many. Seeds are fixed, so it passes always or never.
template <class Filter>
void check_rate(const Filter& filter, double rate) {
    constexpr std::uint64_t asked = 300'000;
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < asked; ++i) {
        found += filter.may_contain(nth_key(77, i)) ? 1 : 0;
    }
    const auto expected = rate * asked;
    CAPTURE(found);
    CAPTURE(expected);
    CHECK(std::abs(static_cast<double>(found) - expected) <
          5 * std::sqrt(expected) + expected * 0.01);
}

/// Inserts until a key is refused, or `most` are in; how many are.
template <class Filter>
std::uint64_t fill(Filter& filter, std::uint64_t most) {
    for (std::uint64_t i = 0; i < most; ++i) {
        if (!filter.insert(nth_key(1, i))) {
            return i;
        }
    }
    return most;
}

/// Inserts a key that there must be room for.
template <class Filter>
void must_insert(Filter& filter, key_hash key) {
    if constexpr (std::is_void_v<decltype(filter.insert(key))>) {
        filter.insert(key);
    } else {
        REQUIRE(filter.insert(key));
    }
}

/// Inserts and erases at random, at most `room` keys held, of `variety` that there are: some come
/// again while they are held. Never misses one. In the end everything is erased.
template <class Filter>
void live_a_life(Filter& filter, std::size_t room, std::uint64_t variety) {
    std::mt19937_64 random{room};
    std::vector<key_hash> held;
    std::uint64_t missed = 0;
    std::uint64_t refused = 0;
    for (unsigned step = 0; step < 60'000; ++step) {
        const bool insert = held.empty() || (held.size() < room && random() % 5 < 3);
        if (insert) {
            const auto key = nth_key(room, random() % variety);
            must_insert(filter, key);
            held.push_back(key);
        } else {
            const auto which = random() % held.size();
            refused += filter.erase(held[which]) ? 0 : 1;
            held[which] = held.back();
            held.pop_back();
        }
        if (!held.empty()) {
            missed += filter.may_contain(held[random() % held.size()]) ? 0 : 1;
        }
    }
    CHECK(missed == 0);
    CHECK(refused == 0);
    CHECK(false_negatives(filter, held) == 0);
    for (const auto key : held) {
        CHECK(filter.erase(key));
    }
}

}  // namespace reprise::alternatives::test
