// What goes on the wire. tools/digest_plane has the whole plane of probes and bits a key; here are
// the default and what might stand in its place.

#include "filter/digest.hpp"
#include "filter/digest_wire.hpp"
#include "filter/sizing.hpp"
#include "filter/standard.hpp"
#include "tools/alternatives/fuse_filter.hpp"
#include "tools/alternatives/golomb_set.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace reprise::bench {

namespace {

using namespace filter;

struct wire_row {
    const char* name;
    std::uint64_t memory = 0;  ///< bytes
    std::uint64_t wire = 0;
    std::uint64_t delta = 0;  ///< after 1 % of the keys left and as many came
    double rate = 0;
    double make = 0;  ///< seconds
    double read = 0;
};

/// Keys `from` to `from + keys`, as an owner would publish them.
digest digest_of(bloom_size size, std::uint64_t keys, std::uint64_t from, std::uint64_t counter) {
    standard_bloom bloom{size};
    for (auto i = from; i < from + keys; ++i) {
        bloom.insert(nth_key(1, i));
    }
    return {{.bits = size.bits, .probes = size.probes},
            {bloom.words().begin(), bloom.words().end()},
            {.generation = {.epoch = 1, .counter = counter}, .keys = keys}};
}

wire_row digest_row(const char* name, bloom_size size, std::uint64_t keys) {
    wire_row row{.name = name};
    const auto before = digest_of(size, keys, 0, 1);
    const auto after = digest_of(size, keys, keys / 100, 2);
    std::vector<std::byte> wire;
    row.make = seconds([&] { wire = encode(before); });
    row.read = seconds([&] {
        if (!decode_digest(wire, seed_id{}, {.bytes = UINT64_MAX, .false_positive_rate = 1})) {
            throw std::runtime_error{"a digest can't be read back"};
        }
    });
    const auto delta = encode_delta(before, after);
    if (!delta) {
        throw std::runtime_error{"no delta: " + delta.error().message()};
    }
    row.memory = before.bytes();
    row.wire = wire.size();
    row.delta = delta->size();
    row.rate = before.false_positive_rate();
    return row;
}

/// A filter that is built at once, and sent whole whenever anything changed.
template <class Build>
wire_row built_row(const char* name, std::span<const key_hash> keys, Build build) {
    wire_row row{.name = name};
    row.make = seconds([&] {
        const auto made = build(keys);
        row.memory = made.bytes();
        row.wire = row.delta = made.wire_bits() / 8;
        row.rate = made.rate();
    });
    return row;
}

}  // namespace

void print_digests(std::uint64_t keys, double rate) {
    std::vector<key_hash> all;
    all.reserve(keys);
    for (std::uint64_t i = 0; i < keys; ++i) {
        all.push_back(nth_key(1, i));
    }
    const auto bits = static_cast<unsigned>(std::ceil(-std::log2(rate)));
    const std::vector<wire_row> rows{
        digest_row("digest, default", digest_size(keys, rate), keys),
        digest_row("digest, least memory", classic_size(keys, rate), keys),
        built_row("Golomb-coded set",
                  all,
                  [&](auto from) {
                      return alternatives::golomb_set{from, rate};
                  }),
        built_row(
            "binary fuse, 4 places",
            all,
            [&](auto from) { return alternatives::fuse_filter::build(from, bits, 4).value(); }),
    };
    std::printf("Digests; bits a key, and the delta after 1 %% of the keys left and 1 %% came.\n\n"
                "| | memory | wire | rate | wire / log2(1/rate) | delta | of the whole | "
                "make, ns/key | read, ns/key |\n"
                "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    const auto count = static_cast<double>(keys);
    for (const auto& row : rows) {
        const auto wire = bits_a_key(row.wire, keys);
        std::printf("| %s | %.2f | %.2f | %.5f | %.3f | %.2f | %.1f %% | %.1f | %.1f |\n",
                    row.name,
                    bits_a_key(row.memory, keys),
                    wire,
                    row.rate,
                    wire / -std::log2(row.rate),
                    bits_a_key(row.delta, keys),
                    100 * static_cast<double>(row.delta) / static_cast<double>(row.wire),
                    row.make * 1e9 / count,
                    row.read * 1e9 / count);
    }
    std::printf("\n");
}

}  // namespace reprise::bench
