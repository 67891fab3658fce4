#pragma once
// The directives of Squid that can be judged each by itself: one table says what becomes of them, a setting of the
// same meaning or why not.

#include "tools/from_squid/draft.hpp"

#include <functional>
#include <map>
#include <string_view>

namespace reprise::from_squid {

using directive_handler = std::function<void(draft&, const statement&)>;

/// By their names.
[[nodiscard]] const std::map<std::string_view, directive_handler>& directives();

}  // namespace reprise::from_squid
