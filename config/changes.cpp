#include "config/changes.hpp"

#include "config/settings.hpp"

namespace reprise::config {

std::vector<std::string> keep_until_restart(const options& before, options& next) {
    std::vector<std::string> kept;
    const bool wants_disk = !next.disk.path.empty();
    keep_in_object(settings_table(), before, next, "", kept);
    // It can change at once, but is to suit the disk that there is until then.
    if (wants_disk == next.disk.path.empty() && !next.admission.has_probation) {
        next.admission.probation = before.admission.probation;
    }
    return kept;
}

std::vector<std::string> needs_restart(const options& before, const options& after) {
    auto next = after;
    return keep_until_restart(before, next);
}

}  // namespace reprise::config
