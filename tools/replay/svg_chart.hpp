#pragma once
// Line charts and bars as SVG text, for a page without scripts.

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace reprise::replay {

struct chart_line {
    std::string name;
    std::vector<std::pair<double, double>> points;  ///< by x, ascending
};

struct line_chart {
    std::string title;
    std::string x_name, y_name;
    std::vector<chart_line> lines;
    /// Printed at the axis under each x that a line has; x's scale is logarithmic.
    std::vector<std::pair<double, std::string>> x_marks;
    bool y_is_bytes = false;  ///< else percent, 0 to 100
};

struct bar_chart {
    std::string title;
    std::vector<std::pair<std::string, double>> bars;  ///< percent, 0 to 100
};

void print_svg(std::ostream& out, const line_chart& chart);
void print_svg(std::ostream& out, const bar_chart& chart);

/// As text between tags or in an attribute.
[[nodiscard]] std::string html_text(const std::string& text);

}  // namespace reprise::replay
