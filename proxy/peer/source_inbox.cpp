#include "proxy/peer/source_inbox.hpp"

#include <new>
#include <utility>

namespace reprise::proxy::peer {

// The store tells under its locks and can do nothing about it.
bool source_inbox::push(const source_event& event) noexcept {
    const std::scoped_lock lock{guard_};
    const bool is_urgent = is_promise(event);
    const bool stirs = is_urgent ? !has_promise_ : events_.empty() && !will_look_;
    try {
        events_.push_back(event);
        has_promise_ = has_promise_ || is_urgent;
    } catch (const std::bad_alloc&) {
        ++lost_;
        lost_end_of_promise_ = lost_end_of_promise_ || (event.what == source_event::kind::gone &&
                                                        event.by == holder::under_way);
    }
    return stirs;
}

bool source_inbox::take(std::vector<source_event>& into) noexcept {
    into.clear();
    const std::scoped_lock lock{guard_};
    std::swap(into, events_);
    has_promise_ = false;
    return std::exchange(lost_end_of_promise_, false);
}

bool source_inbox::note_plan(bool looks) noexcept {
    const std::scoped_lock lock{guard_};
    return std::exchange(will_look_, looks) && !looks && !events_.empty();
}

std::uint64_t source_inbox::lost() const noexcept {
    const std::scoped_lock lock{guard_};
    return lost_;
}

}  // namespace reprise::proxy::peer
