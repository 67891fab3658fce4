#pragma once
// Digests for tests: of known keys, or of any shape that a seed brings.

#include "filter/digest.hpp"
#include "filter/indices.hpp"
#include "tests/unit/filter/keys.hpp"

#include <cstdint>
#include <vector>

namespace reprise::filter::test {

inline seed_id test_seed() {
    seed_id id{};
    id.fill(std::byte{0x5e});
    return id;
}

inline digest_stamp stamp_of(std::uint64_t keys, std::uint64_t counter = 1) {
    return {
        .seed = test_seed(), .generation = {.epoch = 0xe90c4, .counter = counter}, .keys = keys};
}

/// A standard digest of the keys [first, last) of family 1.
inline digest digest_of_keys(bloom_size size,
                             std::uint64_t first,
                             std::uint64_t last,
                             std::uint64_t counter = 1) {
    std::vector<std::uint64_t> words((size.bits + 63) / 64);
    for (auto i = first; i < last; ++i) {
        indices places{nth_key(1, i), size.bits};
        for (unsigned probe = 0; probe < size.probes; ++probe) {
            const auto place = places.next();
            words[place / 64] |= std::uint64_t{1} << (place % 64);
        }
    }
    const digest_shape shape{
        .layout = digest_layout::standard, .bits = size.bits, .probes = size.probes};
    return digest{shape, std::move(words), stamp_of(last - first, counter)};
}

/// The digest of a hundred keys at 1 %.
inline digest small_digest() {
    return digest_of_keys(digest_size(100, 0.01), 0, 100);
}

}  // namespace reprise::filter::test
