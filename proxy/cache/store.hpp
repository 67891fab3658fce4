#pragma once
// The store: memory tier and, where there is one, disk tier, behind one face.
//
// Look-ups go to memory; serve/look_up asks the disk itself (disk_lookup), since that may have to
// wait. What is put, freshened, dropped, invalidated or purged goes to both.
//
// - An admitted response goes to disk once: when it is stored ("write": "admission"), or when it
//   leaves memory and was used ("eviction"). Parts of objects stay in memory.
// - A body larger than memory.max_object never enters memory; it goes to disk as it arrives
//   (begin_on_disk).
// - What is kept is the most recent (recency.hpp), in both tiers. Where the disk takes no newer
//   response (it is to come at its eviction, was not worth writing, or is too large for memory,
//   which would have given it on), the older one goes all the same: it would answer again when the
//   newer has left memory. Parts alone leave it: they may be of the very same. What the newer one's
//   request had by another Vary goes too, and what it had where neither tier takes the newer one
//   (end_older): not what is the same representation, where nothing could give it back later.
// - What the disk serves a second time is taken into memory too (promote): the first may be the
//   last. Not where a selective disk gets what leaves memory: each tier then has objects of its
//   own, and a copy would push out what is nowhere else.
//
// Threads   any number. Nothing here waits for a disk.

#include "config/options.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/memory/invalidation_times.hpp"
#include "proxy/cache/memory/memory_tier.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

using config::disk_write;

class store {
public:
    explicit store(const memory_plan& memory);

    /// Begins to use a disk tier, which tells the same listener. Before any other thread is there.
    void attach(std::unique_ptr<disk::tier> disk, disk_write when);

    /// memory.max_object: no longer body is promoted from disk. Callers of put() check it
    /// themselves.
    void set_largest_in_memory(std::uint64_t bytes) noexcept {
        largest_in_memory_.store(bytes, std::memory_order_relaxed);
    }

    /// `told` too hears of what leaves memory for room (memory_tier::on_eviction). Before any
    /// other thread is there.
    void on_eviction(std::function<void(const evicted_response&)> told) { told_ = std::move(told); }

    /// `told` hears of URLs of which the disk, while it is lent (disk::tier::lend), keeps what is
    /// outdated: whoever has the store should purge them. Before any other thread is there.
    void on_unwritten(std::function<void(std::string_view url)> told) {
        unwritten_ = std::move(told);
    }

    /// Only what `belongs` says true of goes to the disk: the rest has its place on another node's.
    /// Asked under no lock of the store's own but a stripe's, on any thread. Before any other thread
    /// is there.
    void keep_on_disk(std::function<bool(std::string_view url)> belongs) {
        belongs_ = std::move(belongs);
    }

    [[nodiscard]] memory_tier& memory() noexcept { return memory_; }
    [[nodiscard]] const memory_tier& memory() const noexcept { return memory_; }
    /// Whether what leaves memory is offered to the disk.
    [[nodiscard]] bool leaves_for_disk() const noexcept {
        return disk_ && when_ == disk_write::eviction;
    }
    /// Null: there is none.
    [[nodiscard]] disk::tier* disk() const noexcept { return disk_.get(); }
    [[nodiscard]] purge_list& purges() noexcept { return memory_.purges(); }

