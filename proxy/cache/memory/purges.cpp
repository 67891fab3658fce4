#include "proxy/cache/memory/purges.hpp"

#include "proxy/cache/memory/tags.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

// A ban is numbered by its epoch, and each response says up to which epoch it was held against them: so
// one look over the bans behind that tells what has ended it since. The list is bounded; where one
// falls out, everything that was not held against it by then counts as ended.

namespace reprise::proxy::cache {

std::string_view to_string(purge_mode mode) noexcept {
    switch (mode) {
    case purge_mode::hard: return "hard";
    case purge_mode::soft: return "soft";
    }
    return "hard";
}

key_parts split_key(std::string_view key) noexcept {
    key_parts parts;
    const auto space = std::min(key.find(' '), key.size());
    parts.url = key.substr(0, space);
    parts.space = key.substr(space);
    const auto slashes = parts.url.find("//");
    const auto host = slashes == std::string_view::npos ? 0 : slashes + 2;
    parts.origin = parts.url.substr(0, std::min(parts.url.find('/', host), parts.url.size()));
    return parts;
}

bool purge_list::ban::same(const ban& other) const noexcept {
    return by_tag == other.by_tag && tag == other.tag && prefix == other.prefix &&
           space == other.space;
}

void purge_list::ban::follow(const ban& old) noexcept {
    earlier = old.epoch;
    first_time = old.earlier != 0 ? old.first_time : old.time;
}

// When what was checked up to `since` was first met. Of those between the first and the last but one
// nobody knows any more which that was: the first is surely not too late.
wall_time purge_list::ban::met_at(std::uint64_t since) const noexcept {
    return since < earlier ? first_time : time;
}

bool purge_list::ban::meets(std::string_view key,
                            std::span<const std::uint64_t> tags) const noexcept {
    if (by_tag && !std::binary_search(tags.begin(), tags.end(), tag) &&
        !std::binary_search(tags.begin(), tags.end(), any_tag)) {
        return false;
    }
    if (!key.starts_with(prefix)) {
        return false;
    }
    const auto parts = split_key(key);
    return parts.space == space && (!by_tag || parts.origin == prefix);
}

void purge_list::ban_prefix(std::string_view prefix,
                            std::string_view space,
                            purge_mode mode,
                            wall_time now,
                            steady_time made) {
    ban next;
    next.time = now;
    next.made = made;
    next.mode = mode;
    next.prefix = prefix;
    next.space = space;
    add(std::move(next));
}

void purge_list::ban_tag(
    std::uint64_t tag, std::string_view key, purge_mode mode, wall_time now, steady_time made) {
    const auto parts = split_key(key);
    ban next;
    next.time = now;
    next.made = made;
    next.mode = mode;
    next.by_tag = true;
    next.tag = tag;
    next.prefix = parts.origin;
    next.space = parts.space;
    add(std::move(next));
}

void purge_list::add(ban next) {
    const std::lock_guard lock{guard_};
    auto& counted = next.by_tag ? counted_.tags : counted_.prefixes;
    next.epoch = epoch_.load(std::memory_order_relaxed) + 1;
    const auto number = next.epoch;
    take_in(std::move(next));
    ++counted;
    // Last, so that whoever sees the number finds the ban.
    epoch_.store(number, std::memory_order_release);
}

void purge_list::take_in(ban next) {
    bans_.push_back(std::move(next));  // first: without memory for it nothing is to leave
    auto& last = bans_.back();
    bytes_ += last.bytes();
    // A soft ban does not say what an older hard one does: that stays.
    const auto said = std::remove_if(bans_.begin(), std::prev(bans_.end()), [&](const ban& old) {
        if (!old.same(last) || (last.mode == purge_mode::soft && old.mode == purge_mode::hard)) {
            return false;
        }
        bytes_ -= old.bytes();
        if (last.mode == purge_mode::soft) {
            last.follow(old);
        }
        return true;
    });
    bans_.erase(said, std::prev(bans_.end()));
    while (bans_.size() > limits_.bans || bytes_ > limits_.bytes) {
        // What is restored may be older than what was forgotten before.
        const auto& oldest = bans_.front();
        if (oldest.mode == purge_mode::hard) {
            forgotten_.hard = std::max(forgotten_.hard, oldest.epoch);
        } else if (oldest.epoch > forgotten_.soft) {
            forgotten_.soft = oldest.epoch;
            forgotten_.soft_time = oldest.time;
        }
        bytes_ -= oldest.bytes();
        bans_.pop_front();
        ++counted_.forgotten;
    }
}

purge_list::judgement purge_list::judge(std::string_view key,
                                        std::span<const std::uint64_t> tags,
                                        std::uint64_t since) const {
    const std::lock_guard lock{guard_};
    judgement out;
    out.checked = epoch_.load(std::memory_order_relaxed);
    if (since < forgotten_.hard) {
        out.hard = true;
        return out;
    }
    if (since < forgotten_.soft) {
        out.soft = forgotten_.soft_time;
    }
    const auto first = std::partition_point(
        bans_.begin(), bans_.end(), [since](const ban& one) { return one.epoch <= since; });
    for (auto it = first; it != bans_.end(); ++it) {
        if (!it->meets(key, tags)) {
            continue;
        }
        if (it->mode == purge_mode::hard) {
            out.hard = true;
            out.soft.reset();
            return out;
        }
        const auto at = it->met_at(since);
        out.soft = out.soft ? std::min(*out.soft, at) : at;
    }
    return out;
}

bool purge_list::met_since(std::string_view key,
                           std::span<const std::uint64_t> tags,
                           steady_time moment) const {
    const std::lock_guard lock{guard_};
    const bool forgetful = forgotten_.hard != 0 || forgotten_.soft != 0;
    if (forgetful && (bans_.empty() || bans_.front().made >= moment)) {
        return true;
    }
    return std::any_of(bans_.begin(), bans_.end(), [&](const ban& one) {
        return one.made >= moment && one.meets(key, tags);
    });
}

std::vector<kept_ban> purge_list::made_since(std::uint64_t since) const {
    const std::lock_guard lock{guard_};
    const auto first = std::partition_point(
        bans_.begin(), bans_.end(), [since](const ban& one) { return one.epoch <= since; });
    return {first, bans_.end()};
}

forgotten_bans purge_list::forgotten() const {
    const std::lock_guard lock{guard_};
    return forgotten_;
}

void purge_list::restore(std::vector<kept_ban> bans,
                         const forgotten_bans& forgotten,
                         std::uint64_t epoch) {
    const auto now = resident_now();
    const auto steady = steady_now();
    const std::lock_guard lock{guard_};
    forgotten_ = forgotten;
    for (auto& one : bans) {
        // A time before 1970 is nobody's, and one to come is now.
        const auto ago = std::max(now - std::max(one.time, wall_time{}), wall_time::duration{0});
        ban next{std::move(one)};
        next.made = steady - ago;
        take_in(std::move(next));
    }
    first_ = epoch;
    epoch_.store(epoch, std::memory_order_release);
}

void purge_list::go_on_behind(std::uint64_t epoch, std::uint64_t since) {
    const std::lock_guard lock{guard_};
    auto number = std::max(epoch, epoch_.load(std::memory_order_relaxed));
    for (auto* const last : {&forgotten_.hard, &forgotten_.soft}) {
        if (*last > since) {
            *last = number;
        }
    }
    for (auto& one : bans_) {
        if (one.epoch > since) {
            one.epoch = ++number;
        }
    }
    epoch_.store(number, std::memory_order_release);
}

purge_figures purge_list::figures() const {
    const std::lock_guard lock{guard_};
    auto out = counted_;
    out.bans = bans_.size();
    return out;
}

}  // namespace reprise::proxy::cache
