#pragma once
// Keys for tests: as uniform as hashes, and made again from two small numbers.

#include "filter/key_hash.hpp"
#include "tools/mix.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace reprise::filter::test {

using tools::mix;

/// The `i`th key of a family; families do not meet.
constexpr key_hash nth_key(std::uint64_t family, std::uint64_t i) noexcept {
    const auto low = mix(mix(family) ^ i);
    return {.low = low, .high = mix(low ^ 0x5bd1e995)};
}

/// Bytes that count from zero.
inline hash_seed counting_seed() {
    hash_seed seed{};
    for (std::size_t i = 0; i < seed.size(); ++i) {
        seed[i] = static_cast<std::byte>(i);
    }
    return seed;
}

/// Bytes as hexadecimal digits.
template <class Bytes>
[[nodiscard]] std::string hex(const Bytes& bytes) {
    std::string out;
    for (const auto byte : bytes) {
        out += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4];
        out += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15];
    }
    return out;
}

/// When admission begins to see requests.
inline constexpr std::chrono::sys_seconds start{std::chrono::seconds{1'700'000'000}};

/// `empty` with the first keys of a family in it.
template <class Filter>
[[nodiscard]] Filter filled(Filter empty, std::uint64_t family, std::uint64_t keys) {
    for (std::uint64_t i = 0; i < keys; ++i) {
        (void)empty.insert(nth_key(family, i));
    }
    return empty;
}

/// How many of the first keys of a family are answered as if they were in it.
template <class Filter>
[[nodiscard]] std::uint64_t found(const Filter& filter, std::uint64_t family, std::uint64_t keys) {
    std::uint64_t out = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
        out += filter.may_contain(nth_key(family, i)) ? 1 : 0;
    }
    return out;
}

}  // namespace reprise::filter::test
