#pragma once
// The units that bounds and defaults of settings are written in.

#include "config/options.hpp"

#include <chrono>

namespace reprise::config {

inline constexpr byte_count kib = 1ull << 10;
inline constexpr byte_count mib = 1ull << 20;
inline constexpr byte_count gib = 1ull << 30;
inline constexpr byte_count tib = 1ull << 40;
inline constexpr std::chrono::hours day{24};

}  // namespace reprise::config
