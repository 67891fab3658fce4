#pragma once
// The disk tier: what was admitted, in append-only segments (FORMAT.md), behind a face that never
// blocks.
//
//     look-up     the index says in memory whether a key may be here; reading the record is done in
//                 place where the page cache has it (preadv2, RWF_NOWAIT), else by a bounded pool
//     putting     a response is queued for the one writer, or skipped: when the queue is full, the
//                 disk fails or is full, nobody waits and traffic goes on
//     purging     takes effect in the index at once, and is kept in a journal that a restart reads
//
// A response up to `inline_most` bytes of body is one record, read and verified whole: it comes out
// as an ordinary stored response with `content`. A larger one comes out as a head whose body is a
// `disk_body` (disk_body.hpp), read piece by piece from any offset, each block verified as it is
// read.
//
// Threads   every member: any, unless it says otherwise. No call here opens, syncs or unlinks a
//           file, or does a read or write that may block: writer, readers and loader are threads of
//           the tier's own.
// Memory    the index (at most 24 bytes per object), the two queues (bounded), what is being read.
// Errors    std::bad_alloc, and nothing else, after the constructor: then nothing was put, found or begun; what was to be
//           taken away is not found any more all the same, but a start may find it. figures() and the log say what
//           went wrong on the tier's own threads, where a lack of memory is a failure of the disk like any other: it
//           comes back from that by itself.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/contents_listener.hpp"
#include "proxy/cache/disk_body.hpp"
#include "proxy/cache/lookup_result.hpp"
#include "proxy/cache/memory/invalidations.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "proxy/cache/stored_response.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/net/wakeup.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk {

struct core;
class arriving_object;
class writer;
class loader;
class file;
class filesystem;  // files.hpp: what the operating system does for a tier; tests make it fail

struct tier_settings {
    std::string path;              ///< a directory; made if it is not there
    std::uint64_t size = 0;        ///< bytes that segments, journal and all else take at most
    std::uint64_t segment = 0;     ///< bytes; 0: size / 128, within bounds (FORMAT.md)
    std::uint64_t max_object = 0;  ///< bytes of body; 0: a quarter of size
    /// Largest share of the written bytes that may be objects carried forward.
    double carry = 0.25;
    double exponent = 0.4;  ///< of length in what a byte is worth (space.hpp)
    bool by_wait = false;   ///< a hit is worth what the object's fetch took (the same)
    /// What is asked for less than what it would push out is not written (space.hpp).
    bool choosy = false;
    std::size_t readers = 4;                ///< threads
    std::size_t read_queue = 256;           ///< reads that wait for them; further ones are refused
    std::uint64_t write_queue = 16u << 20;  ///< bytes that wait to be written; further are skipped
    std::size_t purge_queue = 1u << 16;     ///< URLs that wait for the journal (pending_notes.hpp)
    /// What is queued is written at most so much later; the end of a large object at once.
    std::chrono::milliseconds write_after{200};
    /// A read that takes longer is not waited for any more.
    std::chrono::milliseconds patience{1000};
    /// After a failure writing is tried again so much later, then after twice as long, and so on.
    std::chrono::milliseconds retry_after{1000}, retry_at_most{60'000};
    /// Hears of what is held; outlives the tier. What the store has at the start is read for that
    /// once its index is loaded (contents_loader.hpp). Null: nobody does.
    contents_listener* told = nullptr;
};

enum class tier_state : std::uint8_t {
    loading,  ///< the index is being read; what it has so far is served, and puts are taken
    ready,
    reading,  ///< writing failed (full, read-only, EIO): what is there is served
    off,      ///< nothing works
};
[[nodiscard]] std::string_view to_string(tier_state state) noexcept;

struct tier_figures {
    tier_state state = tier_state::loading;
    std::string trouble;  ///< why not ready; empty if it is
    std::uint64_t objects = 0, bytes = 0, capacity = 0, segments = 0;
    std::uint64_t index_bytes = 0;
    std::uint64_t hits = 0, misses = 0;  ///< look-ups that found something, and that did not
    std::uint64_t in_place = 0, pooled = 0, refused = 0;  ///< reads by how they were done
    std::uint64_t puts = 0, put_bytes = 0;
    std::uint64_t skipped = 0, skipped_bytes = 0;  ///< not worth it, too large, no room, no writing
    std::uint64_t overrun = 0;                     ///< what write_queue had no room for
    std::uint64_t queued_bytes = 0;                ///< wait to be written
    std::chrono::nanoseconds behind{0};  ///< the oldest task of the writer has waited so long
    std::uint64_t queued_purges = 0;     ///< wait for the journal
    std::uint64_t purge_overflows =
        0;                            ///< so often they were too many (tier_settings::purge_queue)
    std::uint64_t written_bytes = 0;  ///< to files, of every kind; what the system was handed
    std::uint64_t carried = 0, carried_bytes = 0, evicted = 0, evicted_bytes = 0;
    std::uint64_t damaged = 0;  ///< records that failed their checksums, dropped
    std::uint64_t invalidated = 0;
    std::uint64_t read_errors = 0, write_errors = 0;
    std::chrono::seconds oldest{0};  ///< age of the oldest segment: about the age of eviction
    std::chrono::milliseconds loaded_in{0};
};

/// Whether a newer head (a 304's) allows less than the one before it: it is useful for a shorter time, may
/// be sent stale for a shorter time or not at all (RFC 9111 4.2.4, RFC 5861), or has a tag to be purged by
/// that the other lacks. Then the older is not to be found without it.
[[nodiscard]] bool allows_less(const stored_response& updated, const stored_response& current);

class tier;

/// One request's look-up. Made and used on one event loop; destroyed at any time. The URL given
/// outlives it.
class disk_lookup {
public:
    /// `sleeper` is notified when a read that step() waits for has ended.
    disk_lookup(tier& from,
                const filter::key_hash& key,
                std::string_view url,
                net::wakeup::signal sleeper);
    ~disk_lookup();
    disk_lookup(const disk_lookup&) = delete;
    disk_lookup& operator=(const disk_lookup&) = delete;

