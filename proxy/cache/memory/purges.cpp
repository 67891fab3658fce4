#include "proxy/cache/memory/purges.hpp"

#include "proxy/cache/memory/tags.hpp"

#include <algorithm>
#include <utility>

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
                            wall_time now) {
    ban next;
    next.time = now;
    next.mode = mode;
    next.prefix = prefix;
    next.space = space;
    add(std::move(next));
}

void purge_list::ban_tag(std::uint64_t tag, std::string_view key, purge_mode mode, wall_time now) {
    const auto parts = split_key(key);
    ban next;
    next.time = now;
    next.mode = mode;
    next.by_tag = true;
    next.tag = tag;
    next.prefix = parts.origin;
    next.space = parts.space;
    add(std::move(next));
}

void purge_list::add(ban next) {
    const std::lock_guard lock{guard_};
    ++(next.by_tag ? counted_.tags : counted_.prefixes);
    next.epoch = epoch_.load(std::memory_order_relaxed) + 1;
    const auto number = next.epoch;
    take_in(std::move(next));
    // Last, so that whoever sees the number finds the ban.
    epoch_.store(number, std::memory_order_release);
}

void purge_list::take_in(ban next) {
    // A soft ban does not say what an older hard one does: that stays.
    std::erase_if(bans_, [&](const ban& old) {
        const bool said = old.same(next) &&
                          (next.mode == purge_mode::hard || old.mode == purge_mode::soft);
        bytes_ -= said ? old.bytes() : 0;
        return said;
    });
    bytes_ += next.bytes();
    bans_.push_back(std::move(next));
    while (bans_.size() > limits_.bans || bytes_ > limits_.bytes) {
        const auto& oldest = bans_.front();
        if (oldest.mode == purge_mode::hard) {
            forgotten_.hard = oldest.epoch;
        } else {
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
        if (!out.soft) {
            out.soft = it->time;
        }
    }
    return out;
}

bool purge_list::met_since(std::string_view key,
                           std::span<const std::uint64_t> tags,
                           wall_time moment) const {
    const std::lock_guard lock{guard_};
    const bool forgetful = forgotten_.hard != 0 || forgotten_.soft != 0;
    if (forgetful && (bans_.empty() || bans_.front().time >= moment)) {
        return true;
    }
    return std::any_of(bans_.begin(), bans_.end(), [&](const ban& one) {
        return one.time >= moment && one.meets(key, tags);
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
    const std::lock_guard lock{guard_};
    forgotten_ = forgotten;
    for (auto& one : bans) {
        take_in(ban{std::move(one)});
    }
    first_ = epoch;
    epoch_.store(epoch, std::memory_order_release);
}

purge_figures purge_list::figures() const {
    const std::lock_guard lock{guard_};
    auto out = counted_;
    out.bans = bans_.size();
    return out;
}

}  // namespace reprise::proxy::cache
