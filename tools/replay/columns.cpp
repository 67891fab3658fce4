#include "tools/replay/columns.hpp"

#include "tools/replay/svg_chart.hpp"

#include <algorithm>
#include <cstdio>
#include <ostream>

namespace reprise::replay {

void print_columns(std::ostream& out, const std::vector<column>& columns) {
    const auto rows = columns.front().cells.size();
    for (std::size_t row = 0; row <= rows; ++row) {
        for (const auto& one : columns) {
            auto width = one.head.size();
            for (const auto& cell : one.cells) {
                width = std::max(width, cell.size());
            }
            const auto& text = row == 0 ? one.head : one.cells[row - 1];
            const std::string pad(width - text.size(), ' ');
            out << (one.is_number ? pad + text : text + pad)
                << (&one == &columns.back() ? "" : "  ");
        }
        out << '\n';
    }
}

std::string percent_of(double share, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, 100 * share);
    return text;
}

void print_html_columns(std::ostream& out, const std::vector<column>& columns) {
    out << "<table class=\"words\"><tr>";
    for (const auto& one : columns) {
        out << "<th>" << html_text(one.head);
    }
    out << "</tr>\n";
    for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
        out << "<tr>";
        for (const auto& one : columns) {
            out << (one.is_number ? "<td class=\"number\">" : "<td class=\"word\">")
                << html_text(one.cells[row]);
        }
        out << "</tr>\n";
    }
    out << "</table>\n";
}

}  // namespace reprise::replay
