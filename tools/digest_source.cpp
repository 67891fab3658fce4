// What a digest could be made from, and what it would be on the wire: the counting Bloom filter and
// the compressed bits that Reprise publishes, beside the structures of tools/alternatives.
//
//     digest_source                10^6 keys at a rate of 1 %
//     digest_source 100000 0.001   so many, at that rate
//
// A source holds the keys of a store in which one leaves for each that comes. After as many changes
// as there are keys, one in a hundred leaves and comes once more: that is the delta. Nanoseconds
// are the best of five parts of those changes, on one thread. Static structures have no changes:
// they are built anew, and their delta is the whole.

#include "filter/counting.hpp"
#include "filter/digest.hpp"
#include "filter/digest_wire.hpp"
#include "tools/alternatives/cuckoo_filter.hpp"
#include "tools/alternatives/dleft_filter.hpp"
#include "tools/alternatives/fuse_filter.hpp"
#include "tools/alternatives/golomb_set.hpp"
#include "tools/alternatives/variable_counting.hpp"
#include "tools/alternatives/xor_filter.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

namespace filter = reprise::filter;
namespace alternatives = reprise::alternatives;
using filter::key_hash;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t parts = 5;

struct workload {
    std::vector<key_hash> keys;  ///< all that ever come, in order: n, n more, and a hundredth of n
    std::size_t n;
    double rate;

    [[nodiscard]] std::size_t changes() const { return n / 100; }
    /// Those held before the last changes, and after.
    [[nodiscard]] std::span<const key_hash> before() const { return std::span{keys}.subspan(n, n); }
    [[nodiscard]] std::span<const key_hash> after() const {
        return std::span{keys}.subspan(n + changes(), n);
    }
};

double nanoseconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double, std::nano>(clock_type::now() - begin).count();
}

struct cost {
    double insert = 1e300;  // nanoseconds
    double erase = 1e300;
};

/// Inserts the first n keys, and then lets each of the next n come and the oldest leave.
template <class Filter>
cost live(Filter& source, const workload& work) {
    cost best;
    const auto insert = [&](std::size_t i) {
        if constexpr (std::is_void_v<decltype(source.insert(work.keys[i]))>) {
            source.insert(work.keys[i]);
        } else if (!source.insert(work.keys[i])) {
            std::fprintf(stderr, "digest_source: a source is full\n");
            std::exit(1);
        }
    };
    for (std::size_t i = 0; i < work.n; ++i) {
        insert(i);
    }
    const auto part = work.n / parts;
    for (std::size_t first = 0; first + part <= work.n; first += part) {
        auto begin = clock_type::now();
        std::size_t erased = 0;
        for (std::size_t i = first; i < first + part; ++i) {
            erased += source.erase(work.keys[i]) ? 1 : 0;
        }
        best.erase = std::min(best.erase, nanoseconds_since(begin) / static_cast<double>(part));
        if (erased != part) {
            std::fprintf(stderr, "digest_source: a source lost a key\n");
            std::exit(1);
        }
        begin = clock_type::now();
        for (std::size_t i = first; i < first + part; ++i) {
            insert(work.n + i);
        }
        best.insert = std::min(best.insert, nanoseconds_since(begin) / static_cast<double>(part));
    }
    return best;
}

template <class Filter>
double measured_rate(const Filter& made) {
    std::mt19937_64 random{7};
    constexpr int asked = 2'000'000;
    int found = 0;
    for (int i = 0; i < asked; ++i) {
        const auto low = random();
        found += made.may_contain({.low = low, .high = random()}) ? 1 : 0;
    }
    return static_cast<double>(found) / asked;
}

/// One line; what does not apply is left out.
void print(const std::string& name,
           double rate,
           double source_bits,
           std::optional<cost> changes,
           double wire_bits,
           double reader_bits,
           std::optional<double> delta) {
    std::printf("| %s | %.4f | %.1f | ", name.c_str(), rate, source_bits);
    if (changes) {
        std::printf("%.0f | %.0f | ", changes->insert, changes->erase);
    } else {
        std::printf("– | – | ");
    }
    std::printf("%.2f | %.3f | %.1f | ", wire_bits, wire_bits / -std::log2(rate), reader_bits);
    if (delta) {
        std::printf("%.1f %% |\n", 100 * *delta);
    } else {
        std::printf("whole |\n");
    }
    std::fflush(stdout);
}

void judge_counting(const workload& work, filter::bloom_size size) {
    const auto n = static_cast<double>(work.n);
    filter::counting_bloom source{size};
    const auto changes = live(source, work);
    filter::digest_stamp stamp{.generation = {.epoch = 1, .counter = 1}, .keys = work.n};
    const auto before = filter::digest::of(source, stamp);
    for (std::size_t i = 0; i < work.changes(); ++i) {
        (void)source.erase(work.before()[i]);
        source.insert(work.keys[2 * work.n + i]);
    }
    ++stamp.generation.counter;
    const auto after = filter::digest::of(source, stamp);
    const auto whole = filter::encode(after);
    const auto delta = filter::encode_delta(before, after);
    print("counting Bloom, k = " + std::to_string(size.probes) + " → compressed Bloom",
          measured_rate(after),
          static_cast<double>(source.bytes()) * 8 / n,
          changes,
          static_cast<double>(whole.size()) * 8 / n,
          static_cast<double>(after.bytes()) * 8 / n,
          static_cast<double>(delta.value().size()) / static_cast<double>(whole.size()));
}

