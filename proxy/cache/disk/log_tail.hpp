#pragma once
// The end of the log: the one segment that is being written.
//
// Records are encoded straight into a buffer that is written in large pieces, each a whole number
// of pages: the rest of the last page is zeros, and is written again with what follows. So nothing
// is ever read to fill a page up, and what an earlier round of the segment left behind the records
// is gone as far as that page goes. A record enters the index when its bytes are written, never
// before.
//
// Segments are used again in place. A new round begins with its header alone, synced before any
// record: from then on nothing that lies in the segment from before counts, whatever a power cut
// leaves of the rest.
//
// Threads   the writer's.
// Memory    a buffer of twice the largest piece, and what waits to enter the index.
// Errors    values; after one the segment is given up: what entered the index before stays. std::bad_alloc comes from
//           open(), resume() and append() alone, before anything was changed: a record that is begun is whole, has
//           its entry in the footer, and its place among those that wait for the index. What is written needs no
//           memory to enter the index, but where the index has to grow: then it does not enter, and is a miss.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/record.hpp"
#include "proxy/cache/disk/segment.hpp"

#include <cassert>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk {

/// A record on its way into the index.
struct publication {
    filter::key_hash key{};
    index_entry entry;
    filter::key_hash primary{};
    std::uint64_t length = 0;  ///< of the whole object; 0: the record's bytes
    /// The record was asked for when the key's count of invalidations was this; none: nobody's
    /// invalidation concerns it.
    std::optional<std::uint64_t> asked;
    /// It is carried: enters only where this still is the place.
    std::optional<record_place> moved_from;
    /// Of a response: its variant. None: this is none, or is carried.
    std::optional<std::uint64_t> discriminator{};
    /// What is older of that variant is not to be found without this.
    bool outdates_older = false;
    /// Set for a response without Vary, where tier_settings::told hears of it.
    std::string url{};
    wall_time useful_until{};
    bool withdrawn = false;  ///< its bytes are written, but it enters no index
};

class log_tail {
public:
    /// Written at once when so much is there.
    static constexpr std::size_t piece_bytes = 512u << 10;

    explicit log_tail(core& of) : core_{of}, fill_{of.shape.segment_bytes} {}

    [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    /// Where the next record goes. @pre is_open()
    [[nodiscard]] log_position position() const noexcept { return {sequence_, fill_.offset()}; }
    [[nodiscard]] bool has_room(std::uint64_t record_bytes) const noexcept {
        return fill_.has_room(record_bytes);
    }

    /// Begins a round. @pre !is_open()  @throws std::bad_alloc: nothing was written
    [[nodiscard]] error_code open(std::uint32_t number,
                                  std::uint64_t sequence,
                                  std::shared_ptr<file> to);
    /// Goes on with a segment as recovery found it. @pre !is_open()  @throws std::bad_alloc
    [[nodiscard]] error_code resume(std::uint32_t number,
                                    std::uint64_t sequence,
                                    std::shared_ptr<file> to,
                                    std::vector<footer_entry> entries,
                                    std::uint64_t end,
                                    bool was_closed);

    /// Appends a record of `bytes`, which encode(into, stamp) -> record_header fills, and lets it enter the index as
    /// `then` says, whose entry this gives, when it is written.
    /// @pre is_open() && has_room(bytes)
    /// @throws std::bad_alloc, and nothing has changed
    template <class Encode>
    index_entry append(std::size_t bytes,
                       std::uint64_t id,
                       const Encode& encode,
                       publication then) {
        static_assert(std::is_nothrow_invocable_r_v<record_header,
                                                    const Encode&,
                                                    std::span<char>,
                                                    const record_stamp&>,
                      "what throws in the middle leaves half a record in the log");
        static_assert(std::is_nothrow_move_constructible_v<publication>);
        assert(is_open() && has_room(bytes));
        make_room_for(bytes);
        const auto at = buffer_.size();
        buffer_.resize(at + bytes);
        const record_header header = encode(std::span<char>{buffer_.data() + at, bytes},
                                            record_stamp{sequence_, id, wall_now()});
        const auto& listed = fill_.note(header);
        then.entry = {.place = {static_cast<std::uint16_t>(number_), listed.offset},
                      .bytes = listed.bytes,
                      .kind = listed.kind,
                      .uses = 0,
                      .expiry = listed.expiry};
        waiting_.push_back(std::move(then));
        ++to_enter_;
        return waiting_.back().entry;
    }
    /// How many were to enter the index so far, and how many of these have, or never will.
    [[nodiscard]] std::uint64_t to_enter() const noexcept { return to_enter_; }
    [[nodiscard]] std::uint64_t entered() const noexcept { return to_enter_ - waiting_.size(); }

    /// What was to enter the index when a write failed, and never will. Whoever does what that asks for takes out each
    /// when it is done; all before the next open().
    [[nodiscard]] std::vector<publication>& failed() noexcept { return failed_; }

    /// Whether a record of this key waits for being written, and is to enter the index then.
    [[nodiscard]] bool awaits(const filter::key_hash& key) const noexcept;
    /// What waits of this key will not enter the index. Its bytes are written: for a restart it takes an
    /// entry of the journal. Whether there was any.
    bool withdraw(const filter::key_hash& key) noexcept;
    [[nodiscard]] bool has_unwritten() const noexcept { return !waiting_.empty(); }
    [[nodiscard]] std::size_t unwritten_bytes() const noexcept { return buffer_.size() - kept_; }

    /// Writes what is buffered, and lets it enter the index.
    [[nodiscard]] error_code flush() noexcept;
    [[nodiscard]] error_code sync() noexcept;
    [[nodiscard]] bool is_dirty() const noexcept { return dirty_; }
    /// Flushes, writes the footer and syncs. Not open any more, whatever it says. no_memory(): there was none for the
    /// footer, and all records are in the file.
    [[nodiscard]] error_code close() noexcept;

private:
    void make_room_for(std::size_t bytes);
    void publish() noexcept;
    void publish(const publication& one) noexcept;
    void erase_invalidated(const publication& one, bool it_outdates) noexcept;
    void give_up() noexcept;

    core& core_;
    std::shared_ptr<file> file_;
    std::uint32_t number_ = 0;
    std::uint64_t sequence_ = 0;
    segment_fill fill_;
    std::uint64_t start_ = 0;   // where in the file the buffer begins: a page's beginning
    std::vector<char> buffer_;  // from there to fill_.offset()
    std::size_t kept_ = 0;      // of it is written already: the beginning of a page
    std::uint64_t written_out_ = 0;
    bool dirty_ = false;
    std::vector<publication> waiting_, failed_;
    std::uint64_t to_enter_ = 0;
};

}  // namespace reprise::proxy::cache::disk
