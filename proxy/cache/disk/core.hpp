#pragma once
// What the threads of a tier, its look-ups and the readers of its large bodies share. Look-ups and
// readers may outlive the tier: they hold this, and find it closed.
//
// Where a record is found and where it is read from are two steps, and the segment may be begun
// anew between them. So a reader takes the segment's file and sequence first, reads, and asks for
// the sequence again (as a seqlock's reader does); every record has its sequence in it besides.
//
// Threads   any, each member behind its own short lock or atomic.

#include "proxy/cache/disk/dropped_records.hpp"
#include "proxy/cache/disk/files.hpp"
#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/index.hpp"
#include "proxy/cache/disk/readers.hpp"
#include "proxy/cache/disk/record.hpp"
#include "proxy/cache/disk/segment.hpp"
#include "proxy/cache/disk/space.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/disk/under_way.hpp"
#include "proxy/cache/disk/unlisted_records.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk {

/// A moment in the log: everything written before it has a lower one.
struct log_position {
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    auto operator<=>(const log_position&) const = default;
};
/// Behind all that will ever be written.
inline constexpr log_position end_of_time{~std::uint64_t{0}, ~std::uint64_t{0}};

/// The segments as they can be read now. Their numbers are as they were given once: of a store that was made
/// smaller there may be few, under high ones.
class segment_table {
public:
    struct view {
        std::shared_ptr<file> from;  ///< null: it can't be read
        std::uint64_t sequence = 0;
    };

    explicit segment_table(std::uint32_t count) : slots_(count) {}

    [[nodiscard]] std::uint32_t size() const noexcept {
        return static_cast<std::uint32_t>(slots_.size());
    }
    [[nodiscard]] view at(std::uint32_t number) const;
    /// 0: nothing in it is there any more.
    [[nodiscard]] std::uint64_t sequence(std::uint32_t number) const;
    void begin(std::uint32_t number,
               std::shared_ptr<file> from,
               std::uint64_t sequence,
               wall_time begun);
    /// Nothing of it is there from now on; the file stays open.
    void end(std::uint32_t number);
    /// Its file was removed, or is to be left alone; then (not `for_good`) a restart may find it. @pre it has ended
    void removed(std::uint32_t number, bool for_good);
    /// Those that have a file, but for what was left alone. O(segments).
    [[nodiscard]] std::uint32_t files() const;
    /// It could not be read: what its file has may be there again after a restart, however old.
    void unreadable(std::uint32_t number);
    [[nodiscard]] bool is_unread(std::uint32_t number) const;
    /// Whether there is one such. O(segments).
    [[nodiscard]] bool has_unread() const;
    /// The sequence under which a restart might find records in its file: also of what has ended,
    /// until it is begun anew. 0: none.
    [[nodiscard]] std::uint64_t left_in_file(std::uint32_t number) const;
    /// When the segment with the lowest sequence was begun; none: there is no segment.
    [[nodiscard]] std::optional<wall_time> oldest() const;
    /// The highest sequence that any has had; 0: there was none.
    [[nodiscard]] std::uint64_t newest() const noexcept {
        return newest_.load(std::memory_order_relaxed);
    }

private:
    struct slot {
        mutable std::mutex guard;
        view now;
        wall_time begun{};
        std::uint64_t left = 0;
    };
    static constexpr std::uint64_t unread = 1;  // as what is left: there is no lower one

    std::vector<slot> slots_;
    std::atomic<std::uint64_t> newest_{0};
};

/// URLs whose variants a purge made stale: all that were written before some position of the log,
/// since some time.
class soft_expiries {
public:
    static constexpr std::size_t most = 1u << 16;
    struct mark {
        log_position before;
        wall_time time{};
    };

    /// False: there are too many. A later mark of the same key replaces the earlier.
    [[nodiscard]] bool note(const filter::key_hash& primary, const mark& made);
    /// The mark of `primary` covered everything; it now ends at `before`.
    void settle(const filter::key_hash& primary, const log_position& before);
    /// The same for all marks that cover everything.
    void settle_all(const log_position& before);
    [[nodiscard]] std::optional<wall_time> since(const filter::key_hash& primary,
                                                 const log_position& written) const;
    /// Forgets what concerns only records before `oldest`.
    void forget_before(const log_position& oldest);
    /// Of a URL of which the index has nothing that it may concern.
    void forget(const filter::key_hash& primary) noexcept;
    [[nodiscard]] std::vector<std::pair<filter::key_hash, mark>> all() const;

private:
    mutable std::shared_mutex guard_;
    std::atomic<std::size_t> count_{0};  // a hit asks no more than this where there are none
    std::unordered_map<filter::key_hash, mark> marks_;
};

