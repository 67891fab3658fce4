// The filters of tools/alternatives/, each by a line.

#include "tools/alternatives/cuckoo_filter.hpp"
#include "tools/alternatives/dleft_filter.hpp"
#include "tools/alternatives/fuse_filter.hpp"
#include "tools/alternatives/golomb_set.hpp"
#include "tools/alternatives/hash_compaction.hpp"
#include "tools/alternatives/variable_counting.hpp"
#include "tools/alternatives/xor_filter.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <cmath>
#include <stdexcept>

namespace reprise::bench {

namespace {

using namespace alternatives;
using keys_span = std::span<const key_hash>;

/// The fewest bits of fingerprint that keep to the rate.
unsigned fingerprint_bits(double rate) {
    return static_cast<unsigned>(std::ceil(-std::log2(rate)));
}

fuse_filter fuse_of(keys_span keys, double rate, unsigned arity) {
    auto made = fuse_filter::build(keys, fingerprint_bits(rate), arity);
    if (!made) {
        throw std::runtime_error{"a binary fuse filter could not be built"};
    }
    return *std::move(made);
}

xor_filter xor_of(keys_span keys, double rate) {
    auto made = xor_filter::build(keys, fingerprint_bits(rate));
    if (!made) {
        throw std::runtime_error{"a xor filter could not be built"};
    }
    return *std::move(made);
}

}  // namespace

std::vector<subject> alternative_filters() {
    return {
        growing("cuckoo",
                [](auto keys, auto rate) { return cuckoo_filter{cuckoo_size_for(keys, rate)}; }),
        growing("d-left counting",
                [](auto keys, auto rate) { return dleft_filter{dleft_size_for(keys, rate)}; }),
        growing("variable-increment counting",
                [](auto keys, auto rate) {
                    return variable_counting{variable_counting_size_for(keys, rate)};
                }),
        growing(
            "compacted hashes",
            [](auto keys, auto rate) { return hash_compaction{compaction_size_for(keys, rate)}; }),
        built("xor", xor_of),
        built("binary fuse, 3 places",
              [](keys_span keys, double rate) { return fuse_of(keys, rate, 3); }),
        built("binary fuse, 4 places",
              [](keys_span keys, double rate) { return fuse_of(keys, rate, 4); }),
        built("Golomb-coded set",
              [](keys_span keys, double rate) {
                  return golomb_set{keys, rate};
              }),
    };
}

}  // namespace reprise::bench
