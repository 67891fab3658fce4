#pragma once
// Lines of "allow" and "deny" with lists behind them, as Squid reads them: the first one decides whose lists all
// match, and where none does, the opposite of the last.
// That last is easily forgotten: "allow good" alone denies all the rest, without a line that says so.

#include "tools/from_squid/draft.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::from_squid {

/// Whether it decides for every request: the lists behind the action at `at` are "all" alone.
[[nodiscard]] bool is_for_all(const statement& line, std::size_t at);

/// Whether the line can match nothing that is asked for here: one of its lists is of protocols that are not
/// spoken (FTP, say) alone.
[[nodiscard]] bool is_of_other_protocols(const statement& line,
                                         std::size_t at,
                                         const acl_table& acls);

/// Whether the line is for CONNECT alone.
[[nodiscard]] bool is_of_connect(const statement& line, std::size_t at, const acl_table& acls);

/// By which lines of a chain something is allowed, or denied.
struct verdict_lines {
    statements lines;  ///< those of that action, as far as the chain is asked
    /// The last line, which is of the other action: what no line matches has this one. Null: nothing has.
    const statement* opposite = nullptr;

    [[nodiscard]] bool none() const noexcept { return lines.empty() && opposite == nullptr; }
};

/// @param action  "allow" or "deny"
/// @param at      the place of that word in each line
/// Lines without a list, of which Squid takes no notice, and those that can match nothing here are passed over.
[[nodiscard]] verdict_lines lines_with(std::string_view action,
                                       const statements& chain,
                                       std::size_t at,
                                       const acl_table& acls);

/// Tells of each of these lines that `why`, as something that is allowed or told now.
void say_lost(draft& into,
              const verdict_lines& lost,
              const std::string& why,
              const std::string& setting);

/// The chains of lines that have a name before their action, one for each name, in the order of first sight.
/// Names are compared without case.
[[nodiscard]] std::vector<statements> by_name(const statements& lines);

}  // namespace reprise::from_squid
