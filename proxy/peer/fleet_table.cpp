#include "proxy/peer/fleet_table.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::peer {

// Within an epoch the sequence says which is newer, exactly; ages err by what exchanges took, which
// is seconds. So where they differ by more than that could be, somebody wrote a sequence that is
// not true.
bool fleet_table::counts_more(const held& one, const held& other) noexcept {
    const auto by = one.made - other.made;
    if (one.epoch != other.epoch || by > most_error || by < -most_error) {
        return by > steady_time::duration{0};
    }
    return one.sequence > other.sequence ||
           (one.sequence == other.sequence && by > steady_time::duration{0});
}

void fleet_table::note_own(const node_figures& figures, steady_time now) {
    const std::scoped_lock lock{guard_};
    mine_ = {epoch_, mine_.sequence + 1, now, figures};
}

void fleet_table::take(std::span<const node_record> told,
                       steady_time::duration took,
                       steady_time now) {
    const std::scoped_lock lock{guard_};
    drop_old(now);
    for (const auto& one : told) {
        const auto age = one.age + took;
        if (one.name != own_ && age <= kept_for) {
            put(one.name, {one.epoch, one.sequence, now - age, one.figures});
        }
    }
}

void fleet_table::put(const std::string& name, const held& next) {
    const auto at = others_.find(name);
    if (at != others_.end()) {
        if (counts_more(next, at->second)) {
            // Ages err towards old alone, and a later record of one epoch is no older than an earlier.
            const auto made = next.epoch == at->second.epoch ? std::max(next.made, at->second.made)
                                                             : next.made;
            at->second = next;
            at->second.made = made;
        }
        return;
    }
    if (others_.size() == most_fleet_nodes - 1) {
        const auto oldest = std::min_element(
            others_.begin(), others_.end(), [](const auto& a, const auto& b) {
                return a.second.made < b.second.made;
            });
        if (oldest->second.made >= next.made) {
            return;
        }
        others_.erase(oldest);
    }
    others_.emplace(name, next);
}

void fleet_table::drop_old(steady_time now) {
    std::erase_if(others_, [now](const auto& entry) { return now - entry.second.made > kept_for; });
}

// In order of names, its own among them.
template <class Each>
void fleet_table::for_each(steady_time now, Each each) const {
    bool own_is_due = mine_.sequence != 0;
    const auto give = [&](const std::string& name, const held& one) {
        const auto age = std::chrono::ceil<std::chrono::milliseconds>(now - one.made);
        if (&one == &mine_ || age <= kept_for) {
            each(name, one, std::max(age, std::chrono::milliseconds{0}));
        }
    };
    for (const auto& [name, one] : others_) {
        if (own_is_due && own_ < name) {
            give(own_, mine_);
            own_is_due = false;
        }
        give(name, one);
    }
    if (own_is_due) {
        give(own_, mine_);
    }
}

std::vector<std::byte> fleet_table::told(steady_time now) const {
    std::vector<node_record> records;
    {
        const std::scoped_lock lock{guard_};
        records.reserve(others_.size() + 1);
        for_each(now, [&](const std::string& name, const held& one, std::chrono::milliseconds age) {
            records.push_back({name, one.epoch, one.sequence, age, one.figures});
        });
    }
    return encode_fleet(records);
}

std::vector<fleet_row> fleet_table::rows(steady_time now) const {
    std::vector<fleet_row> out;
    const std::scoped_lock lock{guard_};
    out.reserve(others_.size() + 1);
    for_each(now, [&](const std::string& name, const held& one, std::chrono::milliseconds age) {
        const bool is_own = &one == &mine_;
        out.push_back({name, is_own, is_own || age <= alive_for, age, one.figures});
    });
    return out;
}

}  // namespace reprise::proxy::peer
