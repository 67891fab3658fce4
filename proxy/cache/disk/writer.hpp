#pragma once
// The one thread that writes: to the end of the log, and to the journal.
//
// What is stored waits in a queue of bounded bytes; what finds it full is skipped. What is purged
// waits in another that no purge is refused by (pending_notes.hpp), and that comes first: an entry
// of the journal names the position that the log has reached, and whatever of its key is encoded
// after it was asked for after it (invalidations), or not encoded at all.
//
// Offering wakes the writer only when it sleeps with nothing to do, when a piece is full, or when a
// large object is whole: an event loop that stores a thousand objects in a fifth of a second makes
// one system call for it.
//
// A failure to write drops what waits, says so, and tries again after a while that doubles: with a
// new segment, and with a new journal of all that the old one and memory know.
//
// So does a lack of memory, wherever the thread meets it: run() alone catches it, and calls it trouble. The segment in
// hand stays, for the log's end is whole at any moment (log_tail.hpp). Whatever was in the middle is in a member, out of
// which each piece is taken when it is done: the task at the front of the queue, what was taken of the notes, what
// became of them, what a write that failed had. It is gone on with at the next try. What takes something away notes
// that for the journal first, which may lack memory, and takes it away then, which needs none. So nothing that lacks
// memory for a moment costs more than a disk that fails for one; a purge waits, and is kept.
//
// Threads   offer, note: any. begin: once, any. lend, take_back, stop: one.
// Errors    std::bad_alloc from note and drop_url: the first has noted nothing then; the second has taken the URL out of the
//           index all the same. What there is no memory to offer is not taken.

#include "proxy/cache/body.hpp"
#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/dropped_ids.hpp"
#include "proxy/cache/disk/journal.hpp"
#include "proxy/cache/disk/log_tail.hpp"
#include "proxy/cache/disk/pending_notes.hpp"
#include "proxy/cache/disk/reclaimer.hpp"
#include "proxy/cache/disk/recovery.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace reprise::proxy::cache::disk {

struct variant_directory;

/// A response, whole with `content`; or the head of a large object whose extents were offered
/// before; or, with `subject`, a newer head of what is there.
struct response_task {
    record_kind kind = record_kind::object;
    filter::key_hash primary{};
    std::string url;
    stored_ptr response;
    std::uint64_t id = 0;
    std::uint64_t asked = 0;      ///< count of invalidations
    std::uint64_t ban_epoch = 0;  ///< held against the bans up to this
    std::uint64_t subject = 0;
    std::uint64_t length = 0;
    std::optional<filter::key_hash> representation;  ///< of a body written as it arrived
    bool allows_less = false;  ///< a newer head: than the one before it (cache::disk::allows_less)

    [[nodiscard]] std::uint64_t discriminator() const noexcept;
    /// Whether what is there must not be found any more, be this written or not.
    [[nodiscard]] bool outdates_older() const noexcept {
        return kind != record_kind::refresh || allows_less;
    }
};
struct extent_task {
    filter::key_hash primary{};
    std::uint64_t object = 0;
    std::uint32_t part = 0;
    std::vector<slice> bytes;
};
/// The object was given up: no head will follow these extents.
struct abandon_task {
    filter::key_hash primary{};
    std::uint64_t object = 0;
    std::uint32_t parts = 0;
};
/// The disk's copy of this variant goes, unless it is more recent than `newer`; where that has no Vary, so does each
/// variant.
struct outdate_task {
    filter::key_hash primary{};
    std::uint64_t discriminator = 0;
    std::string url;
    stored_ptr newer;      ///< its head
    bool is_part = false;  ///< of a representation, the whole of which may be what is there
};
using write_task = std::variant<response_task, extent_task, abandon_task, outdate_task>;

/// Where loading found the log to end.
struct log_end {
    std::uint64_t next_sequence = 1;
    struct open_segment {
        std::uint32_t number = 0;
        std::shared_ptr<file> from;
        recovered_segment found;
    };
    std::optional<open_segment> open;  ///< to go on with
    /// False: the end came before every slot was looked at. What was noted is kept then, and no slot is
    /// written to, since any may hold something.
    bool knows_slots = true;
};

/// A segment that was loaded, for the bookkeeping of space.
struct loaded_segment {
    std::uint32_t number = 0;
    std::uint64_t sequence = 0;
    std::uint64_t live_bytes = 0;
};

