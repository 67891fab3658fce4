#pragma once
// The digests of up to 64 siblings, so held that one look-up asks them all.
//
// Bit-sliced: digests of equal size are the columns of a table whose row i holds bit i of each. A
// key's k rows ANDed are the siblings that may hold it: k reads of memory whatever the number of
// siblings, where asking one after the other takes at least one for each. The table is as large as
// the digests were; nothing is kept twice. Digests of other sizes go to a table (group) of their
// own, and a look-up asks each group: hashed once per group, so few sizes are cheap and 64 are not.
//
// Readers are never stopped, nor do they write anything that others read. What they may use is one
// immutable view, published by a pointer. A reader keeps its view from look-up to look-up and
// compares it with the published one before and after its reads: a look-up then costs no
// read-modify-write and no fence, which would keep the reads of one look-up from overlapping with
// those of the next (at 10^7 keys a row is a cache miss). When the pointer moved meanwhile the
// look-up begins again, so a column may be given to another sibling as soon as the published view has
// left it out.

#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace reprise::filter {

/// Bit s stands for sibling s.
using sibling_mask = std::uint64_t;

/// Memory    a group takes bits * slice / 8 bytes. The slice is the least of 8, 16, 32 and 64 that
///           gave all siblings it had at once different numbers modulo itself: number siblings
///           from 0 up, and n of the same size take the least that holds n; 33 to 64 take bits * 8
///           bytes. While a group is widened the narrower table is there too. A group without
///           siblings goes.
/// Threads   put, flip, remove and the questions below: any thread, one at a time by a mutex.
///           Look-ups: any number of threads, each with a `reader` of its own; lock-free.
/// Sees      a look-up answers for every sibling from one moment between its call and its return.
///           While `put` writes a digest over one of the same size, and during `flip`, it answers
///           from rows of which some are written already: a key that is in the digest before and
///           in the one after is found all the while, since none of its bits turns; a key of only
///           one of the two may be found or not, and one of neither is at most as likely to be
///           found as in the union of the two. With 64 siblings of 10^6 keys that lasts 12 ms for
///           the whole and 0.3 ms for a delta of 1 % gone and 1 % come (bench_filter). A digest of
///           another size replaces the old in one step, and a column that changes hands is never
///           taken for its last owner's.
/// Errs      like the digests: a bit may be on for a key that a sibling does not hold; it is never
///           off for a key that was in the digest put. Digests must be of the standard layout, bit
///           i in words[i / 64] at i % 64, places by `indices`; others do not belong here.
class sibling_index {
    struct view;
    struct pin;

public:
    static constexpr unsigned capacity = 64;  ///< siblings

    sibling_index();
    /// Its readers are gone.
    ~sibling_index();
    sibling_index(const sibling_index&) = delete;
    sibling_index& operator=(const sibling_index&) = delete;

    /// Adds the digest of `sibling`, or puts it in place of the one known, of whatever size. Bits
    /// past size.bits in the last word are not looked at. O(size.bits), about a nanosecond each.
    /// @pre sibling < capacity, size.bits > 0, size.probes > 0, words.size() == ceil(bits / 64)
    /// @throws std::bad_alloc, and then nothing has changed
    void put(unsigned sibling, bloom_size size, std::span<const std::uint64_t> words);

    /// Turns the bits at `places` over, as a delta between two generations says. A place named
    /// twice is as it was in the end. O(places). False, and nothing has changed, when the sibling
    /// has no digest of this size here or a place is not below size.bits.
    [[nodiscard]] bool flip(unsigned sibling,
                            bloom_size size,
                            std::span<const std::uint64_t> places) noexcept;

    /// Forgets a sibling's digest. False when there was none. O(groups).
    /// @throws std::bad_alloc, and then nothing has changed
    bool remove(unsigned sibling);

    /// The siblings that have a digest here.
    [[nodiscard]] sibling_mask siblings() const;
    /// The size of the sibling's digest.
    [[nodiscard]] std::optional<bloom_size> size_of(unsigned sibling) const;
    /// The sibling's digest as it was put and flipped, bits past the end off: the index can be the
    /// only place where a digest is kept. Empty when there is none. O(bits).
    [[nodiscard]] std::vector<std::uint64_t> words_of(unsigned sibling) const;

    [[nodiscard]] std::size_t groups() const;
    /// Bytes of the tables that are asked, and of those that a reader has not let go yet.
    [[nodiscard]] std::uint64_t bytes() const;
    /// Bytes of the tables that would be asked if the sibling put a digest of this size now.
    /// @pre sibling < capacity
    [[nodiscard]] std::uint64_t bytes_with(unsigned sibling, bloom_size size) const;

    /// One thread's access. It keeps the view of its last look-up, and with it the memory of groups
    /// that were replaced or went since, until its next look-up or `rest`.
    class reader {
    public:
        /// A short lock and an allocation. @pre the index outlives it
        explicit reader(sibling_index& index);
        ~reader();
        reader(const reader&) = delete;
        reader& operator=(const reader&) = delete;

        /// The siblings whose digests say maybe. O(groups * probes), no allocation. Begins again
        /// when something was published meanwhile, and only then: of all that is under way
        /// something always ends.
        [[nodiscard]] sibling_mask may_hold(key_hash key) noexcept;

        /// Lets go of what it keeps: for a thread that may not look anything up for long. The
        /// memory is given back with the next change, or reclaim().
        void rest() noexcept;

    private:
        sibling_index& index_;
        pin& pin_;
    };

    /// Gives back the memory that no reader uses any more. Every change does so too.
    void reclaim();

private:
    [[nodiscard]] const view& now() const noexcept;
    [[nodiscard]] std::unique_ptr<view> copy_of_now() const;
    void publish(std::unique_ptr<view> next) noexcept;
    void reclaim_locked() noexcept;

    alignas(64) std::atomic<const view*> published_;  // a line of its own: readers poll it
    alignas(64) mutable std::mutex writers_;          // guards all below, and tables' columns
    std::vector<std::unique_ptr<const view>> views_;  // the last is published, others may be pinned
    std::vector<std::unique_ptr<pin>> pins_;          // one per reader
};

}  // namespace reprise::filter
