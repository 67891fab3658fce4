#pragma once
// What is said of each line of a squid.conf that does not simply go on as it was.

#include "tools/from_squid/squid_conf.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reprise::from_squid {

enum class fate {
    changed,       ///< it is said otherwise here, and means the same
    approximated,  ///< what comes of it is near, or stricter
    left_out,      ///< nothing comes of it; where it restrained, nobody is allowed more
    laxer,         ///< what it restrained is lost: more is allowed, stored or told than before
};
[[nodiscard]] std::string_view to_string(fate what) noexcept;

struct note {
    fate what = fate::changed;
    position where;    ///< line 0: of no line
    std::string line;  ///< as it was read, passwords hidden; empty: of no line
    std::string why;
    std::string setting;  ///< beside which it stands: "access.clients"; empty: at the end
};

/// The line with "..." in the place of every password in it.
[[nodiscard]] std::string text_of(const statement& from);

using notes = std::vector<note>;

}  // namespace reprise::from_squid
