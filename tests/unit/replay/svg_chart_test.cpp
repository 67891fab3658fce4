#include "tools/replay/svg_chart.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

using namespace reprise::replay;

namespace {

// The number behind `what`, from `from` on.
double number_behind(const std::string& svg, const std::string& what, std::size_t from = 0) {
    const auto at = svg.find(what, from);
    REQUIRE(at != std::string::npos);
    return std::strtod(svg.c_str() + at + what.size(), nullptr);
}

std::string drawn(const auto& chart) {
    std::ostringstream out;
    print_svg(out, chart);
    return out.str();
}

// Where the <text> that says `words` is anchored.
double place_of(const std::string& svg, const std::string& words) {
    const auto end = svg.find(">" + words + "</text>");
    REQUIRE(end != std::string::npos);
    return number_behind(svg, "<text x=\"", svg.rfind("<text", end));
}

constexpr double wide_letter = 7;

}  // namespace

TEST_SUITE_BEGIN("replay/svg_chart");

TEST_CASE("every name of a line ends within the plot, however long") {
    const std::vector<std::string> names{
        "lru, always", std::string(40, 'w'), std::string(120, 'm')};
    line_chart chart{.title = "t", .x_name = "size", .y_name = "y", .lines = {}, .x_marks = {}};
    for (const auto& name : names) {
        chart.lines.push_back({name, {{1, 10}, {2, 20}}});
    }
    const auto svg = drawn(chart);
    for (const auto& name : names) {
        CAPTURE(name);
        CHECK(place_of(svg, name) + wide_letter * static_cast<double>(name.size()) <
              number_behind(svg, "width=\""));
    }
}

TEST_CASE("every name of a bar begins within the plot, however long") {
    const std::string name(60, 'm');
    const auto svg = drawn(bar_chart{"t", {{"a", 50}, {name, 20}}});
    CHECK(place_of(svg, name) - wide_letter * static_cast<double>(name.size()) > 0);
}

TEST_SUITE_END();
