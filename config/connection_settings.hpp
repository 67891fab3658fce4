#pragma once
// The part of the settings' table on connections: what one may take, how long it may wait, and
// how origins and name servers are reached.

#include "config/options.hpp"
#include "config/table.hpp"

namespace reprise::config {

[[nodiscard]] object_table<limit_options> limits_table();
[[nodiscard]] object_table<timeout_options> timeouts_table();
[[nodiscard]] object_table<origin_options> origins_table();
[[nodiscard]] object_table<dns_options> dns_table();

}  // namespace reprise::config
