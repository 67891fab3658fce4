#pragma once
// How a filter is timed: the same keys, the same loops and the same dropping of outliers for all.
//
// Keys are made beforehand, so that no time but the filter's own is in a figure. Inserts are of new
// keys. Queries go through a ring of keys long enough that neither caches nor the branch predictor
// learn it. Two kinds of query time:
//
//   hit, miss   one query after the other, independent: the processor overlaps as many as it can,
//               as when a batch of keys is asked
//   alone       which key is next depends on the answer before: one query from hash to answer, as
//               when a proxy's worker asks for the request at hand; hits and misses in no order, so
//               that the answer can't be guessed and the next query begun before it is there
//
// Ten trials each, the two best and the two worst dropped, the mean of the rest.

#include "filter/key_hash.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::bench {

using filter::key_hash;

inline constexpr std::size_t trials = 10;
inline constexpr std::size_t dropped = 2;  // at either end

/// The `i`th key of a family; families do not meet.
[[nodiscard]] key_hash nth_key(std::uint64_t family, std::uint64_t i) noexcept;

/// What all filters of one table are given.
struct workload {
    /// @pre keys > 0
    workload(std::uint64_t keys, double rate);

    std::uint64_t keys;            ///< inserted: family 1, from 0
    double rate;                   ///< of false positives, asked for
    std::vector<key_hash> known;   ///< a ring of inserted keys, in no order
    std::vector<key_hash> absent;  ///< a ring as long of keys never inserted
    std::vector<key_hash> mixed;   ///< half of each, in no order
};

/// One line of a table. Times in nanoseconds an operation.
struct figures {
    std::string name;
    double insert = 0;  ///< for what is built at once, the whole building by its keys
    double hit = 0;
    double miss = 0;
    double alone = 0;
    double found = 0;  ///< share of the known keys; below 1 for filters that forget
    double rate = 0;   ///< measured
    double bits_a_key = 0;
};

/// Keeps the optimiser from dropping what was computed for nothing else.
void sink(std::uint64_t value) noexcept;

/// A zero that the optimiser does not know to be one.
[[nodiscard]] std::uint64_t unknown_zero() noexcept;

template <class Operation>
double seconds(Operation operation) {
    const auto begin = std::chrono::steady_clock::now();
    operation();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return took.count();
}

/// The mean of the trials between the outliers.
[[nodiscard]] double middle_mean(std::array<double, trials> taken) noexcept;

template <class Trial>
double middle_of(Trial trial) {
    std::array<double, trials> taken{};
    (void)trial();  // warm
    for (auto& each : taken) {
        each = trial();
    }
    return middle_mean(taken);
}

/// One trial: nanoseconds a query of `ring`, independent of one another.
template <class Ask>
double overlapped_ns(std::span<const key_hash> ring, const Ask& ask) {
    std::uint64_t sum = 0;
    const auto took = seconds([&] {
        for (const auto key : ring) {
            sum += ask(key);
        }
    });
    sink(sum);
    return took * 1e9 / static_cast<double>(ring.size());
}

/// One trial: nanoseconds a query when each waits for the one before.
template <class Ask>
double alone_ns(std::span<const key_hash> ring, const Ask& ask) {
    const auto zero = unknown_zero();
    const auto count = std::min<std::size_t>(ring.size(), 1 << 18);
    std::uint64_t sum = 0;
    const auto took = seconds([&] {
        for (std::size_t i = 0; i < count; ++i) {
            const auto& next = ring[i + (sum & zero)];
            sum += ask(next);
        }
    });
    sink(sum);
    return took * 1e9 / static_cast<double>(count);
}

/// Hits, misses, single queries and the measured rate of a filter that holds the keys already.
template <class Ask>
void ask_all(figures& row, const workload& work, const Ask& ask) {
    row.hit = middle_of([&] { return overlapped_ns(work.known, ask); });
    row.miss = middle_of([&] { return overlapped_ns(work.absent, ask); });
    row.alone = middle_of([&] { return alone_ns(work.mixed, ask); });
    std::uint64_t found = 0;
    for (const auto key : work.known) {
        found += ask(key) ? 1 : 0;
    }
    row.found = static_cast<double>(found) / static_cast<double>(work.known.size());
    constexpr std::uint64_t strangers = 2'000'000;
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < strangers; ++i) {
        wrong += ask(nth_key(3, i)) ? 1 : 0;
    }
    row.rate = static_cast<double>(wrong) / static_cast<double>(strangers);
}

/// Inserts all keys; nanoseconds an insert. Keys are made a few at a time, outside the clock.
template <class Insert>
double insert_ns(const workload& work, const Insert& insert) {
    constexpr std::uint64_t batch = 8'192;
    std::vector<key_hash> keys;
    double sum = 0;
    for (std::uint64_t first = 0; first < work.keys; first += batch) {
        keys.clear();
        for (auto i = first; i < std::min(first + batch, work.keys); ++i) {
            keys.push_back(nth_key(1, i));
        }
        sum += seconds([&] {
            for (const auto key : keys) {
                insert(key);
            }
        });
    }
    return sum * 1e9 / static_cast<double>(work.keys);
}

/// Trials of building are dear: fewer of them for many keys, and the best counts.
[[nodiscard]] int build_trials(std::uint64_t keys) noexcept;

[[nodiscard]] double bits_a_key(std::uint64_t bytes, std::uint64_t keys) noexcept;

/// One filter of a table: a name, and how to run it.
struct subject {
    std::string name;
    std::function<figures(const workload&)> run;
};

/// A filter that takes keys one by one. `make(keys, rate)` gives an empty one; `insert(filter,
/// key)` and `ask(filter, key)` say how.
template <class Make, class Insert, class Ask>
subject growing(std::string name, Make make, Insert insert, Ask ask) {
    const auto run = [=](const workload& work) {
        figures row{.name = name, .insert = 1e300};
        auto filter = make(work.keys, work.rate);
        for (int i = 0; i < build_trials(work.keys); ++i) {
            filter = make(work.keys, work.rate);
            const auto took = insert_ns(work, [&](key_hash key) { insert(filter, key); });
            row.insert = std::min(row.insert, took);
        }
        ask_all(row, work, [&](key_hash key) -> bool { return ask(filter, key); });
        row.bits_a_key = bits_a_key(filter.bytes(), work.keys);
        return row;
    };
    return {name, run};
}

/// The same with the face that most filters have.
template <class Make>
subject growing(std::string name, Make make) {
    return growing(
        std::move(name),
        make,
        [](auto& filter, key_hash key) { (void)filter.insert(key); },
        [](const auto& filter, key_hash key) { return filter.may_contain(key); });
}

/// A filter made of all keys at once: `build(keys, rate)` gives it.
template <class Build>
subject built(std::string name, Build build) {
    const auto run = [=](const workload& work) {
        std::vector<key_hash> keys;
        keys.reserve(work.keys);
        for (std::uint64_t i = 0; i < work.keys; ++i) {
            keys.push_back(nth_key(1, i));
        }
        figures row{.name = name, .insert = 1e300};
        auto filter = build(std::span<const key_hash>{keys}, work.rate);
        for (int i = 0; i < build_trials(work.keys); ++i) {
            const auto took = seconds([&] { filter = build(keys, work.rate); });
            row.insert = std::min(row.insert, took * 1e9 / static_cast<double>(work.keys));
        }
        ask_all(row, work, [&](key_hash key) -> bool { return filter.may_contain(key); });
        row.bits_a_key = bits_a_key(filter.bytes(), work.keys);
        return row;
    };
    return {name, run};
}

}  // namespace reprise::bench
