#pragma once
// What a reload cannot do.
// On SIGHUP new settings take the old ones' place; the few that are built into what is already
// running (sockets, threads, the filter's size) keep their value until a restart, and the operator
// is told which.

#include "config/options.hpp"

#include <string>
#include <vector>

namespace reprise::config {

/// Puts back into `next` what cannot change live, whatever it says there: what is left in it is
/// what can come into force beside `before`. Walks the rows, which know which those are, so that
/// none is forgotten. Returns what it has put back, as needs_restart does.
std::vector<std::string> keep_until_restart(const options& before, options& next);

/// The settings that differ and cannot change live, by path and in the table's order:
/// "threads", "listeners[0].upstream"; "listeners" when their number differs. Empty: all of
/// `after` can come into force.
[[nodiscard]] std::vector<std::string> needs_restart(const options& before, const options& after);

}  // namespace reprise::config