class writer {
public:
    /// `epoch`: that of the last ban in the journal. `troubled`: the journal could not be written. `id_there`: the
    /// store's as the superblock has it, where it could not be given another that it was to have.
    writer(std::shared_ptr<core> of,
           journal kept,
           std::uint64_t epoch,
           bool troubled,
           std::uint64_t id_there);
    ~writer();  ///< stop()
    writer(const writer&) = delete;
    writer& operator=(const writer&) = delete;

    /// False: there is no room for `bytes` more, no memory for one more, or nothing is written now. Of
    /// `bytes`, `promised` have their room already, and are promised no more.
    [[nodiscard]] bool offer(write_task task, std::uint64_t bytes, std::uint64_t promised = 0);
    /// Room for what will be offered in pieces, so that nothing is written of what can't be taken whole. False:
    /// there is none, or nothing is written now. What is larger than the whole queue has room where little
    /// waits, or it could never be written: the queue is longer by that one then.
    [[nodiscard]] bool promise(std::uint64_t bytes);
    /// What was promised and is not offered after all.
    void release(std::uint64_t promised);
    /// `kept` is called once; again a while later where it throws std::bad_alloc, as below.
    void note(const dropped_url& url, std::function<void()> kept = {});
    /// Takes a URL out of the index, and notes that: always, or only where a restart might find
    /// something of it (README.md, "What of an invalidation is kept"). Whether the index had something.
    bool drop_url(const filter::key_hash& primary, bool always, std::function<void()> kept);
    void note(const expired_url& url, std::function<void()> kept = {});
    void note(const bans_note& made, std::function<void()> kept = {});
    /// False: too many wait already, and nothing was noted.
    [[nodiscard]] bool note(const drop_note& record);
    /// What was offered and is not yet in hand.
    [[nodiscard]] std::uint64_t queued_bytes();
    /// Whether whoever offers more had better wait (object_writer::wants_a_pause); then `go_on` is
    /// called, on any thread, when little is left. One call a `who`.
    [[nodiscard]] bool wants_a_pause(std::uint64_t who, std::function<void()> go_on);
    /// How long the oldest task that was offered has waited and is not in a file; zero: there is
    /// none. A process that is killed now loses what was offered since then, and nothing older.
    [[nodiscard]] std::chrono::nanoseconds behind();
    /// What was noted and is not yet in hand; and how often there was too much of it.
    struct waiting {
        std::uint64_t notes = 0, overflows = 0;
    };
    [[nodiscard]] waiting waiting_notes();

    /// From now on what was offered is written.
    void begin(log_end end);
    /// The index is complete: segments may be reclaimed. `is_whole`: so far as the segments could be
    /// read, and nothing was left out but what is dead.
    void loaded(std::vector<loaded_segment> segments, bool is_whole);

    /// Writes what was offered, closes the segment, and writes nothing from then on: empty. Or why
    /// not, within `most`, and then it goes on. What is noted while it is lent is kept in memory, and
    /// its `kept` called at once. Blocks. @pre core::lent is set
    [[nodiscard]] std::string lend(std::chrono::milliseconds most);
    /// Writes again: with another segment, and a journal of all that the present one and memory know.
    /// @pre it is lent, and core::lent is not set any more
    void take_back();

    /// Writes what was offered, and closes the segment; nothing where it is lent.
    void stop();

private:
    struct offered {
        write_task task;
        std::uint64_t bytes = 0;
        std::optional<task_subject> about;  ///< under way as this
        std::uint64_t number = 0;
        steady_time at{};
    };
    /// Done; over once this many records have entered the index.
    struct carried_out {
        std::optional<task_subject> about;
        std::uint64_t entered = 0;
        steady_time offered{};
    };
    enum class sleep : std::uint8_t { awake, for_a_piece, for_anything };
    enum class lending : std::uint8_t { no, asked, done };

