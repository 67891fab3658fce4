#pragma once
// The settings: one table from which parser, checks, --help-config, REFERENCE.md and the list of
// what a reload cannot change are made.

#include "config/options.hpp"
#include "config/table.hpp"

#include <vector>

namespace reprise::config {

/// The whole table. Built at the first call; any number of threads may use it.
[[nodiscard]] const object_table<options>& settings_table();

/// What people are told of every setting, in the table's order, an object before its members.
/// Built at the first call; any number of threads may use it.
[[nodiscard]] const std::vector<setting>& all_settings();

}  // namespace reprise::config
