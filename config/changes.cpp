#include "config/changes.hpp"

#include "config/settings.hpp"

namespace reprise::config {

std::vector<std::string> keep_until_restart(const options& before, options& next) {
    std::vector<std::string> kept;
    keep_in_object(settings_table(), before, next, "", kept);
    return kept;
}

std::vector<std::string> needs_restart(const options& before, const options& after) {
    auto next = after;
    return keep_until_restart(before, next);
}

}  // namespace reprise::config
