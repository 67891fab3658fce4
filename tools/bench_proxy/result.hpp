#pragma once
// What a run of the bench found: rows of numbers, where less is better, each with all its rounds.

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace reprise::bench {

struct row {
    std::string name{};  ///< "hit1k / bare": of whom, and beside what
    std::string unit{};  ///< "x" is a ratio
    std::vector<double> rounds{};
    std::optional<double> goal{};
    /// A difference below this is none, in the row's unit: what the measurement itself is off by.
    double grain = 0;
    /// Whether a worse one fails the bench. What is only said for the reader is not judged.
    bool judged = true;
    /// Where it was measured, if not in the run itself: commit and date of a kept result.
    std::string commit{}, date{};
};

/// The median; for an even number of values the mean of the middle two, for none 0.
[[nodiscard]] double median_of(std::vector<double> values);

struct result {
    std::string date, commit, form, machine;
    std::vector<row> rows;
    std::vector<std::string> skipped;  ///< what could not be measured, and why
    std::vector<std::string> notes;    ///< what the rows can't say in numbers

    [[nodiscard]] const row* find(const std::string& name) const;
};

/// @throws nlohmann::json::exception when it is no result
[[nodiscard]] nlohmann::json to_json(const result& from);
[[nodiscard]] result result_from(const nlohmann::json& from);

/// `older` with the rows of `newer` in place of its own: how a run of some rows is kept.
[[nodiscard]] result merged(result older, const result& newer);

}  // namespace reprise::bench
