#pragma once
// A model's entries by object number. Header only: a template.

#include "tools/replay/request.hpp"

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace reprise::replay {

/// Entry is default-constructible; its address stays the same while it is in.
///
/// Memory  8 bytes for each object of the trace, and an Entry for each that was ever in at once.
template <class Entry>
class object_pool {
public:
    /// Numbers below `objects` may be asked for from now on.
    void make_room(std::size_t objects) {
        if (objects > places_.size()) {
            places_.resize(objects, nullptr);
        }
    }

    [[nodiscard]] Entry* find(object_number object) const noexcept { return places_[object]; }

    /// @pre it is not in
    Entry& add(object_number object) {
        Entry* entry = nullptr;
        if (unused_.empty()) {
            entry = &entries_.emplace_back();
        } else {
            entry = unused_.back();
            unused_.pop_back();
            *entry = Entry{};
        }
        places_[object] = entry;
        return *entry;
    }

    /// @pre it is in
    void remove(object_number object) {
        unused_.push_back(places_[object]);
        places_[object] = nullptr;
    }

    /// Starts loading what the requests behind this one will look at.
    void prefetch(std::span<const request> requests, std::size_t at) const noexcept {
        constexpr std::size_t far = 24, near = 12;
        if (at + far < requests.size()) {
            __builtin_prefetch(&places_[requests[at + far].object]);
        }
        if (at + near < requests.size()) {
            if (const auto* entry = places_[requests[at + near].object]) {
                __builtin_prefetch(entry, 1);
            }
        }
    }

private:
    std::deque<Entry> entries_;
    std::vector<Entry*> unused_;
    std::vector<Entry*> places_;
};

}  // namespace reprise::replay
