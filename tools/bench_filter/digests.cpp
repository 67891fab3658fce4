// What a digest takes in its owner's memory, on the wire, in a reader's memory and again for each small change: the table
// from which filter/digest.hpp's default was picked.
//
// Every Bloom filter of a table is sized to have its rate: few probes in many bits that compress, or many in few that do
// not (Mitzenmacher, "Compressed Bloom Filters", IEEE/ACM ToN 2002). Beside them is what tools/alternatives might publish
// in their place. All sizes are of real messages, header included, and each rate is measured too.
//
// A source holds the keys of a store in which one leaves for each that comes. After as many changes as there are keys,
// one in a hundred leaves and another comes: that is the delta. Nanoseconds are the best of five parts of those changes.
// Static structures are built anew, with all keys at hand, and their delta is the whole.

#include "filter/counting.hpp"
#include "filter/digest.hpp"
#include "filter/digest_wire.hpp"
#include "filter/gap_code.hpp"
#include "filter/sizing.hpp"
#include "tools/alternatives/cuckoo_filter.hpp"
#include "tools/alternatives/dleft_filter.hpp"
#include "tools/alternatives/fuse_filter.hpp"
#include "tools/alternatives/golomb_set.hpp"
#include "tools/alternatives/hash_compaction.hpp"
#include "tools/alternatives/variable_counting.hpp"
#include "tools/alternatives/xor_filter.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <cmath>
#include <cstdio>
#include <iterator>
#include <optional>
#include <stdexcept>

namespace reprise::bench {

namespace {

using namespace filter;
using keys_view = std::span<const key_hash>;

constexpr unsigned most_probes = 8;
constexpr std::uint64_t strangers = 1'000'000;
constexpr double changed = 0.01;  // of the keys left, and as many came

/// Keys that come and go in order: at any time a cache holds `held` in a row of them.
struct key_row {
    explicit key_row(std::uint64_t keys) : held{keys} {
        all.reserve(2 * keys + keys / 2);
        for (std::uint64_t i = 0; i < 2 * keys + keys / 2; ++i) {
            all.push_back(nth_key(1, i));
        }
    }
    /// Those held when all of the first have left, and this share of the next.
    [[nodiscard]] keys_view after(double share) const {
        const auto gone = static_cast<std::size_t>(share * static_cast<double>(held));
        return keys_view{all}.subspan(held + gone, held);
    }
    [[nodiscard]] std::size_t changes() const {
        return static_cast<std::size_t>(changed * static_cast<double>(held));
    }
    [[nodiscard]] double per_key(double amount) const { return amount / static_cast<double>(held); }

