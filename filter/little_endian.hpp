#pragma once
// Unsigned integers as bytes, lowest first, whatever the machine's own order is.

#include <cstddef>

namespace reprise::filter {

/// @pre sizeof(Unsigned) bytes at `at`
template <class Unsigned>
void put_little_endian(std::byte* at, Unsigned value) noexcept {
    for (std::size_t i = 0; i < sizeof value; ++i) {
        at[i] = static_cast<std::byte>(value >> (8 * i));
    }
}

/// @pre sizeof(Unsigned) bytes at `at`
template <class Unsigned>
[[nodiscard]] Unsigned get_little_endian(const std::byte* at) noexcept {
    Unsigned value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
        value |= static_cast<Unsigned>(static_cast<Unsigned>(at[i]) << (8 * i));
    }
    return value;
}

}  // namespace reprise::filter
