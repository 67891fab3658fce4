#pragma once
// The part of the settings' table on admission: a policy can be chosen at the top, for a listener
// and for a rule, in the same words.

#include "config/options.hpp"
#include "config/table.hpp"

namespace reprise::config {

[[nodiscard]] object_table<admission_choice> choice_table();
[[nodiscard]] object_table<admission_options> admission_table();

}  // namespace reprise::config