    // In memory alone (memory_tier says what they do).
    [[nodiscard]] lookup_result find(const filter::key_hash& key,
                                     std::string_view url,
                                     http::field_list request) const {
        return memory_.find(key, url, request);
    }
    [[nodiscard]] lookup_result peek(const filter::key_hash& key,
                                     std::string_view url,
                                     http::field_list request) const {
        return memory_.peek(key, url, request);
    }
    [[nodiscard]] stored_ptr variant_of(const filter::key_hash& key,
                                        std::string_view url,
                                        const stored_response& like) const {
        return memory_.variant_of(key, url, like);
    }
    [[nodiscard]] std::vector<stored_ptr> variants(const filter::key_hash& key,
                                                   std::string_view url) const {
        return memory_.variants(key, url);
    }
    [[nodiscard]] invalidation_mark mark(const filter::key_hash& key) const {
        return memory_.mark(key);
    }
    [[nodiscard]] reservation reserve() noexcept { return memory_.reserve(); }
    [[nodiscard]] bool takes(const filter::key_hash& key,
                             std::string_view url,
                             std::uint64_t bytes) {
        return memory_.takes(key, url, bytes);
    }
    /// Of size, in both tiers, for what is judged from now on. One at a time.
    void set_exponent(double exponent) {
        memory_.set_exponent(exponent);
        if (disk_) {
            disk_->set_exponent(exponent);
        }
    }
    /// Whether what was admitted is offered to the disk though nobody has used it in memory: at
    /// once, or when it leaves. What memory does not take goes there directly.
    [[nodiscard]] bool offers_unused_to_disk() const noexcept {
        return disk_ && (when_ == disk_write::admission ||
                         disk_->chooses() != disk::tier::choice::takes_all);
    }

    /// A whole response with `content`. On probation it goes to memory alone, until its
    /// `uses_to_admit`-th use (memory_tier::put). False: neither tier took it.
    bool put(const filter::key_hash& key,
             std::string_view url,
             stored_ptr response,
             invalidation_mark asked,
             standing as = standing::admitted,
             unsigned uses_to_admit = 1);
    /// What was found on probation has just been admitted (lookup_result::just_admitted). `asked` is
    /// the look-up's: what was purged since then stays out.
    void admitted(const filter::key_hash& key,
                  std::string_view url,
                  const stored_ptr& response,
                  invalidation_mark asked);
    /// The process ends: what memory would give to the disk as it leaves is given now, the most
    /// valuable first and no faster than the disk takes it, until then, or until `hurry` says so
    /// (asked every few milliseconds). Memory is empty then. How many bytes of bodies were not given.
    /// Blocks, but for no disk. @pre nobody asks for anything any more
    std::uint64_t leave_to_disk(steady_time until, const std::function<bool()>& hurry);
    /// Parts, or what parts have become; the whole goes to disk too.
    bool put_over(const filter::key_hash& key,
                  std::string_view url,
                  const stored_ptr& expected,
                  stored_ptr response,
                  invalidation_mark asked,
                  standing as = standing::admitted,
                  unsigned uses_to_admit = 1);
    /// A body of `length` bytes, or of unknown length, that is too large for memory. Null: there is
    /// no disk, or it takes none now. `so_far` as disk::tier::begin has it.
    [[nodiscard]] std::unique_ptr<disk::object_writer> begin_on_disk(
        const filter::key_hash& key,
        std::string_view url,
        std::optional<std::uint64_t> length,
        std::string_view strong_etag,
        invalidation_mark asked,
        packed_wait so_far = {});
    /// There is a disk, and what this URL has may go there (keep_on_disk).
    [[nodiscard]] bool belongs_on_disk(std::string_view url) const {
        return disk_ && (!belongs_ || belongs_(url));
    }
    /// Whether the disk is about to have this representation (disk::tier::is_being_written).
    [[nodiscard]] bool is_being_written(const filter::key_hash& key,
                                        std::string_view strong_etag) const {
        return disk_ && disk_->is_being_written(key, strong_etag);
    }

    /// The end of what begin_on_disk began; `response` is its head. Memory gives up what is older.
    /// False: not stored, the more recent is.
    bool finish_on_disk(disk::object_writer& writing,
                        const filter::key_hash& key,
                        std::string_view url,
                        const stored_response& response);

    /// Unlike drop(), it takes nothing else of the key from a disk that works: what is newer may be there.
    void drop_alone(const filter::key_hash& key, std::string_view url, const stored_ptr& outdated);

