#pragma once
// A fleet's keys, made of its one secret by HKDF-SHA256 (RFC 5869) under a label for each use, as proxy/peer/secret does
// with libcrypto: here for servers that should not have to load that. tests/unit/peer/c_fleet_test holds the two against each other.

#include "filter/key_hash.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reprise::filter::c {

inline constexpr std::size_t least_secret_bytes = 32;
inline constexpr std::size_t most_secret_bytes = 4096;

using sha256_code = std::array<std::byte, 32>;

/// HMAC-SHA256 (RFC 2104). @throws std::bad_alloc
[[nodiscard]] sha256_code hmac_of(std::span<const std::byte> key, std::string_view text);

/// 43 digits and a "=".
[[nodiscard]] std::string base64_of_code(const sha256_code& code);

/// True when both are the same; as long wherever two of one length differ.
[[nodiscard]] bool are_same(std::string_view a, std::string_view b) noexcept;

/// Fills `bytes` with zeroes, whoever looks at them afterwards or not.
void wipe(std::span<std::byte> bytes) noexcept;

struct fleet_keys {
    hash_seed hashing{};
    sha256_code signing{};
};
/// @throws std::bad_alloc
[[nodiscard]] fleet_keys keys_from(std::span<const std::byte> secret);

/// The key of what goes by 64 bits of its URL's hash, as those bytes (proxy/peer/README.md).
[[nodiscard]] key_hash key_of_name(std::uint64_t name, const hash_secret& secret) noexcept;

}  // namespace reprise::filter::c
