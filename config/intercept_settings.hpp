#pragma once
// The part of the settings' table on interception: which tunnels are opened, for whom, and with whose
// certificates.

#include "config/options.hpp"
#include "config/table.hpp"

namespace reprise::config {

[[nodiscard]] object_table<intercept_options> intercept_table();

}  // namespace reprise::config
