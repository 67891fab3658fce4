#include "tools/replay/arc.hpp"

#include <algorithm>

namespace reprise::replay {

using proxy::cache::evictable;

namespace {

enum queue : std::uint8_t { seen_once, seen_again };

double ratio(std::uint64_t a, std::uint64_t b) noexcept {
    return b == 0 ? 1 : std::max(1.0, static_cast<double>(a) / static_cast<double>(b));
}

}  // namespace

arc_policy::arc_policy(std::uint64_t capacity_bytes) : capacity_{capacity_bytes} {
    set_capacity(capacity_bytes);
}

void arc_policy::set_capacity(std::uint64_t bytes) {
    capacity_ = bytes;
    target_ = std::min(target_, static_cast<double>(bytes));
    ghosts_of_once_.set_budget(2 * bytes);
    ghosts_of_again_.set_budget(2 * bytes);
    bound_ghosts();
}

void arc_policy::inserted(evictable& entry) {
    const auto bytes = static_cast<double>(entry.charge);
    const auto once = ghosts_of_once_.bytes();
    const auto again = ghosts_of_again_.bytes();
    came_back_ = false;
    entry.queue = seen_again;
    if (ghosts_of_once_.take(entry.key)) {
        target_ = std::min(target_ + bytes * ratio(again, once), static_cast<double>(capacity_));
    } else if (ghosts_of_again_.take(entry.key)) {
        target_ = std::max(target_ - bytes * ratio(once, again), 0.0);
        came_back_ = true;
    } else {
        entry.queue = seen_once;
    }
    (entry.queue == seen_once ? once_ : again_).push(entry);
    bound_ghosts();
}

void arc_policy::used(evictable& entry) noexcept {
    if (entry.queue == seen_again) {
        again_.make_newest(entry);
        return;
    }
    once_.remove(entry);
    entry.queue = seen_again;
    again_.push(entry);
}

void arc_policy::removed(evictable& entry) noexcept {
    (entry.queue == seen_once ? once_ : again_).remove(entry);
}

// The paper's REPLACE. The newcomer is in already, as T1's or T2's newest.
evictable* arc_policy::evict() noexcept {
    const auto once = static_cast<double>(once_.bytes());
    const bool from_once = !once_.empty() &&
                           (again_.empty() || once > target_ || (came_back_ && once >= target_));
    auto& list = from_once ? once_ : again_;
    auto* const victim = list.oldest();
    if (victim != nullptr) {
        list.remove(*victim);
        (from_once ? ghosts_of_once_ : ghosts_of_again_).add(victim->key, victim->charge);
        bound_ghosts();
    }
    return victim;
}

void arc_policy::bound_ghosts() noexcept {
    while (ghosts_of_once_.size() != 0 && once_.bytes() + ghosts_of_once_.bytes() > capacity_) {
        ghosts_of_once_.drop_oldest();
    }
    const auto all = [this] {
        return once_.bytes() + again_.bytes() + ghosts_of_once_.bytes() + ghosts_of_again_.bytes();
    };
    while (ghosts_of_again_.size() != 0 && all() > 2 * capacity_) {
        ghosts_of_again_.drop_oldest();
    }
}

std::uint64_t arc_policy::overhead() const noexcept {
    return ghosts_of_once_.memory() + ghosts_of_again_.memory();
}

}  // namespace reprise::replay
