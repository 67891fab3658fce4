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

void print_report(std::ostream& out,
                  const trace_summary& of,
                  const std::vector<result>& results,
                  const std::vector<recommendation>& recommended,
                  objective wanted);

}  // namespace reprise::replay
