#include "config/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace reprise::config {
namespace {

bool same(char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
}

// Optimal string alignment, three rows of the matrix at a time.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before_last(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        last[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = same(a[i - 1], b[j - 1]) ? 0 : 1;
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
                row[j] = std::min(row[j], before_last[j - 2] + 1);
            }
        }
        std::swap(before_last, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view wanted, std::span<const std::string_view> known) {
    if (wanted.size() > 64) {
        return {};
    }
    std::string_view best;
    std::size_t closest = std::max<std::size_t>(1, wanted.size() / 3) + 1;
    for (const auto name : known) {
        if (const auto away = distance(wanted, name); away < closest) {
            closest = away;
            best = name;
        }
    }
    return best;
}

}  // namespace reprise::config