    /// False: wait for the sleeper, then call again. True: `result` is the answer. `request` is as
    /// for memory_tier::find, the same in every call. Reads that the tier refuses (queue full),
    /// that fail or prove damaged are answered as absent.
    [[nodiscard]] bool step(http::field_list request);

    lookup_result result;
    /// How often it was served from disk before, as far as the index counts (saturates at 7).
    unsigned uses = 0;
    /// When the look-up began: what may be done with the result is judged from here.
    invalidation_mark asked;

private:
    struct state;
    std::unique_ptr<state> state_;
};

/// An object on its way to disk while it arrives: too large, or of unknown length, to be held whole
/// first. One thread.
class object_writer {
public:
    virtual ~object_writer() = default;  ///< not finished: nothing is stored
    /// The next bytes of the body; the slice is held until they are written. False: given up (the
    /// queue is full, the disk fails, the object proves too large), and so from now on.
    [[nodiscard]] virtual bool append(const slice& bytes) = 0;
    /// Whether whoever brings more had better wait: 8 MiB are queued; then `go_on` is called, on any
    /// thread, when few are left. False where the oldest has waited for `patience_with_disk` (the
    /// disk hangs, or takes less than 2 MB/s): what comes meanwhile is given up rather than kept
    /// from clients. A short lock.
    [[nodiscard]] virtual bool wants_a_pause(std::function<void()> go_on) const = 0;
    static constexpr std::chrono::seconds patience_with_disk{5};
    /// The body is complete. `response` is its head, `content` null. False: not stored.
    [[nodiscard]] virtual bool finish(const stored_response& response) = 0;
};

class tier {
public:
    /// Opens or makes the store in `settings.path` and begins to load it.
    /// Where both copies of the superblock are damaged nothing that is there can be read: the tier
    /// is off, and touches nothing.
    /// Where fewer than two of the store's segments fit into `settings.size` it is begun anew, empty,
    /// with smaller ones (resizing.hpp).
    /// @throws std::runtime_error (path and reason) when another process holds it, when it is of
    ///         another format, when it can't be made at all, or when it is to be begun anew and who
    ///         lent it still reads it: then nothing in it was changed; std::bad_alloc
    /// `purges` gets back the bans that the journal kept, their epochs included.
    tier(const tier_settings& settings,
         std::shared_ptr<filesystem> files,
         purge_list& purges,
         const invalidations& invalidated);
    ~tier();  ///< stop(), if that was not called
    tier(const tier&) = delete;
    tier& operator=(const tier&) = delete;

