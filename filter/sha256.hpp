#pragma once
// SHA-256 (FIPS 180-4), of short texts: names for seeds, and in filter/c/ the keys and signatures of a fleet, for which
// nobody should have to link libcrypto. What it does depends on a text's length alone, not on its bytes.

#include <array>
#include <cstddef>
#include <span>

namespace reprise::filter {

/// O(length), some ten nanoseconds a byte; no allocation, any thread.
[[nodiscard]] std::array<std::byte, 32> sha256(std::span<const std::byte> text) noexcept;

}  // namespace reprise::filter
