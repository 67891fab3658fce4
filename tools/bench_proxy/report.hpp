#pragma once
// The table, and the files of results.

#include "tools/bench_proxy/comparison.hpp"
#include "tools/bench_proxy/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::bench {

/// Rows with median, least and most of the rounds, goal, and the kept median where there is one.
[[nodiscard]] std::string table_of(const result& now, const std::vector<compared_row>& compared);

/// The newest by name of the results in `folder`, which are DATE-bench.json; none where there is none.
/// @throws std::runtime_error when it can't be read
[[nodiscard]] std::optional<result> last_kept(const std::string& folder);
[[nodiscard]] result read_result(const std::string& file);
/// @throws std::runtime_error when it can't be written
void write_result(const std::string& file, const result& one);

/// The processor's name and number, and the kernel's.
[[nodiscard]] std::string this_machine();
/// "6.18" of "6.18.44-name": what follows differs between builds of one kernel and says nothing
/// about speed.
[[nodiscard]] std::string short_release(std::string_view release);
/// UTC, "2026-11-23T22:10:05Z"
[[nodiscard]] std::string now_as_text();

}  // namespace reprise::bench
