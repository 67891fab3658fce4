#pragma once
// Lists of allow and deny, other than http_access, of which nothing comes here: whatever they restrained is told.

#include "tools/from_squid/draft.hpp"

#include <map>
#include <string>
#include <string_view>

namespace reprise::from_squid {

[[nodiscard]] bool is_lost_list(std::string_view name);

/// @param lines  of each directive by its name; what is no lost list is not looked at
void convert_lost_lists(draft& into, const std::map<std::string, statements>& lines);

}  // namespace reprise::from_squid