/// What went from the index while it was still being loaded: older records of the same keys must
/// not come up behind it. Loading may hang: beyond `most` everything is taken for gone, and so it is
/// where there was no memory for more keys than have a place here.
class gone_while_loading {
public:
    static constexpr std::size_t most = 1u << 18;

    void note(const filter::key_hash& key) noexcept;
    [[nodiscard]] bool has(const filter::key_hash& key) const;
    /// Whether everything was taken for gone, and so not loaded.
    [[nodiscard]] bool has_everything() const;
    /// Loading has ended: nothing is noted any more.
    void close();

private:
    void take_everything() noexcept;

    mutable std::mutex guard_;
    bool open_ = true, everything_ = false;
    std::unordered_set<filter::key_hash> keys_;
    std::array<filter::key_hash, 64> places_{};  // for keys that came while there was no memory
    std::size_t placed_ = 0;
};

/// Counted since start.
struct tally {
    std::atomic<std::uint64_t> hits{0}, misses{0}, in_place{0}, pooled{0}, refused{0}, puts{0},
        put_bytes{0}, skipped{0}, skipped_bytes{0}, overrun{0}, carried{0}, carried_bytes{0},
        evicted{0}, evicted_bytes{0}, damaged{0}, invalidated{0}, read_errors{0}, write_errors{0};
    // What is there now.
    std::atomic<std::int64_t> objects{0}, bytes{0};
};

struct core {
    /// `numbers`: of segments, from 0 on; the plan's, or more where a larger store left some.
    core(const tier_settings& from,
         std::shared_ptr<filesystem> system,
         const superblock& found,
         const geometry& planned,
         std::uint32_t numbers,
         purge_list& bans,
         const invalidations& lately);

    const tier_settings settings;
    const std::shared_ptr<filesystem> files;
    const superblock super;
    const filter::hash_secret secret;
    const geometry shape;
    purge_list& purges;
    const invalidations& invalidated;

    record_index index;
    segment_table segments;
    soft_expiries expiries;
    gone_while_loading gone;
    under_way on_their_way;  ///< by object keys
    dropped_records dropped, replaced;
    unlisted_records unlisted;
    reader_pool pool;
    tally counts;
    space room;                 ///< what any thread may call, its header says
    frequency_sketch requests;  ///< of primary keys

    tier::outdated_call on_outdated;  ///< set before anything is offered

    std::atomic<bool> loading{true};
    std::atomic<bool> loading_lacks_memory{false};  ///< and waits for it
    /// Another process may write to the store, or is about to: this one does not (tier::lend).
    std::atomic<bool> lent{false};
    /// `readers`, which a process that lent us the store has locked: while it has, no segment is used
    /// again. Null: there is none. The writer's alone once that runs.
    std::shared_ptr<file> lender;
    std::atomic<bool> closed{false};
    std::atomic<std::int64_t> loaded_in_ms{0};

    [[nodiscard]] std::uint64_t next_id() noexcept { return next_id_.fetch_add(1); }
    /// When a record's response came, in resident time. The record says `said`; an earlier
    /// process's resident time was another, but the response came before it was written, and, where
    /// the clock was set back since, before this process opened the store.
    [[nodiscard]] wall_time came_at(const record_header& record, wall_time said) const noexcept {
        http::freshness_facts facts;
        facts.response_time = said;
        to_own_time(record, facts);
        return facts.response_time;
    }
    /// The same of all that a record says of its age. Nobody knows how old it is that was written while the
    /// clock was ahead: it is stale, so that its origin is asked. With a lifetime it would be as new at each
    /// start as at the one before, until the clock has come to where it was.
    void to_own_time(const record_header& record, http::freshness_facts& facts) const noexcept {
        constexpr auto more_than_one_process_makes = std::uint64_t{1} << 40;
        constexpr std::chrono::minutes may_be_ahead{1};  // and fresh for that much too long
        if (record.id - first_id_ < more_than_one_process_makes) {
            return;
        }
        auto& came = facts.response_time;
        came = std::min(came, record.written);
        const auto now = resident_now();
        if (came > now) {
            if (came - now > may_be_ahead) {
                facts.lifetime = std::min(facts.lifetime, facts.initial_age);
            }
            came = opened_;
        }
    }
    [[nodiscard]] std::string path_of(std::string_view name) const;
    /// Whether there may be segments that we don't know, as who had the store in between can have made them: files with
    /// numbers beyond all of ours, or under one of which we think that nothing is left. Blocks. @throws std::bad_alloc
    [[nodiscard]] bool may_have_unknown_segments() const;

