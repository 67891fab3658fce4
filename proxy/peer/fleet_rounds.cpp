#include "proxy/peer/fleet_rounds.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::peer {

void fleet_rounds::set(const std::vector<std::string>& names) {
    std::vector<member> next;
    for (const auto& name : names) {
        const auto before = std::find_if(
            members_.begin(), members_.end(), [&](const auto& one) { return one.name == name; });
        next.push_back(before == members_.end() ? member{name} : *before);
    }
    members_ = std::move(next);
    turn_ = members_.size();
}

std::optional<std::string> fleet_rounds::next(steady_time now) {
    // What is left of this round, and a whole one.
    for (std::size_t tried = 0; tried < 2 * members_.size(); ++tried) {
        if (turn_ >= members_.size()) {
            std::shuffle(members_.begin(), members_.end(), random_);
            turn_ = 0;
        }
        const auto& one = members_[turn_++];
        if (one.rests_until <= now) {
            return one.name;
        }
    }
    return std::nullopt;
}

void fleet_rounds::ended(std::string_view name, bool well, steady_time now) {
    const auto at = std::find_if(
        members_.begin(), members_.end(), [&](const auto& one) { return one.name == name; });
    if (at == members_.end()) {
        return;
    }
    at->failures = well ? 0 : std::min(at->failures + 1, 6u);
    if (!well) {
        at->rests_until = now + std::min(longest_rest, first_rest * (1 << (at->failures - 1)));
    }
}

}  // namespace reprise::proxy::peer
