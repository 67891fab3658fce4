#pragma once
// From a cache key's text to the 128 bits that every filter and the store work with.
//
// XXH3 under a full 192-byte secret, made by XXH3_generateSecret from 32 random bytes: a 64-bit
// seed could be searched for, and keys chosen against it. Even so XXH3 is no pseudorandom function:
// fixed pairs of keys are known that collide with probability about 2^-27 over random seeds or
// secrets (Cyan4973/xxHash#1127). Nothing may therefore rest on an adversary not finding a
// collision: a store compares the key's text, and in a filter a collision costs one early
// admission or one false hit.
//
// Algorithm and secret are named here only. What is persisted or sent under one hash is worthless
// under another, so both must say which seed or fleet they belong to.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace reprise::filter {

/// A key's hash: two words, each uniform and as good as independent of the other.
/// `low` picks places (a block, a shard, a bucket), `high` what is looked for there.
struct key_hash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const key_hash&) const = default;
};

/// What a secret is made from, and all that must be kept to make it again. As confidential as the
/// secret itself.
using hash_seed = std::array<std::byte, 32>;

/// The 192 bytes that make one instance's hashes its own. A value: copying copies the secret.
/// It has no printed form, and must never get one: whoever knows it can choose colliding keys.
class hash_secret {
public:
    /// The same seed gives the same secret, on every machine. The seed's bytes must be random;
    /// nothing here makes randomness. About a microsecond.
    [[nodiscard]] static hash_secret from_seed(std::span<const std::byte, 32> seed) noexcept;

    /// The seed it was made from: for persistence, nothing else.
    [[nodiscard]] const hash_seed& seed() const noexcept { return seed_; }

    [[nodiscard]] std::span<const std::byte, 192> bytes() const noexcept { return bytes_; }

private:
    hash_secret() = default;

    hash_seed seed_{};
    alignas(64) std::array<std::byte, 192> bytes_{};  // XXH3 reads it in 64-byte stripes
};

/// XXH3's 128 bits of `text` under `secret`. O(length), no allocation, any thread. Every text has a
/// hash, the empty one too. XXH3 is inlined in key_hash.cpp, with the secret's size a constant: one
/// call and no dispatch, and no including file parses xxhash.h.
[[nodiscard]] key_hash hash_of(std::string_view text, const hash_secret& secret) noexcept;

}  // namespace reprise::filter

/// For hash tables: the word is uniform already.
template <>
struct std::hash<reprise::filter::key_hash> {
    std::size_t operator()(const reprise::filter::key_hash& key) const noexcept {
        return static_cast<std::size_t>(key.low);
    }
};
