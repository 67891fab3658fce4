#pragma once
// A run as one page of HTML that needs nothing else: figures, plots (SVG), the recommendation.

#include "tools/replay/recommend.hpp"
#include "tools/replay/results.hpp"
#include "tools/replay/svg_chart.hpp"

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::replay {

struct recommendation {
    result chosen;
    std::string settings;  ///< JSON
};

/// A line for each configuration, a point for each size.
[[nodiscard]] line_chart over_sizes(const std::vector<result>& results,
                                    const std::string& title,
                                    const std::string& y_name,
                                    const std::function<double(const tally&)>& value);

/// What every page begins with: its look and the title.
void begin_page(std::ostream& out, const std::string& title);
/// And what was read.
void begin_page(std::ostream& out, const trace_summary& of, const std::string& title);
/// How much is asked for once, with a plot.
void print_asked_once(std::ostream& out, const trace_summary& of);
/// A table of all results.
void print_rows(std::ostream& out, const std::vector<result>& results);
void end_page(std::ostream& out);

void print_report(std::ostream& out,
                  const trace_summary& of,
                  const std::vector<result>& results,
                  const std::vector<recommendation>& recommended,
                  objective wanted);

}  // namespace reprise::replay
