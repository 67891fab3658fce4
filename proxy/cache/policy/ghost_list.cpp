#include "proxy/cache/policy/ghost_list.hpp"

#include <bit>
#include <new>

namespace reprise::proxy::cache {

void ghost_list::set_budget(std::uint64_t bytes) noexcept {
    budget_ = bytes;
    while (bytes_ > budget_) {
        drop_oldest();
    }
    if (ghosts_.size() > 4 * size_ + 1'024) {
        compact();
    }
}

// What is there, in tables of its size; as it is where there is no memory for those.
void ghost_list::compact() noexcept {
    try {
        std::vector<ghost> kept;
        kept.reserve(size_);
        for (auto at = oldest_; at != none; at = ghosts_[at].newer) {
            const auto place = static_cast<std::uint32_t>(kept.size());
            kept.push_back(ghosts_[at]);
            kept.back().older = place == 0 ? none : place - 1;
            kept.back().newer = place + 1 == size_ ? none : place + 1;
        }
        std::vector<std::uint32_t> slots(std::bit_ceil(2 * size_ + 64), none);
        ghosts_.swap(kept);
        slots_.swap(slots);
    } catch (const std::bad_alloc&) {
        return;
    }
    unused_ = none;
    oldest_ = size_ == 0 ? none : 0;
    newest_ = size_ == 0 ? none : static_cast<std::uint32_t>(size_ - 1);
    for (std::uint32_t at = 0; at < size_; ++at) {
        slots_[slot_of(ghosts_[at].key)] = at;
    }
}

void ghost_list::reserve(std::size_t ghosts) {
    ghosts_.reserve(ghosts);
    if (2 * ghosts > slots_.size()) {
        rehash(std::bit_ceil(2 * ghosts));
    }
}

// Where the key is, or where it would go. @pre a slot is free
std::size_t ghost_list::slot_of(std::uint64_t key) const noexcept {
    const auto mask = slots_.size() - 1;
    auto slot = static_cast<std::size_t>(key) & mask;
    while (slots_[slot] != none && ghosts_[slots_[slot]].key != key) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

void ghost_list::rehash(std::size_t slots) {
    std::vector<std::uint32_t> fresh(slots, none);
    slots_.swap(fresh);
    for (auto at = oldest_; at != none; at = ghosts_[at].newer) {
        slots_[slot_of(ghosts_[at].key)] = at;
    }
}

bool ghost_list::contains(const filter::key_hash& key) const noexcept {
    return size_ != 0 && slots_[slot_of(key.low)] != none;
}

void ghost_list::add(const filter::key_hash& key, std::uint64_t bytes) noexcept {
    take(key);
    if (bytes > budget_) {
        return;
    }
    while (bytes_ + bytes > budget_) {
        drop_oldest();
    }
    if (unused_ == none) {
        try {
            if (2 * (size_ + 1) > slots_.size()) {
                rehash(slots_.empty() ? 64 : 2 * slots_.size());
            }
            ghosts_.emplace_back();
        } catch (const std::bad_alloc&) {
            return;
        }
        unused_ = static_cast<std::uint32_t>(ghosts_.size() - 1);
    }
    const auto at = unused_;
    unused_ = ghosts_[at].older;
    ghosts_[at] = {.key = key.low, .bytes = bytes, .newer = none, .older = newest_};
    (newest_ != none ? ghosts_[newest_].newer : oldest_) = at;
    newest_ = at;
    slots_[slot_of(key.low)] = at;
    bytes_ += bytes;
    ++size_;
}

bool ghost_list::take(const filter::key_hash& key) noexcept {
    if (size_ == 0) {
        return false;
    }
    const auto slot = slot_of(key.low);
    if (slots_[slot] == none) {
        return false;
    }
    forget(slot);
    return true;
}

void ghost_list::drop_oldest() noexcept {
    if (oldest_ != none) {
        forget(slot_of(ghosts_[oldest_].key));
    }
}

void ghost_list::forget(std::size_t slot) noexcept {
    const auto at = slots_[slot];
    auto& gone = ghosts_[at];
    (gone.newer != none ? ghosts_[gone.newer].older : newest_) = gone.older;
    (gone.older != none ? ghosts_[gone.older].newer : oldest_) = gone.newer;
    bytes_ -= gone.bytes;
    --size_;
    free_slot(slot);
    gone.older = unused_;
    unused_ = at;
}

// Backward shift (Knuth 6.4, algorithm R): whatever further on may now be found sooner moves here.
void ghost_list::free_slot(std::size_t slot) noexcept {
    const auto mask = slots_.size() - 1;
    for (auto next = (slot + 1) & mask; slots_[next] != none; next = (next + 1) & mask) {
        const auto home = static_cast<std::size_t>(ghosts_[slots_[next]].key) & mask;
        if (((next - home) & mask) >= ((next - slot) & mask)) {
            slots_[slot] = slots_[next];
            slot = next;
        }
    }
    slots_[slot] = none;
}

std::uint64_t ghost_list::memory() const noexcept {
    return ghosts_.capacity() * sizeof(ghost) + slots_.capacity() * sizeof(slots_[0]);
}

}  // namespace reprise::proxy::cache