    /// A record's entry and its segment, as they belong together: between a look at the one and a
    /// look at the other the record may be carried, and its segment be begun anew. None: the index
    /// has no such key.
    struct located {
        index_entry entry;
        segment_table::view from;
    };
    [[nodiscard]] std::optional<located> locate(const filter::key_hash& key) const;

    /// What settings.told hears of a record that enters under its primary key.
    struct saying {
        std::string_view url;
        wall_time until{};
    };

    // The index, with what it holds counted, and told where it is a primary key's. What enters may lack memory: then
    // nothing has changed. What leaves never does, so that whatever is taken away can be taken away.
    /// @throws std::bad_alloc, where the key was not there
    std::optional<index_entry> put(const filter::key_hash& key,
                                   const index_entry& entry,
                                   const saying* said = nullptr);
    /// @throws std::bad_alloc
    bool put_if_absent(const filter::key_hash& key, const index_entry& entry);
    /// As record_index::replace: nothing is counted but the bytes.
    bool move(const filter::key_hash& key,
              const record_place& from,
              const index_entry& entry) noexcept;
    // What leaves while the index is filled is noted as gone before, whether it was there or not: so nothing older of the
    // key that is still to be loaded is found in its place. (Parts of bodies have nothing older.)
    bool erase(const filter::key_hash& key, const index_entry& entry) noexcept;
    std::optional<index_entry> erase(const filter::key_hash& key) noexcept;
    /// Something of this URL that is in the log is about to leave the index, or will not enter it, and
    /// the journal does not say so, or may not.
    void note_unlisted(const filter::key_hash& primary) noexcept {
        unlisted.note(primary, segments.newest());
    }
    /// Tells `said` if the key still has a record.
    void tell_held(const filter::key_hash& primary, const saying& said) noexcept;
    /// Tells that nothing is known to be of use of the key any more, until something is told of it again.
    void tell_outdated(const filter::key_hash& primary) noexcept;
    /// Tells what was found by reading, but only if nothing happened meanwhile: steps() are as
    /// before the reading, and the record is still in its place.
    enum class telling : std::uint8_t { told, moved, late };
    telling tell_found(const filter::key_hash& primary,
                       const saying& said,
                       const record_place& place,
                       std::uint64_t steps);
    /// How often something was done to the key, or to another of its lock.
    [[nodiscard]] std::uint64_t steps(const filter::key_hash& primary);
    /// Notes a soft expiry and says that all copies are stale; false: there are too many to
    /// remember.
    bool expire(const filter::key_hash& primary, const soft_expiries::mark& made);

    /// A record left its segment: for the writer's bookkeeping of space, which may be long in coming to it.
    void note_death(const index_entry& entry) noexcept;
    /// The bookkeeping knows of all that were noted. O(segments). The writer's alone, as that is.
    void settle_deaths() noexcept;

    // Why nothing is written, or nothing works at all.
    struct condition {
        tier_state state = tier_state::ready;
        std::string reason;
    };
    [[nodiscard]] condition health() const;
    /// Says so in the log when it is new.
    void set_health(tier_state state, std::string reason) noexcept;
    /// `doing` failed, and why; of nothing in particular where there is no memory for more.
    [[nodiscard]] static std::string reason(std::string_view doing, const error_code& why) noexcept;
    [[nodiscard]] bool takes_puts() const noexcept {
        return takes_puts_.load(std::memory_order_relaxed) && !lent.load(std::memory_order_relaxed);
    }

private:
    void count(const index_entry& entry, int sign) noexcept;
    void note_gone(const filter::key_hash& key, record_kind kind) noexcept;
    void tell_gone(const filter::key_hash& key, const index_entry& entry) noexcept;
    [[nodiscard]] std::unique_lock<std::mutex> in_order(const filter::key_hash& key) noexcept;

    const wall_time opened_ = resident_now();
    const std::uint64_t first_id_;
    std::atomic<std::uint64_t> next_id_;
    std::atomic<bool> takes_puts_{true};
    mutable std::mutex health_guard_;
    condition health_;
    std::vector<std::atomic<std::uint64_t>> died_;  // bytes, by segment
    // Where somebody listens, a change to a key and what is said of it are one step under this. So
    // many of these that a reader seldom meets another key's.
    struct order {
        std::mutex guard;
        std::uint64_t steps = 0;
    };
    static constexpr std::size_t orders = 1024;
    [[nodiscard]] order& order_of(const filter::key_hash& key) noexcept;
    std::array<order, orders> order_;
};

}  // namespace reprise::proxy::cache::disk
