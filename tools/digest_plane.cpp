// What a digest takes in a reader's memory, on the wire, and again for each small change, by number
// of probes: the plane from which filter/digest.hpp's default was picked.
//
//     digest_plane                10^6 keys
//     digest_plane 100000         so many
//
// Every row at one rate is sized to have that rate: few probes in many bits that compress, or many
// in few that do not (Mitzenmacher, "Compressed Bloom Filters", IEEE/ACM ToN 2002). All sizes are
// of real messages, header included; each rate is measured too. Binary fuse filters and
// Golomb-coded sets stand beside them (tools/alternatives). Keys are hashes from a fixed seed.
// Prints Markdown.

#include "filter/digest_wire.hpp"
#include "filter/gap_code.hpp"
#include "filter/standard.hpp"
#include "tools/alternatives/fuse_filter.hpp"
#include "tools/alternatives/golomb_set.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

namespace filter = reprise::filter;
namespace alternatives = reprise::alternatives;
using filter::key_hash;
using keys_view = std::span<const key_hash>;

constexpr unsigned most_probes = 8;
constexpr std::size_t strangers = 1'000'000;
constexpr double changed = 0.01;  // of the keys left, and as many came

std::vector<key_hash> random_keys(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random{seed};
    std::vector<key_hash> keys(count);
    for (auto& key : keys) {
        key = {.low = random(), .high = random()};
    }
    return keys;
}

/// Keys that come and go in order: at any time a cache holds `held` in a row of `all`.
struct key_row {
    std::vector<key_hash> all;
    std::vector<key_hash> others;
    std::size_t held;

    [[nodiscard]] keys_view after(double share) const {
        return keys_view{all}.subspan(static_cast<std::size_t>(share * static_cast<double>(held)),
                                      held);
    }
    [[nodiscard]] double per_key(double amount) const { return amount / static_cast<double>(held); }
};

/// The size with this number of probes whose rate is `rate`: classic_rate solved for bits.
filter::bloom_size size_for(std::size_t keys, double rate, unsigned probes) {
    const double bits = -(probes * static_cast<double>(keys)) /
                        std::log1p(-std::pow(rate, 1.0 / probes));
    return {.bits = static_cast<std::uint64_t>(std::ceil(bits)), .probes = probes};
}

filter::digest digest_of(keys_view keys, filter::bloom_size size, std::uint64_t counter) {
    filter::standard_bloom made{size};
    for (const auto key : keys) {
        made.insert(key);
    }
    return filter::digest::of(
        made, {.seed = {}, .generation = {.epoch = 1, .counter = counter}, .keys = keys.size()});
}

template <class Filter>
double measured_rate(const Filter& asked, keys_view others) {
    const auto found = std::count_if(
        others.begin(), others.end(), [&asked](key_hash key) { return asked.may_contain(key); });
    return static_cast<double>(found) / static_cast<double>(others.size());
}

double bits_of(const std::vector<std::byte>& wire) {
    return static_cast<double>(wire.size()) * 8;
}

void print_head() {
    std::printf(
        "| | memory, bits a key | wire, bits a key | wire / log2(1/rate) | entropy / log2(1/rate)"
        " | delta, bits a key | delta / whole | measured rate |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|\n");
}

/// Bits are of the whole, not of a key. `entropy` below zero is not stated; `rate` is the one that
/// the structure has by its own bits, which is known better than a sample of strangers tells.
struct row {
    std::string name;
    double memory, wire, entropy, delta, rate, measured;
};

void print(const row& one, const key_row& keys) {
    const double bound = -std::log2(one.rate);
    std::printf("| %s | %.2f | %.2f | %.3f | ",
                one.name.c_str(),
                keys.per_key(one.memory),
                keys.per_key(one.wire),
                keys.per_key(one.wire) / bound);
    if (one.entropy < 0) {
        std::printf("– | ");
    } else {
        std::printf("%.3f | ", keys.per_key(one.entropy) / bound);
    }
    std::printf("%.3f | %.1f %% | %.3f %% |\n",
                keys.per_key(one.delta),
                100 * one.delta / one.wire,
                100 * one.measured);
}

void plane_of_digest(const key_row& keys, double rate, unsigned probes) {
    const auto size = size_for(keys.held, rate, probes);
    const auto base = digest_of(keys.after(0), size, 1);
    const auto next = digest_of(keys.after(changed), size, 2);
    const auto wire = filter::encode(base);
    const auto delta = filter::encode_delta(base, next).value();
    const bool is_raw = filter::read_digest_head(wire)->encoding == filter::digest_encoding::raw;
    const double on = base.fill();
    const double entropy = -on * std::log2(on) - (1 - on) * std::log2(1 - on);
    print({.name = "Bloom, k = " + std::to_string(probes) + (is_raw ? ", raw" : ", Golomb"),
           .memory = static_cast<double>(base.bytes()) * 8,
           .wire = bits_of(wire),
           .entropy = entropy * static_cast<double>(size.bits),
           .delta = bits_of(delta),
           .rate = base.false_positive_rate(),
           .measured = measured_rate(base, keys.others)},
          keys);
}

