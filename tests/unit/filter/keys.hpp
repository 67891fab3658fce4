#pragma once
// Keys for tests: as uniform as hashes, and made again from two small numbers.

#include "filter/key_hash.hpp"

#include <cstdint>

namespace reprise::filter::test {

/// Steele, Lea and Flood's SplitMix64 finaliser: a bijection that looks random.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// The `i`th key of a family; families do not meet.
constexpr key_hash nth_key(std::uint64_t family, std::uint64_t i) noexcept {
    const auto low = mix(mix(family) ^ i);
    return {.low = low, .high = mix(low ^ 0x5bd1e995)};
}

}  // namespace reprise::filter::test
