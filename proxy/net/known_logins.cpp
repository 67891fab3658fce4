#include "proxy/net/known_logins.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::net {

user_ptr known_logins::find(const login_hash& which,
                            const user_list& users,
                            steady_time now) noexcept {
    if (entries_.empty()) {
        return nullptr;
    }
    auto* const set = &entries_[which.low % sets * ways];
    auto* const found = std::find_if(
        set, set + ways, [&](const entry& one) { return one.which == which && now < one.until; });
    if (found == set + ways) {
        return nullptr;
    }
    if (found->list != users.generation()) {
        if (!users.holds(found->whose->mark)) {
            return nullptr;
        }
        found->list = users.generation();
    }
    return found->whose;
}

void known_logins::note(const login_hash& which,
                        const user_list& users,
                        user_ptr whose,
                        steady_time from) {
    entries_.resize(sets * ways);
    auto* const set = &entries_[which.low % sets * ways];
    auto* place = std::find_if(
        set, set + ways, [&](const entry& one) { return one.which == which; });
    if (place == set + ways) {
        place = std::min_element(
            set, set + ways, [](const entry& a, const entry& b) { return a.until < b.until; });
    }
    *place = {which, users.generation(), from + kept_for, std::move(whose)};
}

}  // namespace reprise::proxy::net
