#pragma once
// Files that a service manager handed over when it started the program (LoadCredential= in systemd.exec(5)): copies, which a
// reload reads again as they were.

#include "config/options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::server {

/// The settings that name a file below `directory` and that a reload reads again, by path, in the table's order.
[[nodiscard]] std::vector<std::string> read_again_below(const config::options& of,
                                                        std::string_view directory);

/// For whoever reloads: which files are as they were at the start, whatever has become of what they were made from. Empty:
/// none is, or nothing was handed over ($CREDENTIALS_DIRECTORY).
[[nodiscard]] std::string remark_on_handed_over(const config::options& of);

}  // namespace reprise::proxy::server
