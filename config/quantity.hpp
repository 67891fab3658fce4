#pragma once
// Sizes and durations as an operator writes them: "256MiB", "50h".
// A unit is always written, since a bare "10" has been read as seconds, minutes and milliseconds
// by different programs; only sizes may be plain JSON numbers, then in bytes.

#include "config/options.hpp"
#include "config/parsed.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace reprise::config {

/// Digits and a unit, with a space between them or none: B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
/// What does not fit in 64 bits is refused.
[[nodiscard]] parsed<byte_count> parse_size(std::string_view text);

/// Likewise: ms, s, m, h, d. What does not fit in 63 bits of milliseconds is refused.
[[nodiscard]] parsed<std::chrono::milliseconds> parse_duration(std::string_view text);

/// A number from 0 to 100 and a percent sign, as the fraction it stands for: "2.5%" is 0.025.
[[nodiscard]] parsed<double> parse_percentage(std::string_view text);

/// "2.5%" for 0.025. @pre share >= 0
[[nodiscard]] std::string percentage_to_string(double share);

/// In the largest binary unit that gives a whole number: "64KiB", "100B".
[[nodiscard]] std::string size_to_string(byte_count size);

/// In the largest unit that gives a whole number, but hours up to 99: "50h", "15s", "500ms".
/// @pre time >= 0
[[nodiscard]] std::string duration_to_string(std::chrono::milliseconds time);

}  // namespace reprise::config
