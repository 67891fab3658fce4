#include "proxy/peer/fleet_rounds.hpp"

#include <algorithm>
#include <cstddef>
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

// One that has not had its turn in this round yet has it now; where there is none, another is asked once more.
const fleet_rounds::member* fleet_rounds::one_that_is_well() {
    const auto is_well = [](const member& one) { return one.is_well; };
    const auto from = members_.begin() + static_cast<std::ptrdiff_t>(turn_);
    const auto next = std::find_if(from, members_.end(), is_well);
    if (next != members_.end()) {
        std::swap(*from, *next);
        ++turn_;
        return &*from;
    }
    const auto known = std::count_if(members_.begin(), members_.end(), is_well);
    if (known == 0) {
        return nullptr;
    }
    auto which = static_cast<std::ptrdiff_t>(random_()) % known;
    return &*std::find_if(members_.begin(), members_.end(), [&which](const member& one) {
        return one.is_well && which-- == 0;
    });
}

std::optional<std::string> fleet_rounds::next(steady_time now) {
    if (std::exchange(last_failed_, false)) {
        if (const auto* const one = one_that_is_well()) {
            return one->name;
        }
    }
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
    at->is_well = well;
    last_failed_ = !well;
    at->failures = well ? 0 : std::min(at->failures + 1, 6u);
    if (!well) {
        at->rests_until = now + std::min(longest_rest, first_rest * (1 << (at->failures - 1)));
    }
}

}  // namespace reprise::proxy::peer
