#pragma once
// SHA-256 (FIPS 180-4), of short texts that are no secret's guard: a name for a seed is all that
// this library wants of it, and for that nobody should have to link libcrypto.

#include <array>
#include <cstddef>
#include <span>

namespace reprise::filter {

/// O(length), some ten nanoseconds a byte; no allocation, any thread.
[[nodiscard]] std::array<std::byte, 32> sha256(std::span<const std::byte> text) noexcept;

}  // namespace reprise::filter