    /// `add` is called with guard_ held, and gives what this gives.
    template <class Add>
    bool change_notes(const Add& add, std::function<void()> kept);
    template <class Note>
    bool add_note(const Note& what, std::function<void()> kept);
    void run();
    void go_on_with_log(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool go_on_without_memory(std::unique_lock<std::mutex>& lock);
    void hear_of_loaded();
    void work(std::unique_lock<std::mutex>& lock);
    void write_the_rest(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool rest(std::unique_lock<std::mutex>& lock);
    /// Waits until there is something to do, and tells meanwhile what the reclaimer has left untold.
    /// False: stop.
    [[nodiscard]] bool wait(std::unique_lock<std::mutex>& lock);
    void end_carried_out() noexcept;
    void pop_offered() noexcept;
    void note_oldest() noexcept;
    void wake_pausing(std::unique_lock<std::mutex>& lock);
    void let_go(const write_task& task);
    void write_all_offered(std::unique_lock<std::mutex>& lock);
    void keep_noted();
    [[nodiscard]] bool has_in_hand() const noexcept {
        return !in_hand_.empty() || !gathered_.empty() || !gathered_calls_.empty();
    }
    void keep_in_hand();
    void gather_noted();
    void keep_gathered();
    static void call_all(std::vector<std::function<void()>>& calls);
    void see_what_is_known();
    void keep_later();
    void settle(std::unique_lock<std::mutex>& lock);
    void skip_offered(std::unique_lock<std::mutex>& lock);
    void skip(const write_task& task);
    /// Whether a note of one record is dropped where too many wait, or grows to one of its URL.
    enum class noting : std::uint8_t { as_there_is_room, surely };
    /// This newer response is not written, or a newer head that allows less is not. What is on disk
    /// is older, and must not be found when memory has let the newer go; nor by a restart, as is noted.
    void let_older_go(const filter::key_hash& primary,
                      std::uint64_t discriminator,
                      noting how = noting::as_there_is_room);
    /// The same for what the log's end had taken in when a write of it failed.
    void let_older_than_failed_go();
    void is_not_written(const response_task& task);
    /// False: that is the more recent.
    bool let_older_plain_go(const filter::key_hash& primary,
                            std::uint64_t discriminator,
                            const stored_response& comer,
                            bool is_part = false);
    void let_plain_go(const filter::key_hash& primary, std::uint64_t discriminator);
    void keep(const drop_note& what);
    /// It may wait to be written.
    void is_dropped(std::uint64_t id);

    /// What a response meets in the place where it is to stand, or where nothing older is to.
    enum class meeting : std::uint8_t {
        nothing_newer,  ///< what is there, if anything is, may go for it
        newer,          ///< that is more recent, and stays
        its_whole,      ///< it is a part, and that may be the whole of the same: it stays
    };
    /// Held against the response of its variant, or against all variants where it has no Vary. What is said to go may
    /// not be promoted any more; of variants some of which stay, those that are older have gone.
    [[nodiscard]] meeting meet(const filter::key_hash& primary,
                               std::uint64_t discriminator,
                               const stored_response& comer,
                               bool is_part = false);
    [[nodiscard]] meeting meet_variants(const filter::key_hash& primary,
                                        const stored_response& comer,
                                        bool is_part);
    [[nodiscard]] meeting hold_against(const stored_ptr& there,
                                       const stored_response& comer,
                                       bool is_part);
    /// Something more recent stands where this one's record, or its directory, would.
    [[nodiscard]] bool comes_late(const response_task& task, std::uint64_t discriminator);
    [[nodiscard]] std::optional<variant_directory> directory_under(const filter::key_hash& primary);

    // Writing (writer_tasks.cpp, writer_segments.cpp), and letting go (writer_drops.cpp).
    void perform(const response_task& task);
    void perform_dropped(const response_task& task);
    void perform(const extent_task& task);
    void perform(const abandon_task& task);
    [[nodiscard]] std::uint32_t extents_of(const response_task& task) const noexcept;
    void write_response(const response_task& task, std::uint64_t discriminator);
    void list_variant(const response_task& task, std::uint64_t discriminator, std::uint16_t expiry);
    void perform(const outdate_task& task);
    void forget(const outdate_task& task);
    [[nodiscard]] stored_ptr head_under(const filter::key_hash& key);
    [[nodiscard]] stored_ptr newest_of(const filter::key_hash& primary,
                                       std::uint64_t discriminator);
    [[nodiscard]] std::optional<journal_fact> drop(const drop_note& note);
    journal_fact drop_unread(const drop_note& note);
    void carry_what_is_due();
    void flush();
    [[nodiscard]] bool must_wait_for_loading();
    [[nodiscard]] bool must_say_what_ends() const;
    [[nodiscard]] error_code drop_what_is_left_in(std::uint32_t number);
    template <class Source>
    std::optional<index_entry> append(const Source& source, std::uint64_t id, publication then);
    [[nodiscard]] bool make_room(std::uint64_t record_bytes);
    [[nodiscard]] bool open_next();
    void reclaim_ahead();
    void give_back_one();
    void remove_file_of(std::uint32_t number);
    [[nodiscard]] std::optional<std::uint32_t> free_file() const;
    [[nodiscard]] bool has_lender();
    [[nodiscard]] bool may_use_again(std::uint32_t number);
    /// One that failed only if `even_failed` and there is no other.
    [[nodiscard]] std::optional<std::uint32_t> free_segment(bool even_failed);
    [[nodiscard]] error_code try_journal();
    [[nodiscard]] std::optional<std::uint32_t> oldest_segment() const;
    [[nodiscard]] std::shared_ptr<file> open_segment_file(std::uint32_t number,
                                                          bool& is_new,
                                                          error_code& failed);
    void close_tail();

    [[nodiscard]] log_position position() const noexcept;
    [[nodiscard]] log_position oldest_position() const;
    [[nodiscard]] error_code rewrite_journal(std::span<const journal_entry> more);
    void warn_of_coarse_journal(const log_position& dead_before) const;
    void begin_trouble(const error_code& why, std::string_view doing) noexcept;
    void trouble(const error_code& why, std::string_view doing);
    [[nodiscard]] bool mend_journal();
    void recover_from_trouble();

    const std::shared_ptr<core> core_;

    std::mutex guard_;
    std::condition_variable wake_;
    std::deque<offered> offered_;
    std::deque<carried_out> carried_out_;  // the writer's alone
    std::uint64_t offered_bytes_ = 0;
    std::uint64_t offered_in_all_ = 0;  // tasks, since the beginning
    std::uint64_t promised_bytes_ = 0;  // beside these
    std::unordered_map<std::uint64_t, std::function<void()>> pausing_;
    std::optional<steady_time> oldest_;  // offered then, and not in a file
    pending_notes noted_;
    std::uint64_t overflows_ = 0;
    std::optional<log_end> end_;
    std::vector<loaded_segment> loaded_;
    bool all_loaded_ = false, stopping_ = false, write_now_ = false;
    bool index_is_whole_ = false;  // as loaded() said, and nobody else has written since
    // All that a restart may find is in the index, or under way, or unlisted, or dead.
    bool knows_log_ = false;
    sleep sleeping_ = sleep::awake;
    lending lending_ = lending::no;
    std::condition_variable lent_or_not_;

    // The thread's own from here on.
    std::unordered_map<std::uint64_t, std::function<void()>> waking_;  // of pausing_
    journal journal_;
    std::uint64_t journal_epoch_;
    bool journal_broken_;
    std::uint64_t id_there_;  // in the superblock still, where that could not be written
    pending_notes in_hand_;   // taken, and no entry of the journal yet
    std::vector<journal_entry> gathered_;  // what became of it, neither in the journal nor unkept
    std::vector<std::function<void()>> gathered_calls_;
    std::vector<journal_entry> unkept_;  // not written yet, for the journal is broken
    std::vector<std::function<void()>> unkept_calls_;
    bool death_is_unkept_ = false;  // a segment's: no other goes before the journal has it
    log_tail tail_;
    reclaimer reclaimer_;
    std::uint64_t next_sequence_ = 1;
    bool knows_slots_ = true;
    // Who had the store in between may have left segments of which we know nothing, for a start with a larger one
    // to find.
    bool has_unknown_ = false;
    bool gives_back_ = false;  // there may be more segments than there is room for
    // There are more, and a process that lent us the store has not ended: it is asked for again then.
    steady_time ask_for_lender_at_{};
    bool may_reclaim_ = false;
    bool troubled_ = false;
    bool is_unsettled_ = false;  // memory ended before what waited was given up
    bool waits_for_loading_ = false;
    bool said_that_others_read_ = false;
    unsigned last_tries_ = 0;  // that lacked memory when it was to stop
    steady_time try_again_{}, make_again_{};
    std::chrono::milliseconds backoff_{0};
    steady_time write_by_{}, sync_by_{};
    dropped_ids dropped_ids_;
    // Segments that could not be begun, each with the sequence at which it is tried again.
    std::unordered_map<std::uint32_t, std::uint64_t> failed_;

    std::thread thread_;
};

}  // namespace reprise::proxy::cache::disk