    /// The secret of the keys in this store: made with it, kept in its superblock. The instance
    /// uses it for all its keys. Known after construction.
    [[nodiscard]] const filter::hash_secret& secret() const noexcept;

    /// Somebody asked for `key`, whoever answered: what is carried forward, and what is worth
    /// writing, follow from it. A disk_lookup says so itself. Two cache lines.
    void note_request(const filter::key_hash& key) noexcept;

    /// What put() does with an object that is offered when it leaves memory.
    enum class choice : std::uint8_t {
        takes_all,  ///< writes whatever it is given: it should be given what was used alone
        judges,     ///< `choosy`: writes what is worth more than what would go for it
        fills,      ///< `choosy`, but there is room: even what was asked for once would be kept
    };
    [[nodiscard]] choice chooses() const noexcept;
    /// What a byte of an object of `bytes` is worth here (space::density). Two cache lines.
    [[nodiscard]] double worth_of(const filter::key_hash& key,
                                  std::uint64_t bytes,
                                  packed_wait wait) const noexcept;
    /// How length counts in what a byte is worth, from now on (space::set_exponent). One at a time.
    void set_exponent(double exponent) noexcept;
    /// It is open, and writes. Something is put in vain otherwise.
    [[nodiscard]] bool takes_puts() const noexcept;
    [[nodiscard]] std::uint64_t queued_bytes() const;
    /// So much more may be put now.
    [[nodiscard]] bool has_room_for(std::uint64_t bytes) const;

    /// In memory alone: false means that the key is not here. One shard's short lock.
    [[nodiscard]] bool may_hold(const filter::key_hash& key) const noexcept;
    /// Whether something of this response's variant is here and can be found, or waits to be written. Short locks.
    [[nodiscard]] bool holds_or_awaits(const filter::key_hash& key,
                                       const stored_response& one) const;

    /// Queues a whole response with `content` for writing. False: skipped (queue full, off, larger
    /// than may be, parts), or invalidated or purged since `asked`. Sets response->disk_record.
    bool put(const filter::key_hash& key,
             std::string_view url,
             const stored_ptr& response,
             const invalidation_mark& asked);

    /// Begins an object of `length` bytes, if that is known. Null: skipped, as put. `so_far`: how
    /// long its fetch has taken up to here, what it is judged by; its record has what the response
    /// says that is given to object_writer::finish.
    [[nodiscard]] std::unique_ptr<object_writer> begin(const filter::key_hash& key,
                                                       std::string_view url,
                                                       std::optional<std::uint64_t> length,
                                                       std::string_view strong_etag,
                                                       const invalidation_mark& asked,
                                                       packed_wait so_far = {});
    /// Whether a copy of this representation, written as it arrived and not purged since, only
    /// waits for the disk. To write another would hide the first until that one is there too. (A
    /// ban may keep out the copy that waits: then the next request has it written.)
    [[nodiscard]] bool is_being_written(const filter::key_hash& key,
                                        std::string_view strong_etag) const;

    /// `updated` is `current` with a newer head (a 304's): its record is given the new head,
    /// without writing the body anew. False when `current` is no longer here, or the head is not taken.
    /// One that is taken and then can't be written takes `current` along where it allows less.
    bool freshen(const filter::key_hash& key,
                 std::string_view url,
                 const stored_response& current,
                 const stored_response& updated,
                 const invalidation_mark& asked);

