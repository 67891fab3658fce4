#pragma once
// The part of the settings' table on the store on disk.

#include "config/options.hpp"
#include "config/table.hpp"

namespace reprise::config {

[[nodiscard]] object_table<disk_options> disk_table();

}  // namespace reprise::config