/// Its values, which the same range of a Golomb-coded set has as well. A reader that would look
/// anything up holds that set and its index, or a table like the source's.
void judge_dleft(const workload& work) {
    const auto n = static_cast<double>(work.n);
    const auto size = alternatives::dleft_size_for(work.n, work.rate);
    alternatives::dleft_filter source{size};
    const auto changes = live(source, work);
    const auto range = std::ldexp(static_cast<double>(size.buckets),
                                  static_cast<int>(size.remainder_bits));
    const alternatives::golomb_set whole{work.after(), n / range};
    std::vector<key_hash> changed;
    for (std::size_t i = 0; i < work.changes(); ++i) {
        changed.push_back(work.before()[i]);
        changed.push_back(work.keys[2 * work.n + i]);
    }
    const alternatives::golomb_set delta{changed, static_cast<double>(changed.size()) / range};
    const auto wire = static_cast<double>(whole.wire_bits());
    print("d-left counting → Golomb-coded set",
          measured_rate(source),
          static_cast<double>(source.bytes()) * 8 / n,
          changes,
          wire / n,
          static_cast<double>(whole.bytes()) * 8 / n,
          static_cast<double>(delta.wire_bits()) / wire);
}

/// The table as it is; a delta would name the slots that changed and what is in them now: at least
/// two for a key gone and one come, more where keys were moved.
void judge_cuckoo(const workload& work) {
    const auto n = static_cast<double>(work.n);
    const auto size = alternatives::cuckoo_size_for(work.n, work.rate);
    alternatives::cuckoo_filter source{size};
    const auto changes = live(source, work);
    const auto bits = static_cast<double>(source.bytes()) * 8;
    const auto slots = static_cast<double>(size.buckets * alternatives::cuckoo_filter::slots);
    const auto changed = 2.0 * static_cast<double>(work.changes());
    const auto delta = changed * (std::log2(slots / changed) + 1.5 + size.fingerprint_bits);
    print("cuckoo → itself",
          measured_rate(source),
          bits / n,
          changes,
          bits / n,
          bits / n,
          delta / bits);
}

/// Reprise's form could carry only which counters are not zero, at the rate of as large a Bloom
/// filter; with its counters it is the whole source.
void judge_variable(const workload& work) {
    const auto n = static_cast<double>(work.n);
    alternatives::variable_counting source{
        alternatives::variable_counting_size_for(work.n, work.rate)};
    const auto changes = live(source, work);
    const auto bits = static_cast<double>(source.bytes()) * 8 / n;
    print("variable-increment counting → itself",
          measured_rate(source),
          bits,
          changes,
          bits,
          bits,
          std::nullopt);
}

template <class Filter>
void judge_static(const std::string& name, const workload& work, const Filter& built, double ns) {
    const auto n = static_cast<double>(work.n);
    const auto wire = static_cast<double>(built.wire_bits()) / n;
    print(name + " (built in " + std::to_string(static_cast<int>(ns / n)) + " ns a key)",
          measured_rate(built),
          128,  // all keys' hashes must be held to build it anew
          std::nullopt,
          wire,
          static_cast<double>(built.bytes()) * 8 / n,
          std::nullopt);
}

void judge(const workload& work) {
    judge_counting(work, filter::digest_size(work.n, work.rate));
    judge_counting(work, filter::classic_size(work.n, work.rate));
    judge_dleft(work);
    judge_cuckoo(work);
    judge_variable(work);
    // Only powers of two: the nearest below the rate.
    const auto bits = static_cast<unsigned>(std::ceil(-std::log2(work.rate)));
    auto begin = clock_type::now();
    const auto exclusive = alternatives::xor_filter::build(work.after(), bits);
    judge_static("xor", work, exclusive.value(), nanoseconds_since(begin));
    for (const unsigned arity : {3U, 4U}) {
        begin = clock_type::now();
        const auto fuse = alternatives::fuse_filter::build(work.after(), bits, arity);
        judge_static("binary fuse, arity " + std::to_string(arity),
                     work,
                     fuse.value(),
                     nanoseconds_since(begin));
    }
    begin = clock_type::now();
    const alternatives::golomb_set set{work.after(), work.rate};
    judge_static("Golomb-coded set", work, set, nanoseconds_since(begin));
}

}  // namespace

int main(int count, char** arguments) {
    workload work{.keys = {}, .n = 1'000'000, .rate = 0.01};
    if (count > 1) {
        work.n = std::strtoull(arguments[1], nullptr, 10);
    }
    if (count > 2) {
        work.rate = std::strtod(arguments[2], nullptr);
    }
    if (work.n < 1'000 || work.n > 1'000'000'000 || !(work.rate > 1e-6 && work.rate < 0.5)) {
        std::fprintf(
            stderr, "digest_source: keys from 1,000 to 10^9 and a rate above 1e-6 and below 0.5\n");
        return 2;
    }
    std::mt19937_64 random{1};
    work.keys.resize(2 * work.n + work.changes());
    for (auto& key : work.keys) {
        const auto low = random();
        key = {.low = low, .high = random()};
    }
    std::printf(
        "%zu keys at %g; bits are a key\n\n"
        "| source → published | rate | source, bits | insert, ns | erase, ns | wire, bits | "
        "wire / log2(1/rate) | reader, bits | delta / whole |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        work.n,
        work.rate);
    judge(work);
}
