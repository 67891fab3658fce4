#include "config/changes.hpp"

#include "config/settings.hpp"

#include <algorithm>
#include <string_view>

namespace reprise::config {
namespace {

bool any_forward(const options& of) {
    return std::any_of(of.listeners.begin(), of.listeners.end(), [](const listener& one) {
        return one.mode == listener_mode::forward;
    });
}

/// As it is before, and named, where it differs.
template <class Value>
void keep(const Value& before, Value& next, std::string_view name, put_back& kept) {
    if (!(next == before)) {
        next = before;
        kept.names.emplace_back(name);
    }
}

// A file without a forward listener says of `access` what its accelerators want, be it the whole world as clients, and has
// nothing of what only forward listeners look at (unread.cpp). The one that goes on until the restart would go on so: for
// anybody, without its passwords and refusals, and by ways that are forbidden.
void keep_for_forward(const options& before, options& next, put_back& kept) {
    keep(before.access, next.access, "access", kept);
    keep(before.peers, next.peers, "peers", kept);
    keep(before.peering.never_direct, next.peering.never_direct, "peering.never_direct", kept);
    keep(before.intercept, next.intercept, "intercept", kept);
}

}  // namespace

std::vector<std::string> keep_until_restart(const options& before, options& next) {
    put_back kept;
    const bool wants_disk = !next.disk.path.empty();
    const bool wants_forward = any_forward(next);
    keep_in_object(settings_table(), before, next, "", kept);
    // It can change at once, but is to suit the disk that there is until then.
    if (wants_disk == next.disk.path.empty() && !next.admission.has_probation) {
        next.admission.probation = before.admission.probation;
    }
    if (!wants_forward && any_forward(next)) {
        keep_for_forward(before, next, kept);
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
