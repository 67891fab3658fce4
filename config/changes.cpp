#include "config/changes.hpp"

#include "config/settings.hpp"

#include <algorithm>

namespace reprise::config {

std::vector<std::string> keep_until_restart(const options& before, options& next) {
    put_back kept;
    const bool wants_disk = !next.disk.path.empty();
    keep_in_object(settings_table(), before, next, "", kept);
    // It can change at once, but is to suit the disk that there is until then.
    if (wants_disk == next.disk.path.empty() && !next.admission.has_probation) {
        next.admission.probation = before.admission.probation;
    }
    // The same of what each file has right by itself, and the two of them together would not.
    const bool any_fronted = std::any_of(next.listeners.begin(),
                                         next.listeners.end(),
                                         [](const listener& one) { return one.proxy_protocol; });
    if (any_fronted && next.access.trusted_fronts.empty()) {
        next.access.trusted_fronts = before.access.trusted_fronts;  // or nobody could connect
        kept.names.emplace_back("access.trusted_fronts");
    }
    if (next.peering.homes && next.forwarding.pseudonym.empty()) {
        next.peering.homes = before.peering.homes;  // by a name that the next start would change
        kept.names.emplace_back("peering.homes");
    }
    return std::move(kept.names);
}

std::vector<std::string> needs_restart(const options& before, const options& after) {
    auto next = after;
    return keep_until_restart(before, next);
}

}  // namespace reprise::config
