#include "config/changes.hpp"

#include "config/settings.hpp"

namespace reprise::config {

std::vector<std::string> needs_restart(const options& before, const options& after) {
    std::vector<std::string> differing;
    compare_objects(settings_table(), before, after, "", differing);
    return differing;
}

}  // namespace reprise::config
