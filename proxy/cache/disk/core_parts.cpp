#include "proxy/base/let_go.hpp"
#include "proxy/cache/disk/core.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

// What core is made of beside the index: the segments as they can be read, soft purges, and what went while the
// index was filled.

namespace reprise::proxy::cache::disk {

segment_table::view segment_table::at(std::uint32_t number) const {
    assert(number < slots_.size());
    const auto& home = slots_[number];
    const std::lock_guard lock{home.guard};
    return home.now;
}

std::uint64_t segment_table::sequence(std::uint32_t number) const {
    const auto& home = slots_[number];
    const std::lock_guard lock{home.guard};
    return home.now.sequence;
}

void segment_table::begin(std::uint32_t number,
                          std::shared_ptr<file> from,
                          std::uint64_t sequence,
                          wall_time begun) {
    auto& home = slots_[number];
    std::shared_ptr<file> before;  // closed after the lock
    const std::lock_guard lock{home.guard};
    before = std::exchange(home.now.from, std::move(from));
    home.now.sequence = home.left = sequence;
    home.begun = begun;
    auto newest = newest_.load(std::memory_order_relaxed);
    while (newest < sequence &&
           !newest_.compare_exchange_weak(newest, sequence, std::memory_order_relaxed)) {
    }
}

void segment_table::end(std::uint32_t number) {
    auto& home = slots_[number];
    const std::lock_guard lock{home.guard};
    home.now.sequence = 0;
}

void segment_table::removed(std::uint32_t number, bool for_good) {
    auto& home = slots_[number];
    std::shared_ptr<file> before;  // closed after the lock
    const std::lock_guard lock{home.guard};
    assert(home.now.sequence == 0);
    before = std::exchange(home.now.from, nullptr);
    home.left = for_good ? 0 : home.left;
}

std::uint32_t segment_table::files() const {
    std::uint32_t sum = 0;
    for (const auto& home : slots_) {
        const std::lock_guard lock{home.guard};
        sum += home.now.from || home.left == unread ? 1 : 0;
    }
    return sum;
}

void segment_table::unreadable(std::uint32_t number) {
    auto& home = slots_[number];
    const std::lock_guard lock{home.guard};
    home.left = unread;
}

bool segment_table::is_unread(std::uint32_t number) const {
    return left_in_file(number) == unread;
}

bool segment_table::has_unread() const {
    for (std::uint32_t number = 0; number < size(); ++number) {
        if (is_unread(number)) {
            return true;
        }
    }
    return false;
}

std::uint64_t segment_table::left_in_file(std::uint32_t number) const {
    const auto& home = slots_[number];
    const std::lock_guard lock{home.guard};
    return home.left;
}

std::optional<wall_time> segment_table::oldest() const {
    std::uint64_t lowest = 0;
    std::optional<wall_time> begun;
    for (const auto& home : slots_) {
        const std::lock_guard lock{home.guard};
        if (home.now.sequence != 0 && (lowest == 0 || home.now.sequence < lowest)) {
            lowest = home.now.sequence;
            begun = home.begun;
        }
    }
    return begun;
}

bool soft_expiries::note(const filter::key_hash& primary, const mark& made) {
    const std::unique_lock lock{guard_};
    const auto it = marks_.find(primary);
    if (it != marks_.end()) {
        // What the earlier one ended stays ended since then: times only matter to what is between.
        it->second.before = std::max(it->second.before, made.before);
        return true;
    }
    if (marks_.size() >= most) {
        return false;
    }
    marks_.emplace(primary, made);
    count_.store(marks_.size(), std::memory_order_release);
    return true;
}

void soft_expiries::settle(const filter::key_hash& primary, const log_position& before) {
    const std::unique_lock lock{guard_};
    const auto it = marks_.find(primary);
    if (it != marks_.end() && it->second.before == end_of_time) {
        it->second.before = before;
    }
}

void soft_expiries::settle_all(const log_position& before) {
    const std::unique_lock lock{guard_};
    for (auto& one : marks_) {
        if (one.second.before == end_of_time) {
            one.second.before = before;
        }
    }
}

std::optional<wall_time> soft_expiries::since(const filter::key_hash& primary,
                                              const log_position& written) const {
    if (count_.load(std::memory_order_acquire) == 0) {
        return std::nullopt;
    }
    const std::shared_lock lock{guard_};
    const auto it = marks_.find(primary);
    if (it == marks_.end() || written >= it->second.before) {
        return std::nullopt;
    }
    return it->second.time;
}

void soft_expiries::forget_before(const log_position& oldest) {
    const std::unique_lock lock{guard_};
    std::erase_if(marks_, [&](const auto& one) { return one.second.before <= oldest; });
    count_.store(marks_.size(), std::memory_order_release);
}

void soft_expiries::forget(const filter::key_hash& primary) noexcept {
    const std::unique_lock lock{guard_};
    marks_.erase(primary);
    count_.store(marks_.size(), std::memory_order_release);
}

std::vector<std::pair<filter::key_hash, soft_expiries::mark>> soft_expiries::all() const {
    const std::shared_lock lock{guard_};
    return {marks_.begin(), marks_.end()};
}

void gone_while_loading::note(const filter::key_hash& key) noexcept {
    const std::lock_guard lock{guard_};
    if (!open_ || everything_) {
        return;
    }
    try {
        keys_.insert(key);
        if (keys_.size() > most) {
            take_everything();
        }
    } catch (const std::bad_alloc&) {
        if (placed_ == places_.size()) {
            take_everything();
            return;
        }
        places_[placed_++] = key;
    }
}

void gone_while_loading::take_everything() noexcept {
    everything_ = true;
    let_go(keys_);
}

bool gone_while_loading::has(const filter::key_hash& key) const {
    const std::lock_guard lock{guard_};
    const auto end = places_.begin() + static_cast<std::ptrdiff_t>(placed_);
    return everything_ || keys_.contains(key) || std::find(places_.begin(), end, key) != end;
}

bool gone_while_loading::has_everything() const {
    const std::lock_guard lock{guard_};
    return everything_;
}

void gone_while_loading::close() {
    const std::lock_guard lock{guard_};
    open_ = false;
    placed_ = 0;
    let_go(keys_);
}

}  // namespace reprise::proxy::cache::disk
