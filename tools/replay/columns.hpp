#pragma once
// Text in columns, as tables on a terminal are made of.

#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::replay {

/// A column's head and each row's text; numbers are aligned right, words left.
struct column {
    std::string head;
    bool is_number = false;
    std::vector<std::string> cells{};
};

/// @pre there is a column, and all have as many cells
void print_columns(std::ostream& out, const std::vector<column>& columns);

/// The same as a table of a page (report.hpp).
void print_html_columns(std::ostream& out, const std::vector<column>& columns);

/// "12.50" for 0.125 and two digits.
[[nodiscard]] std::string percent_of(double share, int digits);

}  // namespace reprise::replay
