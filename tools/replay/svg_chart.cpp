#include "tools/replay/svg_chart.hpp"

#include "tools/replay/setup.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace reprise::replay {

namespace {

// Okabe and Ito's colours, which most colour-blind readers tell apart; then the same dashed.
constexpr std::array colours{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"};
constexpr std::array dashes{"", "7 4", "2 3", "9 3 2 3"};

constexpr double left = 80, top = 36, width = 520, height = 300, below = 50;
constexpr double before_name = 48;  // a piece of its line, between the plot and a line's name

// A letter is seldom wider in a sans-serif of 12 pixels, and a name is long enough to even out.
constexpr double letter = 7.5;

double width_of(const std::string& text) {
    return letter * static_cast<double>(text.size());
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

// 1, 2 or 5 times a power of ten (of two, for bytes) that makes about five steps to `most`.
double step_for(double most, bool is_bytes) {
    if (most <= 0) {
        return 1;
    }
    if (is_bytes) {
        return std::exp2(std::ceil(std::log2(most / 5)));
    }
    const auto power = std::pow(10, std::floor(std::log10(most / 5)));
    for (const double times : {1.0, 2.0, 5.0}) {
        if (most / (times * power) <= 5.5) {
            return times * power;
        }
    }
    return 10 * power;
}

void text_at(std::ostream& out,
             double x,
             double y,
             const char* anchor,
             const std::string& text,
             const char* more = "") {
    out << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" text-anchor=\"" << anchor
        << "\" " << more << '>' << html_text(text) << "</text>\n";
}

void begin_svg(std::ostream& out, double wide, double high, const std::string& title) {
    out << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << number(wide) << ' '
        << number(high) << "\" width=\"" << number(wide) << "\" height=\"" << number(high)
        << "\" role=\"img\" aria-label=\"" << html_text(title)
        << "\" font-family=\"sans-serif\" font-size=\"12\">\n";
    text_at(out, left, 18, "start", title, "font-weight=\"bold\" font-size=\"14\"");
}

}  // namespace

std::string html_text(const std::string& text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        default: out.push_back(c);
        }
    }
    return out;
}

void print_svg(std::ostream& out, const line_chart& chart) {
    double least_x = 1e300, most_x = 0, most_y = 0;
    for (const auto& line : chart.lines) {
        for (const auto& [x, y] : line.points) {
            least_x = std::min(least_x, x);
            most_x = std::max(most_x, x);
            most_y = std::max(most_y, y);
        }
    }
    const auto step = step_for(most_y, chart.y_is_bytes);
    most_y = step * std::max(1.0, std::ceil(most_y / step - 1e-9));
    const auto across = [&](double x) {
        const auto range = std::log(most_x) - std::log(least_x);
        return left + (range <= 0 ? 0.5 : (std::log(x) - std::log(least_x)) / range) * width;
    };
    const auto up = [&](double y) { return top + height - y / most_y * height; };

    const auto rows = static_cast<double>(chart.lines.size());
    double legend = 0;
    for (const auto& line : chart.lines) {
        legend = std::max(legend, width_of(line.name));
    }
    begin_svg(out,
              std::max(left + width + before_name + legend + 10, left + width_of(chart.title)),
              std::max(top + height + below, top + 18 * rows + 10),
              chart.title);
    for (double y = 0; y <= most_y * 1.0001; y += step) {
        out << "<line x1=\"" << number(left) << "\" x2=\"" << number(left + width) << "\" y1=\""
            << number(up(y)) << "\" y2=\"" << number(up(y)) << "\" stroke=\"#ddd\"/>\n";
        char percent[32];
        std::snprintf(percent, sizeof percent, "%g %%", y);
        text_at(out, left - 6, up(y) + 4, "end", chart.y_is_bytes ? bytes_text(y) : percent);
    }
    for (const auto& [x, name] : chart.x_marks) {
        out << "<line x1=\"" << number(across(x)) << "\" x2=\"" << number(across(x)) << "\" y1=\""
            << number(top) << "\" y2=\"" << number(top + height) << "\" stroke=\"#eee\"/>\n";
        text_at(out, across(x), top + height + 16, "middle", name);
    }
    text_at(out, left + width / 2, top + height + 36, "middle", chart.x_name);
    text_at(out, left, top - 6, "start", chart.y_name, "fill=\"#666\"");
    for (std::size_t i = 0; i < chart.lines.size(); ++i) {
        const auto* const colour = colours[i % colours.size()];
        const auto* const dash = dashes[i / colours.size() % dashes.size()];
        const auto style = std::string{"fill=\"none\" stroke-width=\"2\" stroke=\""} + colour +
                           "\" stroke-dasharray=\"" + dash + "\"";
        out << "<polyline " << style << " points=\"";
        for (const auto& [x, y] : chart.lines[i].points) {
            out << number(across(x)) << ',' << number(up(y)) << ' ';
        }
        out << "\"/>\n";
        for (const auto& [x, y] : chart.lines[i].points) {
            out << "<circle cx=\"" << number(across(x)) << "\" cy=\"" << number(up(y))
                << "\" r=\"3\" fill=\"" << colour << "\"/>\n";
        }
        const auto y = top + 8 + 18 * static_cast<double>(i);
        const auto x = left + width + 16;
        out << "<line " << style << " x1=\"" << number(x) << "\" x2=\"" << number(x + 26)
            << "\" y1=\"" << number(y) << "\" y2=\"" << number(y) << "\"/>\n";
        text_at(out, left + width + before_name, y + 4, "start", chart.lines[i].name);
    }
    out << "</svg>\n";
}

void print_svg(std::ostream& out, const bar_chart& chart) {
    constexpr double row = 28;
    double names = 120;
    for (const auto& [name, percent] : chart.bars) {
        names = std::max(names, width_of(name) + 8 - left);
    }
    const auto high = top + row * static_cast<double>(chart.bars.size()) + 10;
    begin_svg(out, left + names + width, high, chart.title);
    for (std::size_t i = 0; i < chart.bars.size(); ++i) {
        const auto& [name, percent] = chart.bars[i];
        const auto y = top + row * static_cast<double>(i);
        const auto full = width - 80;
        text_at(out, left + names - 8, y + 15, "end", name);
        out << "<rect x=\"" << number(left + names) << "\" y=\"" << number(y) << "\" width=\""
            << number(full) << "\" height=\"20\" fill=\"#eee\"/>\n<rect x=\""
            << number(left + names) << "\" y=\"" << number(y) << "\" width=\""
            << number(full * std::clamp(percent, 0.0, 100.0) / 100) << "\" height=\"20\" fill=\""
            << colours[0] << "\"/>\n";
        text_at(out, left + names + full + 6, y + 15, "start", number(percent) + " %");
    }
    out << "</svg>\n";
}

}  // namespace reprise::replay