void plane_of_golomb_set(const key_row& keys, double rate) {
    const alternatives::golomb_set base{keys.after(0), rate};
    const alternatives::golomb_set next{keys.after(changed), rate};
    const auto before = base.values();
    const auto after = next.values();
    std::vector<std::uint64_t> flipped;
    std::set_symmetric_difference(
        before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(flipped));
    const auto range = static_cast<std::uint64_t>(static_cast<double>(keys.held) / rate);
    filter::gap_writer delta{filter::golomb_divisor(flipped.size(), range)};
    std::uint64_t expected = 0;
    for (const auto value : flipped) {
        delta.put(value - expected);
        expected = value + 1;
    }
    print({.name = "Golomb-coded set",
           .memory = static_cast<double>(base.bytes()) * 8,
           .wire = static_cast<double>(base.wire_bits()),
           .entropy = -1,
           .delta = static_cast<double>(delta.bytes()) * 8,
           .rate = base.rate(),
           .measured = measured_rate(base, keys.others)},
          keys);
}

/// Its rate is 2^-bits: the weakest that is strict enough. A change of one key is a new filter.
void plane_of_fuse(const key_row& keys, double rate, unsigned arity) {
    const auto bits = static_cast<unsigned>(std::ceil(-std::log2(rate)));
    const auto made = alternatives::fuse_filter::build(keys.after(0), bits, arity);
    if (!made) {
        std::printf("binary fuse, %u-wise: not built\n", arity);
        return;
    }
    print({.name = "binary fuse, " + std::to_string(arity) + "-wise, " + std::to_string(bits) +
                   " bits",
           .memory = static_cast<double>(made->bytes()) * 8,
           .wire = static_cast<double>(made->wire_bits()),
           .entropy = -1,
           .delta = static_cast<double>(made->wire_bits()),
           .rate = made->rate(),
           .measured = measured_rate(*made, keys.others)},
          keys);
}

void print_plane(const key_row& keys, double rate) {
    std::printf("## At a rate of %g %%\n\n", 100 * rate);
    print_head();
    for (unsigned probes = 1; probes <= most_probes; ++probes) {
        plane_of_digest(keys, rate, probes);
    }
    plane_of_golomb_set(keys, rate);
    plane_of_fuse(keys, rate, 3);
    plane_of_fuse(keys, rate, 4);
    std::printf("\n");
}

/// A delta's bits a key by how much changed between two generations.
void print_deltas(const key_row& keys, double rate) {
    constexpr double shares[]{0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};
    std::printf("## Deltas at a rate of %g %%, bits a key, by share of keys replaced\n\n| k |",
                100 * rate);
    for (const auto share : shares) {
        std::printf(" %g %% |", 100 * share);
    }
    std::printf(" whole |\n|---|%s---:|\n", "---:|---:|---:|---:|---:|---:|---:|---:|");
    for (const unsigned probes : {1U, 2U, 3U, 4U, 7U}) {
        const auto size = size_for(keys.held, rate, probes);
        const auto base = digest_of(keys.after(0), size, 1);
        std::printf("| %u |", probes);
        for (const auto share : shares) {
            const auto next = digest_of(keys.after(share), size, 2);
            std::printf(" %.3f |", keys.per_key(bits_of(filter::encode_delta(base, next).value())));
        }
        std::printf(" %.3f |\n", keys.per_key(bits_of(filter::encode(base))));
    }
    std::printf("\n");
}

/// Best of five runs, in nanoseconds for each key held.
template <class Work>
double best_ns(const key_row& keys, Work work) {
    double best = 1e300;
    for (int run = 0; run < 5; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        if (!work()) {
            std::abort();
        }
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() -
                                                              begin;
        best = std::min(best, keys.per_key(took.count()));
    }
    return best;
}

void print_times(const key_row& keys, double rate) {
    std::printf("## Times at a rate of %g %%, ns for each key held, best of five\n\n"
                "| k | encode whole | decode whole | encode delta (1 %%) | apply delta (1 %%) |\n"
                "|---|---:|---:|---:|---:|\n",
                100 * rate);
    for (const unsigned probes : {1U, 2U, 7U}) {
        const auto size = size_for(keys.held, rate, probes);
        const auto base = digest_of(keys.after(0), size, 1);
        const auto next = digest_of(keys.after(changed), size, 2);
        const auto wire = filter::encode(base);
        const auto delta = filter::encode_delta(base, next).value();
        std::printf("| %u | %.2f | %.2f | %.2f | %.2f |\n",
                    probes,
                    best_ns(keys, [&] { return filter::encode(base) == wire; }),
                    best_ns(keys, [&] { return filter::decode_digest(wire, {}).has_value(); }),
                    best_ns(keys, [&] { return filter::encode_delta(base, next) == delta; }),
                    best_ns(keys, [&] { return filter::apply_delta(delta, base).has_value(); }));
    }
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    const auto held = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    if (held < 1'000 || held > 100'000'000) {
        std::fprintf(stderr, "digest_plane [1000 to 100000000 keys]\n");
        return 1;
    }
    const key_row keys{.all = random_keys(1, held + held / 2 + 1),
                       .others = random_keys(2, strangers),
                       .held = held};
    std::printf("# digest_plane, %llu keys\n\nCompiler " __VERSION__ ".\n\n"
                "delta: after %g %% of keys left and as many came. entropy: of the bits, at their"
                " share of bits on.\n\n",
                static_cast<unsigned long long>(held),
                100 * changed);
    for (const double rate : {0.1, 0.03, 0.01, 0.001}) {
        print_plane(keys, rate);
    }
    print_deltas(keys, 0.01);
    print_times(keys, 0.01);
    return 0;
}