    std::vector<key_hash> all;
    std::uint64_t held;
};

/// Bytes are of the whole, not of a key. What does not apply is left out of the line.
struct row {
    std::string name;
    double rate = 0;  ///< by its own bits, which is known better than a sample of strangers tells
    double measured = 0;
    double source =
        16;  ///< bytes a key of what counts them; a static structure's owner holds all hashes
    double insert = 0, erase = 0;  ///< nanoseconds
    double wire = 0, memory = 0, delta = 0;
    double entropy = 0;         ///< bits, at their share of bits that are on
    double make = 0, read = 0;  ///< seconds
};

void print(const row& one, const key_row& keys) {
    const double bound = -std::log2(one.rate);
    const auto number = [](const char* format, double value) {
        if (value == 0) {
            std::printf(" – |");
        } else {
            std::printf(format, value);
        }
    };
    std::printf("| %s | %.3f %% |", one.name.c_str(), 100 * one.measured);
    number(" %.1f |", 8 * one.source);
    number(" %.0f |", one.insert);
    number(" %.0f |", one.erase);
    number(" %.2f |", keys.per_key(8 * one.wire));
    number(" %.3f |", keys.per_key(8 * one.wire) / bound);
    number(" %.3f |", keys.per_key(one.entropy) / bound);
    number(" %.2f |", keys.per_key(8 * one.memory));
    number(" %.3f |", keys.per_key(8 * one.delta));
    number(" %.1f %% |", 100 * one.delta / one.wire);
    number(" %.1f |", keys.per_key(one.make * 1e9));
    number(" %.1f |", keys.per_key(one.read * 1e9));
    std::printf("\n");
    std::fflush(stdout);
}

template <class Filter>
double measured_rate(const Filter& asked) {
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < strangers; ++i) {
        found += asked.may_contain(nth_key(3, i)) ? 1 : 0;
    }
    return static_cast<double>(found) / strangers;
}

/// Inserts the first keys, and then lets each of the next come and the oldest leave.
template <class Filter>
row lived(std::string name, Filter& source, const key_row& keys) {
    row out{.name = std::move(name), .insert = 1e300, .erase = 1e300};
    const auto insert = [&](std::size_t i) {
        if constexpr (std::is_void_v<decltype(source.insert(keys.all[i]))>) {
            source.insert(keys.all[i]);
        } else if (!source.insert(keys.all[i])) {
            throw std::runtime_error{out.name + ": the source is full"};
        }
    };
    constexpr std::size_t parts = 5;
    const auto part = keys.held / parts + 1;
    for (std::size_t i = 0; i < keys.held; ++i) {
        insert(i);
    }
    for (std::size_t first = 0; first < keys.held; first += part) {
        const auto end = std::min<std::size_t>(first + part, keys.held);
        const auto ns = 1e9 / static_cast<double>(end - first);
        std::size_t erased = 0;
        const auto erasing = seconds([&] {
            for (auto i = first; i < end; ++i) {
                erased += source.erase(keys.all[i]) ? 1 : 0;
            }
        });
        if (erased != end - first) {
            throw std::runtime_error{out.name + ": the source lost a key"};
        }
        const auto inserting = seconds([&] {
            for (auto i = first; i < end; ++i) {
                insert(keys.held + i);
            }
        });
        out.erase = std::min(out.erase, erasing * ns);
        out.insert = std::min(out.insert, inserting * ns);
    }
    out.source = keys.per_key(static_cast<double>(source.bytes()));
    return out;
}

/// One key in a hundred leaves, and another comes.
template <class Filter>
void change(Filter& source, const key_row& keys) {
    for (std::size_t i = 0; i < keys.changes(); ++i) {
        (void)source.erase(keys.after(0)[i]);
        (void)source.insert(keys.all[2 * keys.held + i]);
    }
}

row of_digest(const char* name, bloom_size size, const key_row& keys) {
    counting_bloom source{size};
    auto out = lived(name, source, keys);
    digest_stamp stamp{.generation = {.epoch = 1, .counter = 1}, .keys = keys.held};
    const auto before = digest::of(source, stamp);
    change(source, keys);
    ++stamp.generation.counter;
    const auto after = digest::of(source, stamp);
    std::vector<std::byte> wire;
    out.make = seconds([&] { wire = encode(after); });
    out.read = seconds([&] {
        if (!decode_digest(wire, seed_id{}, {.bytes = UINT64_MAX, .false_positive_rate = 1})) {
            throw std::runtime_error{"a digest can't be read back"};
        }
    });
    const bool is_raw = read_digest_head(wire)->encoding == digest_encoding::raw;
    out.name += ", k = " + std::to_string(size.probes) + (is_raw ? ", raw" : ", Golomb");
    out.rate = after.false_positive_rate();
    out.measured = measured_rate(after);
    out.wire = static_cast<double>(wire.size());
    out.memory = static_cast<double>(after.bytes());
    out.delta = static_cast<double>(encode_delta(before, after).value().size());
    const double on = after.fill();
    out.entropy = static_cast<double>(size.bits) *
                  (-on * std::log2(on) - (1 - on) * std::log2(1 - on));
    return out;
}

/// The size with this number of probes whose rate is `rate`: classic_rate solved for bits.
bloom_size size_for(std::uint64_t keys, double rate, unsigned probes) {
    const double bits = -(probes * static_cast<double>(keys)) /
                        std::log1p(-std::pow(rate, 1.0 / probes));
    return {.bits = static_cast<std::uint64_t>(std::ceil(bits)), .probes = probes};
}

/// What is built at once, and sent whole whenever anything changed.
template <class Build>
row of_static(const char* name, const key_row& keys, Build build) {
    row out{.name = name};
    out.make = seconds([&] {
        const auto made = build(keys.after(0));
        out.rate = made.rate();
        out.wire = out.delta = static_cast<double>(made.wire_bits()) / 8;
        out.memory = static_cast<double>(made.bytes());
    });
    out.measured = measured_rate(build(keys.after(0)));
    return out;
}

row of_golomb_set(const key_row& keys, double rate) {
    const auto set = [&](keys_view from) { return alternatives::golomb_set{from, rate}; };
    auto out = of_static("Golomb-coded set", keys, set);
    const auto before = set(keys.after(0)).values();
    const auto after = set(keys.after(changed)).values();
    std::vector<std::uint64_t> flipped;
    std::set_symmetric_difference(
        before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(flipped));
    const auto range = static_cast<std::uint64_t>(static_cast<double>(keys.held) / rate);
    gap_writer delta{golomb_divisor(flipped.size(), range)};
    std::uint64_t expected = 0;
    for (const auto value : flipped) {
        delta.put(value - expected);
        expected = value + 1;
    }
    out.delta = static_cast<double>(delta.bytes());
    return out;
}

/// Its values, which the same range of a Golomb-coded set has as well. A reader that would look anything up holds that
/// set and its index, or a table like the source's.
row of_dleft(const key_row& keys, double rate) {
    const auto size = alternatives::dleft_size_for(keys.held, rate);
    alternatives::dleft_filter source{size};
    auto out = lived("d-left counting → Golomb-coded set", source, keys);
    const auto range = std::ldexp(static_cast<double>(size.buckets),
                                  static_cast<int>(size.remainder_bits));
    const alternatives::golomb_set whole{keys.after(changed),
                                         static_cast<double>(keys.held) / range};
    std::vector<key_hash> flipped;
    for (std::size_t i = 0; i < keys.changes(); ++i) {
        flipped.push_back(keys.after(0)[i]);
        flipped.push_back(keys.all[2 * keys.held + i]);
    }
    const alternatives::golomb_set delta{flipped, static_cast<double>(flipped.size()) / range};
    out.rate = out.measured = measured_rate(source);
    out.wire = static_cast<double>(whole.wire_bits()) / 8;
    out.memory = static_cast<double>(whole.bytes());
    out.delta = static_cast<double>(delta.wire_bits()) / 8;
    return out;
}

/// What is published as it is.
template <class Filter>
row of_itself(const char* name, Filter source, const key_row& keys) {
    auto out = lived(name, source, keys);
    out.rate = out.measured = measured_rate(source);
    out.wire = out.memory = out.delta = static_cast<double>(source.bytes());
    return out;
}

/// A delta would name the slots that changed and what is in them now: at least two for a key gone and one come, more
/// where keys were moved.
row of_cuckoo(const key_row& keys, double rate) {
    const auto size = alternatives::cuckoo_size_for(keys.held, rate);
    auto out = of_itself("cuckoo → itself", alternatives::cuckoo_filter{size}, keys);
    const auto slots = static_cast<double>(size.buckets * alternatives::cuckoo_filter::slots);
    const auto touched = 2.0 * static_cast<double>(keys.changes());
    out.delta = touched * (std::log2(slots / touched) + 1.5 + size.fingerprint_bits) / 8;
    return out;
}

/// A delta's bits a key by how much changed between two generations.
void print_deltas(const key_row& keys, double rate) {
    constexpr double shares[]{0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};
    std::printf("Deltas, bits a key, by the share of keys replaced.\n\n| k |");
    for (const auto share : shares) {
        std::printf(" %g %% |", 100 * share);
    }
    std::printf("\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (const unsigned probes : {1U, 2U, 3U, 4U, 7U}) {
        const auto published = [&](double share, std::uint64_t counter) {
            counting_bloom source{size_for(keys.held, rate, probes)};
            for (const auto key : keys.after(share)) {
                source.insert(key);
            }
            return digest::of(source,
                              {.generation = {.epoch = 1, .counter = counter}, .keys = keys.held});
        };
        const auto base = published(0, 1);
        std::printf("| %u |", probes);
        for (const auto share : shares) {
            const auto delta = encode_delta(base, published(share, 2)).value().size();
            std::printf(" %.3f |", keys.per_key(8 * static_cast<double>(delta)));
        }
        std::printf("\n");
    }
    std::printf("\n");
}

}  // namespace