    /// Drops every variant of a URL, now and after any restart. `kept` is called, on another
    /// thread, when the journal has it (synced), or has all that it is to have of it: nothing where
    /// the log has nothing of the URL, so that clients' unsafe methods on any URLs fill no journal.
    /// At once where the tier keeps nothing.
    /// Call it after invalidations::note, so that what is being put meanwhile stays out.
    void invalidate(const filter::key_hash& key, std::function<void()> kept = {});
    /// The same, and the next start knows that it was purged, be it here or not (take_purged_before).
    void purge(const filter::key_hash& key, std::function<void()> kept = {});
    /// `newer` is in memory and won't be written now. Removes the disk's copy of that variant for
    /// good, so that it can't reappear when memory drops `newer`; if the disk's is the more recent,
    /// reports that instead (on_outdated). Without Vary it is held against every variant so, and a variant against
    /// what is here without Vary; where something older goes and something newer stays, both happen.
    void outdate(const filter::key_hash& key, std::string_view url, const stored_ptr& newer);
    /// `gone` was in memory alone and is dropped. So is what is here of its variant, but nothing that is more recent,
    /// nor a copy of `gone` itself that was written meanwhile (drop).
    void drop_older(const filter::key_hash& key, std::string_view url, const stored_response& gone);
    /// Hears of a response that was given to put(), outdate() or drop_older() and is older than what is
    /// here. On the writer's thread. Before the first put.
    using outdated_call =
        std::function<void(const filter::key_hash&, std::string_view url, const stored_ptr&)>;
    void on_outdated(outdated_call told);
    /// Drops exactly this response, if it is here. False: too many wait for that, or there is no memory for one more,
    /// and nothing was done: the whole URL is to be invalidated.
    /// From this call on no look-up finds it.
    [[nodiscard]] bool drop(const filter::key_hash& key, const stored_response& outdated);
    /// Whether that was said of the record that `one` is or was read from; the last thousands are
    /// known.
    [[nodiscard]] bool was_dropped(const stored_response& one) const;
    /// Whether another response of the variant, or one of the other form (with Vary, or without), waits to be written, or took the place of
    /// the record that `one` was read from; the last thousands are known. May be said without need.
    [[nodiscard]] bool is_outrun(const filter::key_hash& key, const stored_response& one) const;

    /// A soft purge of a URL: its variants are stale from `now` on, and so it is told.
    void expire(const filter::key_hash& key, wall_time now, std::function<void()> kept = {});

    /// The bans made since the last call go to the journal; `kept` as for invalidate. To be called
    /// after each ban.
    void keep_bans(std::function<void()> kept = {});

    /// What the journal says was purged, hard or soft, before this start. When, it does not say.
    struct purged_before {
        std::vector<filter::key_hash> urls;
        bool all = false;  ///< perhaps any URL was
    };
    /// Once, after construction.
    [[nodiscard]] purged_before take_purged_before() noexcept { return std::move(purged_); }

    [[nodiscard]] tier_figures figures() const;

    /// Gives the store to another process: writes what is queued, closes the segment in hand, and
    /// gives the lock up. What is there is served as before, and stays until this process ends; what
    /// is put is skipped, what is purged goes from the index here alone. Empty, or why not within
    /// `most`: then all is as before. Blocks; not on an event loop.
    [[nodiscard]] std::string lend(std::chrono::milliseconds most);
    /// Whoever it was lent to has ended. Takes the lock and writes again, first what was purged
    /// meanwhile; what the other stored a restart finds, held against all bans that were made since it was lent. False:
    /// somebody has the lock, or there is no memory. Blocks; not on an event loop.
    [[nodiscard]] bool take_back();
    [[nodiscard]] bool is_lent() const noexcept;

    /// Writes what is queued, closes the segment in hand so that the next start is quick. Blocks as
    /// long as the disk does; not on an event loop. Nothing is found any more afterwards.
    void stop();

private:
    friend class disk_lookup;
    void drop_url(const filter::key_hash& key, bool always, std::function<void()> kept);
    /// Null: it is not worth writing, or too large, or nothing is written now; counted as skipped.
    [[nodiscard]] std::unique_ptr<arriving_object> begin_object(const filter::key_hash& key,
                                                                std::string_view url,
                                                                std::optional<std::uint64_t> length,
                                                                std::string_view strong_etag,
                                                                const invalidation_mark& asked,
                                                                packed_wait so_far);
    void offer_outdating(const filter::key_hash& key,
                         std::string_view url,
                         const stored_response& newer,
                         bool is_part);
    void turn_off(const tier_settings& chosen,
                  std::shared_ptr<filesystem> files,
                  purge_list& purges,
                  const invalidations& invalidated,
                  std::string why);

    std::shared_ptr<core> core_;
    std::shared_ptr<writer> writer_;
    std::unique_ptr<loader> loader_;
    std::shared_ptr<file> lock_;
    std::shared_ptr<file> readers_;  // locked while the store is lent, and until this process ends
    std::uint64_t lent_at_ = 0;  // all bans up to this one are in the journal that the other reads
    purged_before purged_;
    bool off_ = false;  // nothing is kept, so there is nothing to keep purges for
};

}  // namespace reprise::proxy::cache::disk
