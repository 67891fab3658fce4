#include "proxy/net/known_logins.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::net {

user_name known_logins::find(const login_hash& which,
                             std::uint64_t generation,
                             steady_time now) const noexcept {
    if (entries_.empty()) {
        return nullptr;
    }
    const auto* const set = &entries_[which.low % sets * ways];
    const auto* const found = std::find_if(set, set + ways, [&](const entry& one) {
        return one.which == which && one.generation == generation && now < one.until;
    });
    return found == set + ways ? nullptr : found->whose;
}

void known_logins::note(const login_hash& which,
                        std::uint64_t generation,
                        user_name whose,
                        steady_time from) {
    entries_.resize(sets * ways);
    auto* const set = &entries_[which.low % sets * ways];
    auto* place = std::find_if(
        set, set + ways, [&](const entry& one) { return one.which == which; });
    if (place == set + ways) {
        place = std::min_element(
            set, set + ways, [](const entry& a, const entry& b) { return a.until < b.until; });
    }
    *place = {which, generation, from + kept_for, std::move(whose)};
}

}  // namespace reprise::proxy::net