void print_digests(std::uint64_t count, double rate) {
    using namespace alternatives;
    const key_row keys{count};
    // Only powers of two: the weakest that is strict enough.
    const auto bits = static_cast<unsigned>(std::ceil(-std::log2(rate)));
    std::printf(
        "Digests; bits are a key.\n\n"
        "| source → published | rate | source | insert, ns | erase, ns | wire | wire / "
        "log2(1/rate) | "
        "entropy / log2(1/rate) | reader | delta | delta / whole | make, ns/key | read, ns/key |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    print(of_digest("digest, default", digest_size(count, rate), keys), keys);
    print(of_digest("digest, least memory", classic_size(count, rate), keys), keys);
    for (unsigned probes = 1; probes <= most_probes; ++probes) {
        print(of_digest("digest", size_for(count, rate, probes), keys), keys);
    }
    print(of_dleft(keys, rate), keys);
    print(of_cuckoo(keys, rate), keys);
    // Only the counters that are not zero could be carried, at the rate of as large a Bloom filter.
    print(of_itself("variable-increment counting → itself",
                    variable_counting{variable_counting_size_for(count, rate)},
                    keys),
          keys);
    print(of_static("xor", keys, [&](auto of) { return xor_filter::build(of, bits).value(); }),
          keys);
    print(of_static("binary fuse, 3 places",
                    keys,
                    [&](auto of) { return fuse_filter::build(of, bits, 3).value(); }),
          keys);
    print(of_static("binary fuse, 4 places",
                    keys,
                    [&](auto of) { return fuse_filter::build(of, bits, 4).value(); }),
          keys);
    print(of_golomb_set(keys, rate), keys);
    print(of_static("compacted hashes",
                    keys,
                    [&](auto of) {
                        hash_compaction table{compaction_size_for(of.size(), rate)};
                        for (const auto key : of) {
                            if (!table.insert(key)) {
                                throw std::runtime_error{"a table of compacted hashes is full"};
                            }
                        }
                        return table;
                    }),
          keys);
    std::printf("\n");
    print_deltas(keys, rate);
}

}  // namespace reprise::bench
