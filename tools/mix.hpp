#pragma once
// SplitMix64's finaliser (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators",
// OOPSLA 2014): a bijection that looks random, so that neighbouring numbers go anywhere.

#include <cstdint>

namespace reprise::tools {

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

}  // namespace reprise::tools
