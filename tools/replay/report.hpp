#pragma once
// A run as one page of HTML that needs nothing else: figures, plots (SVG), the recommendation.

#include "tools/replay/recommend.hpp"
#include "tools/replay/results.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::replay {

struct recommendation {
    result chosen;
    std::string settings;  ///< JSON
};

void print_report(std::ostream& out,
                  const trace_summary& of,
                  const std::vector<result>& results,
                  const std::vector<recommendation>& recommended,
                  objective wanted);

}  // namespace reprise::replay
