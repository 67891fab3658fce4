#pragma once
// Which URLs an expression or a list of Squid's means, as the patterns that our rules go by.
// Seldom is it exactly those; so it is said in which direction they err, for whoever keeps something from
// these URLs may err in one, and whoever allows them something in the other.

#include "tools/from_squid/acls.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::from_squid {

struct url_patterns {
    std::vector<std::string> all;
    bool wider = false;  ///< they match more
    bool by_case =
        false;  ///< they match less: of a path no letters but as written, or in lower case
    /// Where a rule for these stands before one for `all`, that is not wider for what * lets in: it loses a
    /// little instead.
    std::vector<std::string> except;
};

/// None: it can't be said with *.
[[nodiscard]] std::optional<url_patterns> patterns_of(std::string_view regex, bool no_case);

/// Of a list of hosts, or of expressions over URLs or their paths. None: it says something else, or not all
/// of it could be read.
[[nodiscard]] std::optional<url_patterns> patterns_of(const acl& from);

/// As many rules as a list of the settings may have.
inline constexpr std::size_t most_rules = 1'000;

/// The patterns of a list of rules so far, so that none is added that can never be reached.
class pattern_list {
public:
    enum class fit {
        good,
        covered,  ///< by one before it
        no_url,   ///< no URL is like it
        unsaid,   ///< some may be, but the settings take none such
        full,     ///< there are as many as there may be
    };

    /// `pattern` becomes as the settings would have it.
    fit take(std::string& pattern);

private:
    std::vector<std::string> taken_;
};

}  // namespace reprise::from_squid
