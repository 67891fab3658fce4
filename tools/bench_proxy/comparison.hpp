#pragma once
// Whether a row is worse than one that was kept, or only looks so.
//
// Worse is what three things say together: the median is more than 5 % above the kept one; by more
// than the row's grain; and the rounds agree, that is, all of them but the luckiest one lie above
// all of the kept ones but the unluckiest. Rounds that differ by chance overlap: of five against
// five of the same thing the last condition alone holds in 1 of 10 rows, and a run measures a row
// that looks worse a second time before it believes it. Where the median says worse and the rounds
// do not agree, the row is `unclear`: it is named and fails nothing.

#include "tools/bench_proxy/result.hpp"

#include <string>
#include <vector>

namespace reprise::bench {

enum class verdict { no_row, same, better, unclear, worse };
[[nodiscard]] const char* to_string(verdict one) noexcept;

/// The share by which a median may be above the kept one.
inline constexpr double tolerance = 0.05;

/// @pre less is better. A row that is not judged is never worse; one without rounds is no_row.
[[nodiscard]] verdict compare(const row& now, const row& kept);

struct compared_row {
    std::string name, unit;
    double now = 0, kept = 0;
    verdict said = verdict::no_row;
};

/// One for each row of `now`, in order; and those that were judged in `kept` and are not in `now`
/// as no_row where `whole` says that all should be there.
[[nodiscard]] std::vector<compared_row> compare(const result& now, const result& kept, bool whole);

}  // namespace reprise::bench
