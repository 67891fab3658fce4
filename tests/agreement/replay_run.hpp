#pragma once
// What the replay tool says of a trace: the program itself, run as an operator runs it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reprise::tests {

/// One row of its table, by the names of the columns.
using replay_row = std::map<std::string, std::string>;

/// Runs reprise-replay with these arguments and "--csv", and gives the rows it printed.
/// @throws std::runtime_error with what it said, when it fails
[[nodiscard]] std::vector<replay_row> run_replay(const std::vector<std::string>& arguments);

/// A column as a number. @throws std::runtime_error naming it, when it is not there
[[nodiscard]] double number_in(const replay_row& row, const std::string& column);

}  // namespace reprise::tests
