#pragma once
// A squid.conf as our settings: JSON with a comment for each line that was changed, approximated or
// left out, and why.
// Whatever the file says, what comes out is accepted by config::load: what that refuses is taken out
// again, with its own words as the reason.

#include "tools/from_squid/notes.hpp"
#include "tools/from_squid/squid_conf.hpp"

#include <string>

namespace reprise::from_squid {

struct converted {
    std::string settings;  ///< the text of a settings file
    notes told;            ///< all that its comments say
};

/// Pure but for `files`, which the lists of acl lines are read from.
[[nodiscard]] converted convert(const squid_conf& from, const file_source& files);

}  // namespace reprise::from_squid
