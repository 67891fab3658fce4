#pragma once
// A look at a store's directory before anybody opens it.

#include "proxy/cache/disk/files.hpp"

#include <string>

namespace reprise::proxy::cache::disk {

struct examined {
    std::string trouble;  ///< why a tier can't be made of it; empty: nothing is in the way
    bool in_use = false;  ///< the trouble is another process, which may end
};

/// Makes nothing, and has let go of the lock at its return. A directory that is not there, or is
/// empty, becomes a store. May block.
[[nodiscard]] examined examine(filesystem& files, const std::string& directory);

}  // namespace reprise::proxy::cache::disk
