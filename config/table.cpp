#include "config/table.hpp"

#include "config/settings.hpp"

namespace reprise::config {
namespace {

// The objects that have a member of this name, or that this dotted path names a member of.
std::string homes_of(std::string_view name) {
    std::vector<std::string_view> homes;
    for (const auto& known : all_settings()) {
        const std::string_view path = known.path;
        const auto dot = path.rfind('.');
        if (dot != path.npos && (path.substr(dot + 1) == name || path == name)) {
            homes.push_back(path.substr(0, dot));
        }
    }
    std::string text;
    for (std::size_t i = 0; i < homes.size(); ++i) {
        text += i == 0 ? "" : i + 1 == homes.size() ? " or " : ", ";
        text += homes[i];
    }
    return text;
}

}  // namespace

void report_unknown(std::string_view name,
                    const std::vector<std::string_view>& known,
                    const place& here) {
    std::string right = "unknown setting";
    if (here.found().is_full()) {
        // It will be counted and not shown.
    } else if (const auto homes = homes_of(name); !homes.empty()) {
        right += "; it is a member of " + homes;
    } else if (const auto meant = nearest(name, known); !meant.empty()) {
        right += "; did you mean " + std::string{meant} + '?';
    } else {
        right += "; known here are ";
        for (std::size_t i = 0; i < known.size(); ++i) {
            right += i == 0 ? "" : ", ";
            right += known[i];
        }
    }
    here.member(name).wrong(std::move(right));
}

}  // namespace reprise::config
