#include "proxy/cache/disk/pending_notes.hpp"

#include "proxy/base/let_go.hpp"
#include "proxy/cache/disk/room_in.hpp"

#include <utility>

namespace reprise::proxy::cache::disk {

// True when one more URL may be noted.
bool pending_notes::make_room(bool known) {
    if (everything_) {
        return false;
    }
    if (!known && dropped_.size() + expired_.size() >= most_) {
        everything_ = true;
        let_go(dropped_);
        let_go(expired_);
        return false;
    }
    return true;
}

bool pending_notes::add(const dropped_url& note) {
    if (!make_room(dropped_.contains(note.primary))) {
        return false;
    }
    dropped_.insert(note.primary);
    return true;
}

bool pending_notes::add(const expired_url& note) {
    if (!make_room(expired_.contains(note.primary))) {
        return false;
    }
    expired_.try_emplace(note.primary, note.time);
    return true;
}

bool pending_notes::add(const drop_note& note) {
    if (drops_.size() >= most_) {
        return false;
    }
    drops_.push_back(note);
    return true;
}

void pending_notes::room_for_call() {
    if (calls_.size() >= most_) {
        calls_.erase(calls_.begin(),
                     calls_.begin() + static_cast<std::ptrdiff_t>((calls_.size() + 1) / 2));
    }
    make_room_in(calls_);
}

void pending_notes::call(std::function<void()> kept) {
    room_for_call();
    calls_.push_back(std::move(kept));
}

pending_notes pending_notes::take() noexcept {
    return std::exchange(*this, pending_notes{most_});
}

void pending_notes::urls_are_done() noexcept {
    let_go(dropped_);
    let_go(expired_);
    everything_ = false;
}

}  // namespace reprise::proxy::cache::disk
