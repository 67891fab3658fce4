#pragma once
// What was purged, or dropped, and waits for the writer to put it into the journal.
//
// The writer may hang in the disk for minutes while purges, and unsafe methods on what is here, add to
// this. So it is bounded: what says the same is kept once, and where there is more than may be, all
// of it becomes one entry, that everything older is dead. Whoever asks this process never notices:
// what was purged left the index before it came here. A restart then begins with an empty store.
//
// Threads   none: the writer's lock.
// Errors    std::bad_alloc from add and from room_for_call, and then nothing was noted that was not before.

#include "filter/key_hash.hpp"
#include "proxy/cache/disk/journal.hpp"

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk {

/// Drops this very record, or whatever is older than the note.
struct drop_note {
    static constexpr std::uint64_t whatever = 0;  ///< no record's id
    filter::key_hash primary{};
    std::uint64_t discriminator = 0;
    std::uint64_t id = 0;
};
/// The bans made since the journal was last told of any.
struct bans_note {};

/// Memory    at most `most` URLs (about 64 bytes each), as many records (24), as many calls (32).
class pending_notes {
public:
    explicit pending_notes(std::size_t most) : most_{most} {}

    /// False: there was no room for this; what it says is in everything_before().
    bool add(const dropped_url& note);
    bool add(const expired_url& note);
    /// False: there is no room, and nothing was noted.
    [[nodiscard]] bool add(const drop_note& note);
    bool add(const bans_note&) {
        bans_ = true;
        return true;
    }
    /// For one more call. If there are too many the older half is dropped: those callers have timed out.
    void room_for_call();
    /// Called when all that was added before is kept. Takes no memory behind room_for_call().
    void call(std::function<void()> kept);

    [[nodiscard]] bool empty() const noexcept {
        return dropped_.empty() && expired_.empty() && drops_.empty() && calls_.empty() && !bans_ &&
               !everything_;
    }
    /// Notes of all kinds, without calls; at least `most` once everything_before().
    [[nodiscard]] std::size_t size() const noexcept {
        return dropped_.size() + expired_.size() + drops_.size() + (everything_ ? most_ : 0);
    }
    /// There were too many URLs to keep one by one.
    [[nodiscard]] bool everything_before() const noexcept { return everything_; }

    [[nodiscard]] const auto& dropped() const noexcept { return dropped_; }
    [[nodiscard]] const auto& expired() const noexcept { return expired_; }
    [[nodiscard]] const auto& drops() const noexcept { return drops_; }
    [[nodiscard]] bool bans() const noexcept { return bans_; }
    [[nodiscard]] std::vector<std::function<void()>> take_calls() noexcept {
        return std::exchange(calls_, {});
    }

    /// All of it; nothing is left.
    [[nodiscard]] pending_notes take() noexcept;

    // What was taken is done with piece by piece, so that what lacks memory in the middle is gone on with.
    void urls_are_done() noexcept;  ///< dropped, expired, everything_before
    void last_drop_is_done() noexcept { drops_.pop_back(); }
    void bans_are_done() noexcept { bans_ = false; }

private:
    bool make_room(bool known);

    std::size_t most_;
    std::unordered_set<filter::key_hash> dropped_;
    std::unordered_map<filter::key_hash, wall_time> expired_;  // the first time
    std::vector<drop_note> drops_;
    std::vector<std::function<void()>> calls_;
    bool bans_ = false, everything_ = false;
};

}  // namespace reprise::proxy::cache::disk
