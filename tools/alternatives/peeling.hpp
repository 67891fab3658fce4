#pragma once
// How xor and binary fuse filters are solved: give every key a slot of its own, then fill the slots
// backwards. What the slots of a key XOR to is its fingerprint, or whatever else is wanted of it
// (bloomier_filter.hpp).
//
// A slot that only one key still uses is that key's; take the key away and others become such
// slots. When that ends with no key left (peeling a hypergraph to an empty 2-core), going back
// through the keys in reverse each has its slot still free to make the XOR of all its slots its
// fingerprint. When keys are left over, the hash must change.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace reprise::alternatives {

/// A key's slots, `count` of them, all different.
struct peel_places {
    std::array<std::uint64_t, 4> slot;
    unsigned count = 0;
};

/// The paper's floor(1.23 n) + 32 slots, in three equal parts: how many each has.
[[nodiscard]] constexpr std::uint64_t third_of(std::uint64_t keys) noexcept {
    return (keys * 123 / 100 + 32 + 2) / 3;
}

/// One slot in each third.
[[nodiscard]] constexpr peel_places thirds_of(std::uint64_t hash, std::uint64_t third) noexcept {
    constexpr int turn = 21;  // of 64 bits for the next third: a third of them
    peel_places places{.slot = {}, .count = 3};
    for (unsigned part = 0; part < 3; ++part) {
        const auto turned = std::rotl(hash, static_cast<int>(part) * turn);
        places.slot[part] = part * third + scaled(turned, third);
    }
    return places;
}

/// A key under a seed: what places and fingerprint are taken from.
[[nodiscard]] constexpr std::uint64_t seeded(filter::key_hash key, std::uint64_t seed) noexcept {
    return mix(key.low ^ mix(key.high + seed));
}

/// The fingerprint that goes with a seeded hash; its places come from other bits of it.
[[nodiscard]] constexpr std::uint32_t fingerprint_of(std::uint64_t hash, unsigned bits) noexcept {
    return static_cast<std::uint32_t>(mix(hash) >> (64 - bits));
}

/// The keys without their repetitions. O(keys log keys).
[[nodiscard]] std::vector<filter::key_hash> distinct(std::span<const filter::key_hash> keys);

/// Fills `slots`, all zero, so that the slots of each hash XOR to what `wanted` says of it. False,
/// and they are as they were, when the hashes cannot be peeled; always so when two of them are
/// equal. @throws std::bad_alloc
[[nodiscard]] bool peel(std::span<const std::uint64_t> hashes,
                        const std::function<peel_places(std::uint64_t)>& places_of,
                        const std::function<std::uint32_t(std::uint64_t)>& wanted,
                        cells& slots);

/// The same, of fingerprints as wide as a slot.
[[nodiscard]] bool peel(std::span<const std::uint64_t> hashes,
                        const std::function<peel_places(std::uint64_t)>& places_of,
                        cells& slots);

}  // namespace reprise::alternatives
