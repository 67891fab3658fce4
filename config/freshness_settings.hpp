#pragma once
// The rows of `freshness`: how long what is stored may answer, in general and by URL.

#include "config/options.hpp"
#include "config/table.hpp"

namespace reprise::config {

[[nodiscard]] object_table<freshness_options> freshness_table();

}  // namespace reprise::config
