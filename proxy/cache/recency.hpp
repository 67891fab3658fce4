#pragma once
// Which of two responses for the same key and variant is the more recent, and is kept (RFC 9111 4:
// "the most recent response").
//
// By when they were asked for and came, in resident time (clock.hpp), which orders the exchanges of
// this process whatever the wall clock does:
//
// - asked for after the other had come: it is the more recent, whatever its Date says. So a Date in
//   the future pins nothing, and a reload always gets through.
// - the two overlapped: the later Date; where that says nothing, the one that came later.
// - both were asked for and came within one millisecond: the one whose request was sent later.
//
// What another cache has from its store was asked for here later, and made long before: its Date is
// compared first (is_dated_before).
//
// Asked wherever a response takes another's place: memory's stripes, parts that are combined, the
// writer of the disk, what moves between the two.
//
// A response that tells variants apart otherwise than before (another Vary) is beside those that its
// request would have selected, and hides them: the newest of all that match is found. They are older
// all the same, and would be found again when it leaves (puts_an_end_to).

#include "proxy/cache/stored_response.hpp"
#include "proxy/http/fields.hpp"

#include <cstdint>

namespace reprise::proxy::cache {

/// The turn of a request that is sent now, after those of all requests sent before: less than `turns`,
/// and from the beginning again. Any thread.
[[nodiscard]] std::uint16_t next_turn() noexcept;

/// True: `kept` stays, though `newcomer` has come. If they can't be told apart the newcomer wins.
/// Reads the fields only of those that overlapped.
[[nodiscard]] bool is_outdated_by(const stored_response& newcomer, const stored_response& kept);

/// Whether a response of these fields, which came then, has an earlier Date than `kept`. False where either
/// has none.
[[nodiscard]] bool is_dated_before(http::field_list newcomer,
                                   wall_time came,
                                   const stored_response& kept);

/// A whole response that has come for a request.
struct newcomer {
    const stored_response& response;  ///< its head is enough
    http::field_list request;         ///< as forwarded (vary.hpp)
    bool is_stored = false;           ///< false: no tier had room for it
    /// A disk may hold an older one, or be given it, and give it back when `response` has left: nothing that
    /// `response` hides is spared for its ETag.
    bool beside_disk = false;
};

/// Whether `older`, of the same key, is to go for `by`: the request would have selected it, it is not the more
/// recent, and is not the same by its ETag (but see beside_disk); nor, where `by` is not stored, by another strong validator. False for what has
/// gone already where `by` is stored, its own variant; and where it is not stored, for what came
/// since it was asked for: that may have had the room.
/// No allocation where `by` is stored and both have the same Vary.
[[nodiscard]] bool puts_an_end_to(const newcomer& by, const stored_response& older);

}  // namespace reprise::proxy::cache
