#pragma once
// Purges of many at once: by prefix of the URL, by tag. They take effect at once, and nothing of
// the store is gone through: each is a ban in a short list, and a stored response is held against
// the bans made since it was last looked at, when it is next looked at.
//
// A ban's number is its epoch. A stored response remembers the epoch it was checked to; equal to
// the list's, there is nothing to do: one load and one comparison for a hit. Until it is looked up
// again a purged response still counts in the store's budget, and leaves it as any other does.
//
// The list is bounded. When it is full the oldest bans leave it, and whatever was not looked at
// since they were made is taken for purged, as hard as they were: it may go for nothing, but never
// stay in spite of a purge. A ban that says the same as an older one takes its place; a soft one keeps
// the time of the first of them, or saying it again would put off the end that the first had made.

#include "proxy/base/clock.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache {

enum class purge_mode : std::uint8_t {
    hard,  ///< gone
    soft,  ///< its lifetime ended then: stale, but good for validation and stale-if-error
};
[[nodiscard]] std::string_view to_string(purge_mode mode) noexcept;

struct purge_limits {
    std::size_t bans = 1024;
    std::size_t bytes = std::size_t{1} << 20;  ///< of their texts
};

struct purge_figures {
    std::uint64_t bans = 0;      ///< in the list now
    std::uint64_t prefixes = 0;  ///< purges since start
    std::uint64_t tags = 0;
    std::uint64_t forgotten = 0;  ///< bans that left a full list
};

/// A URL key split where a ban compares it: an accelerator's keys end in its upstream.
struct key_parts {
    std::string_view origin;  ///< "http://host:port", or "//host:port"
    std::string_view url;     ///< origin and path
    std::string_view space;   ///< " http://upstream", empty for absolute URLs
};
[[nodiscard]] key_parts split_key(std::string_view key) noexcept;

/// A ban, as it is kept over restarts. Of soft ones that say the same, a journal to which each was
/// appended has all, and restore() finds the first again; one that was written anew has the last alone.
struct kept_ban {
    std::uint64_t epoch = 0;
    wall_time time{};  ///< resident time: a soft one's ends lifetimes
    purge_mode mode = purge_mode::hard;
    bool by_tag = false;
    std::uint64_t tag = 0;
    std::string prefix;  ///< by tag: the origin
    std::string space;
};

/// The last bans that left a full list; zero: none did.
struct forgotten_bans {
    std::uint64_t hard = 0, soft = 0;  ///< epochs
    wall_time soft_time{};
};

/// Memory   at most limits.bytes of text and about 120 bytes per ban.
/// Threads  any number: epoch() is one load, the rest takes a short lock.
class purge_list {
public:
    explicit purge_list(purge_limits limits = {}) : limits_{limits} {}

    /// The number of the last ban.
    [[nodiscard]] std::uint64_t epoch() const noexcept {
        return epoch_.load(std::memory_order_acquire);
    }

    /// An epoch as what lies in memory keeps it, in fewer bits: counted from the one that restore() gave,
    /// which each start of a store puts 2^32 further, and below which nothing in memory was checked.
    [[nodiscard]] std::uint64_t counted_from_start(std::uint64_t epoch) const noexcept {
        return epoch - std::min(epoch, first_);
    }
    [[nodiscard]] std::uint64_t epoch_of(std::uint64_t counted) const noexcept {
        return first_ + counted;
    }

    /// Purges every key that begins with `prefix` and ends with `space` (key_parts). `now` is resident time.
    /// These two:
    /// @throws std::bad_alloc, and nothing changes
    void ban_prefix(std::string_view prefix,
                    std::string_view space,
                    purge_mode mode,
                    wall_time now,
                    steady_time made = steady_now());

    /// Purges what has this tag (tags.hpp) and the origin and space of `key`.
    void ban_tag(std::uint64_t tag,
                 std::string_view key,
                 purge_mode mode,
                 wall_time now,
                 steady_time made = steady_now());

    struct judgement {
        bool hard = false;
        /// When the first soft purge that meets it was made; not beside hard. Of one that was said
        /// again and again: what came after the first and before the last but one is taken for met
        /// by the first. No later than it was, but where bans left a full list (then as the last of
        /// these) or the journal was written anew (kept_ban).
        std::optional<wall_time> soft;
        std::uint64_t checked = 0;  ///< the epoch this holds for
        [[nodiscard]] bool none() const noexcept { return !hard && !soft; }
    };
    /// What the bans made after `since` say of a response. `tags` are sorted.
    /// O(bans since), microseconds at the most.
    [[nodiscard]] judgement judge(std::string_view key,
                                  std::span<const std::uint64_t> tags,
                                  std::uint64_t since) const;

    /// Whether a ban of either mode, made at `moment` or later, meets this; steady time, as with
    /// invalidation_times. True too when nobody knows any more: a ban that left a full list is taken for
    /// one of everything, made when the oldest in the list was. O(bans).
    [[nodiscard]] bool met_since(std::string_view key,
                                 std::span<const std::uint64_t> tags,
                                 steady_time moment) const;

    [[nodiscard]] purge_figures figures() const;

    /// The bans in the list that were made after `since`, oldest first. Copies them.
    [[nodiscard]] std::vector<kept_ban> made_since(std::uint64_t since) const;
    [[nodiscard]] forgotten_bans forgotten() const;
    /// Restores what made_since(0) and forgotten() gave before a restart; what does not fit is
    /// forgotten. By the clock as it is now they were made so long ago: where it was set meanwhile that
    /// errs for met_since(). `epoch` must be no lower than any that an earlier response was checked to.
    /// @pre the bans are in order of their epochs, none of which is above `epoch`; no ban was made
    ///      in this list
    void restore(std::vector<kept_ban> bans, const forgotten_bans& forgotten, std::uint64_t epoch);

    /// Another process restored this list as it was at `since`, and has held against bans of its own, up to no epoch
    /// above `epoch`, what a restart of this one finds. From now on bans are numbered behind that, and those made here
    /// since then anew: what had been held against one of them already may be taken for met by it. O(bans).
    void go_on_behind(std::uint64_t epoch, std::uint64_t since);

private:
    struct ban : kept_ban {
        // Of a soft one: the epoch of the last that said the same before, 0 where none did, and the time
        // of the first.
        std::uint64_t earlier = 0;
        wall_time first_time{};
        steady_time made{};
        void follow(const ban& old) noexcept;
        [[nodiscard]] wall_time met_at(std::uint64_t since) const noexcept;
        [[nodiscard]] bool same(const ban& other) const noexcept;
        [[nodiscard]] bool meets(std::string_view key,
                                 std::span<const std::uint64_t> tags) const noexcept;
        [[nodiscard]] std::size_t bytes() const noexcept { return prefix.size() + space.size(); }
    };
    void add(ban next);
    void take_in(ban next);  // the lock is held; nothing changes if it throws

    const purge_limits limits_;
    std::atomic<std::uint64_t> epoch_{0};
    std::uint64_t first_ = 0;  // epoch_ as it was restored, before any other thread
    mutable std::mutex guard_;
    std::deque<ban> bans_;  // oldest first
    std::size_t bytes_ = 0;
    // The last bans that were forgotten: what was checked no further than before them is purged.
    forgotten_bans forgotten_;
    purge_figures counted_;
};

}  // namespace reprise::proxy::cache