    /// Whether what was asked for then, and has come, was purged or invalidated since, as far as is known:
    /// put() refuses it for that, and also where nobody knows any more.
    [[nodiscard]] bool has_ended_since(const filter::key_hash& key,
                                       std::string_view url,
                                       const stored_response& response,
                                       invalidation_mark asked) const;
    /// What `by` puts an end to (recency.hpp) goes from both tiers. To be called when it is known whether
    /// `by` is stored, by put(), put_over() or finish_on_disk(), which see to its own variant.
    /// @param found  what the request's look-up had found, which may be on disk alone; or null
    void end_older(const filter::key_hash& key,
                   std::string_view url,
                   const newcomer& by,
                   const stored_ptr& found);

    /// `response` was served from disk, `uses` times before. Nothing where it was dropped since, or the
    /// disk has got a newer one, or is about to.
    void promote(const filter::key_hash& key,
                 std::string_view url,
                 const stored_ptr& response,
                 unsigned uses,
                 invalidation_mark asked);

    bool freshen(const filter::key_hash& key,
                 std::string_view url,
                 const stored_ptr& current,
                 stored_ptr updated,
                 invalidation_mark asked);
    /// Drops this response, and what either tier has of the same record: nothing of it is promoted or
    /// freshened from then on.
    bool drop(const filter::key_hash& key, std::string_view url, const stored_ptr& outdated);
    /// How many responses went, those on disk counted as one. Anybody's unsafe method on any URL comes to
    /// this: the disk keeps only what concerns something that it has.
    std::size_t invalidate(const filter::key_hash& key, std::string_view url);
    /// The same by an operator's order, which a restart is to know of: siblings may hold what is nowhere
    /// here.
    std::size_t purge(const filter::key_hash& key, std::string_view url);
    /// `now` is resident time.
    std::size_t expire(const filter::key_hash& key, std::string_view url, wall_time now);
    /// False: neither invalidate nor expire nor a purge has met `key`, or a response of it with
    /// these tags (sorted), at `moment` or later by the steady clock. True may be said without need. O(bans).
    [[nodiscard]] bool invalidated_since(const filter::key_hash& key,
                                         std::string_view url,
                                         std::span<const std::uint64_t> tags,
                                         steady_time moment) const;
    /// After purges of any kind: `kept` is called, on any thread, as soon as a restart would know
    /// of all that were made before this call; at once where nothing is kept.
    void keep_purges(std::function<void()> kept);

    /// What the disk took though nothing had admitted it, because it had room to fill.
    struct unadmitted_writes {
        std::uint64_t objects = 0, bytes = 0;  ///< bodies'
    };
    /// Since start. Any thread.
    [[nodiscard]] unadmitted_writes written_unadmitted() const noexcept;

private:
    template <class FromDisk>
    std::size_t end_all(const filter::key_hash& key,
                        std::string_view url,
                        const FromDisk& end_on_disk);
    void drop_from_disk(const filter::key_hash& key, const stored_response& outdated);
    void drop_if_written_since(const filter::key_hash& key,
                               const stored_response& outdated,
                               std::uint64_t record);
    void note_outdated(const filter::key_hash& key, std::string_view url) const;
    void outdate_on_disk(const filter::key_hash& key,
                         std::string_view url,
                         const stored_ptr& newer,
                         const stored_ptr& before);
    bool drop_copy(const filter::key_hash& key, std::string_view url, const stored_ptr& outdated);
    /// It leaves memory, and the disk is to get it: it is not there, and the disk may want it.
    [[nodiscard]] bool is_for_disk(const evicted_response& gone) const;
    [[nodiscard]] bool fits_memory(const stored_response& whole) const noexcept {
        return whole.size() <= largest_in_memory_.load(std::memory_order_relaxed);
    }

    memory_tier memory_;
    invalidation_times times_;
    contents_listener* outdated_to_;  // null: nobody hears
    std::unique_ptr<disk::tier> disk_;
    std::atomic<std::uint64_t> largest_in_memory_{UINT64_MAX};
    disk_write when_ = disk_write::admission;
    std::atomic<std::uint64_t> filled_{0}, filled_bytes_{0};  // written_unadmitted()
    std::function<void(const evicted_response&)> told_;
    std::function<void(std::string_view)> unwritten_;
    std::function<bool(std::string_view)> belongs_;  // null: all does
};

}  // namespace reprise::proxy::cache
