#pragma once
// Which secret a digest's bits were set under, without telling the secret.
//
// Bits under one secret mean nothing under another, so a digest names its secret by a one-way
// function of the seed: the first 16 bytes of SHA-256 over a label and the seed's 32 bytes. Whoever
// reads the name of a random seed learns that two digests share it, and nothing else; a seed made
// from a guessable text could be searched for by its name, as it could by the digest's bits.

#include "filter/key_hash.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace reprise::filter {

/// A seed's public name. 128 bits: two seeds of one fleet never share one by chance.
using seed_id = std::array<std::byte, 16>;

/// The name of `seed`; the same on every machine. A microsecond, any thread.
[[nodiscard]] seed_id identify(std::span<const std::byte, 32> seed) noexcept;

}  // namespace reprise::filter
