#pragma once
// The known name that a mistyped one was probably meant to be.

#include <span>
#include <string_view>

namespace reprise::config {

/// The name with the smallest edit distance (Levenshtein 1966, neighbours swapped count once) to
/// `wanted`, without case; empty when none is within a third of its length. O(sum of lengths
/// squared); a `wanted` over 64 characters has no neighbour.
[[nodiscard]] std::string_view nearest(std::string_view wanted,
                                       std::span<const std::string_view> known);

}  // namespace reprise::config
