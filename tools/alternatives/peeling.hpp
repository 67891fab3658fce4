#pragma once
// How xor and binary fuse filters are solved: give every key a slot of its own, then fill the slots
// backwards.
//
// A slot that only one key still uses is that key's; take the key away and others become such
// slots. When that ends with no key left (peeling a hypergraph to an empty 2-core), going back
// through the keys in reverse each has its slot still free to make the XOR of all its slots its
// fingerprint. When keys are left over, the hash must change.

#include "filter/key_hash.hpp"
#include "tools/alternatives/cells.hpp"

#include <array>
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

/// Fills `slots`, all zero, so that the slots of each hash XOR to its fingerprint. False, and they
/// are as they were, when the hashes cannot be peeled; always so when two of them are equal.
/// @throws std::bad_alloc
[[nodiscard]] bool peel(std::span<const std::uint64_t> hashes,
                        const std::function<peel_places(std::uint64_t)>& places_of,
                        cells& slots);

}  // namespace reprise::alternatives
