#pragma once
// Room comes back a segment at a time: what is worth it is carried to the end of the log, record by
// record while new ones are written, and the rest is let go when the room is needed.
//
// So the next segment to be reclaimed is chosen one segment ahead, and stays readable until then.
// Carrying is spread over the writing: nobody waits for all of it, and its share of the bytes
// written is what it was chosen by (space.hpp).
//
// On the way a record is brought up to date: a refresh is joined with what it refreshes, and what
// bans and soft purges say is said in the copy, so that those need not be known for ever. A refresh
// is never carried by itself: at a later place it would seem newer than a soft purge that ended it.
//
// What a URL has left whose variants were let go is told to the digest (tell_variants) once for all
// of them, and when the next segment is open: telling reads the URL's directory and each variant
// that is left, at random places of the disk, and whoever waits for room is not to wait for that.
// It is spread over the writing as carrying is, and done whenever the writer has nothing else to do.
//
// Late is harmless. What is told is what the index has when it is told, and where something is done
// to the URL in the middle of that it is looked at again (core::steps, telling::late): so it is
// never older than what was told before. Whatever comes or goes meanwhile tells of itself. Until
// then the digest goes by the variants that have gone: it may promise too much of the URL, which
// costs a sibling a round trip. A look-up finds that the variant is not there, as ever.
//
// Threads   the writer's.
// Memory    the segment's list of records; 4 MiB at most for what is not told yet.
// Errors    std::bad_alloc from begin(), carry_one() and finish(): each is called again, and goes on where it was.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/log_tail.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace reprise::proxy::cache::disk {

/// Every record in `segment`, its footer read or the whole of it. Blocks. @throws std::bad_alloc
[[nodiscard]] struct recovered_segment read_segment(file& from,
                                                    const core& of,
                                                    std::uint32_t number);

class reclaimer {
public:
    explicit reclaimer(core& of) : core_{of} {}

    [[nodiscard]] bool is_active() const noexcept { return number_.has_value(); }
    [[nodiscard]] std::uint32_t number() const noexcept { return *number_; }

    /// Chooses what is carried of `segment`. @pre !is_active()
    /// @throws std::bad_alloc, and it is not active
    void begin(std::uint32_t segment);

    /// Carries one record, if one is due now that `filled` of the tail's segment, 0 to 1, is
    /// written: the last is due when four fifths are. False: none was, the tail has no room, or
    /// what belongs to it waits to be written.
    /// @pre tail.is_open()
    [[nodiscard]] bool carry_one(log_tail& tail, double filled);

    /// Lets the rest go: nothing of the segment is there any more. Reads nothing, unless more is to be
    /// told than is remembered: what is to be told waits (has_untold). @pre is_active()
    void finish();

    /// Whether there are URLs of which is to be told what they have left.
    [[nodiscard]] bool has_untold() const noexcept { return !untold_.empty(); }
    /// Tells of one. A read, and one for each variant that is left. @pre has_untold()
    void tell_one() noexcept;
    /// Tells of as many as are due now that `filled` of the tail's segment, 0 to 1, is written: the
    /// last is due when four fifths are.
    void tell_due(double filled) noexcept;

private:
    struct candidate {
        footer_entry listed;
        index_entry entry;
    };
    void choose();
    /// False: there is no room for it.
    [[nodiscard]] bool carry(log_tail& tail, const candidate& one);
    [[nodiscard]] bool carry_object(log_tail& tail, const candidate& one, class record_read& read);
    [[nodiscard]] bool carry_directory(log_tail& tail,
                                       const candidate& one,
                                       class record_read& read);
    [[nodiscard]] bool carry_as_it_is(log_tail& tail,
                                      const candidate& one,
                                      class record_read& read,
                                      std::uint64_t length);
    [[nodiscard]] static publication carried_as(const candidate& one, std::uint64_t length);
    [[nodiscard]] std::optional<index_entry> live(const footer_entry& one) const;
    /// Whether there is an object with this id under `primary`.
    [[nodiscard]] bool has_object(const filter::key_hash& primary, std::uint64_t id);
    [[nodiscard]] std::vector<std::uint64_t> objects_under(const filter::key_hash& primary) const;
    void let_go(const filter::key_hash& key, const index_entry& entry) noexcept;
    void let_go_without(const footer_entry& head) noexcept;
    void drop(const footer_entry& one, const index_entry& entry) noexcept;
    void tell_later(const footer_entry& gone) noexcept;
    void sweep_index();

    core& core_;
    std::optional<std::uint32_t> number_;
    std::vector<footer_entry> listed_;
    bool complete_ = false;  // listed_ is all there is
    std::vector<candidate> chosen_;
    std::size_t next_ = 0;
    std::uint64_t chosen_bytes_ = 0, done_bytes_ = 0;
    std::unordered_map<filter::key_hash, std::vector<std::uint64_t>> objects_;  // has_object's
    std::unordered_set<filter::key_hash> untold_;                               // primary keys
    std::size_t to_tell_ = 0;  // so many were untold when the tail's segment was begun
};

}  // namespace reprise::proxy::cache::disk
