#pragma once
// A regular expression over URLs as URL patterns with *, as far as that goes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::from_squid {

struct globs {
    std::vector<std::string> patterns;  ///< each for a part of what the expression matches
    bool wider = false;                 ///< together they match more than it does
    bool operator==(const globs&) const = default;
};

/// Alternatives, optional parts and small classes become patterns of their own; whatever else
/// repeats or varies becomes a *. None: it is no expression of this kind (an unclosed bracket, a
/// back reference), it nests deeper than 16 groups, or more than 64 patterns would be needed.
[[nodiscard]] std::optional<globs> globs_of(std::string_view regex);

}  // namespace reprise::from_squid
