#pragma once
// What a segment file holds, found out at start: from its footer if it was closed, else record by
// record.
//
// A scan believes a record when its front's checksum, made with the store's id and the segment's
// sequence in it, is right, and lists it when its body's is too. Behind a damaged front it looks
// for the next good one at every 16 bytes: what a power cut left in holes is found, and the
// leftovers of earlier rounds are of another sequence. Nobody who sends a body can make it look
// like a record without knowing the store's id.
//
// Pure: the bytes come from a function that is handed in.
// Cost      closed: two reads, the last 64 KiB and, if the entries are more than those hold, the
//           rest of the footer. Scanned: the whole segment once, in pieces of 1 MiB.
// Memory    the entries (48 bytes each in a footer, 64 here), and a piece.

#include "proxy/cache/disk/segment.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace reprise::proxy::cache::disk {

/// Fills `into` from `offset`; false: it could not, all or part. Never past the segment's end.
using read_at = std::function<bool(std::uint64_t offset, std::span<char> into)>;

enum class segment_state : std::uint8_t {
    unused,      ///< no header of this store and number: nothing is in it
    closed,      ///< read from its footer
    scanned,     ///< no footer of this round: it was open, or its footer is damaged
    unreadable,  ///< the header could not be read
};

struct recovered_segment {
    segment_state state = segment_state::unused;
    segment_header header;              ///< unless unused or unreadable
    std::vector<footer_entry> entries;  ///< in the order they were written
    /// Where the next record would go: behind the last whole one.
    std::uint64_t end = first_record;
    std::uint64_t damaged = 0;  ///< bodies that failed, and gaps with damage between records
    std::uint64_t unreadable_bytes = 0;  ///< that a scan had to skip
    bool bad_footer = false;             ///< there is one of this round, but it is damaged
    /// A closed segment's own; for a scanned one the time of its last record.
    wall_time last_written{};
};

struct recovery_options {
    std::uint64_t store_id = 0;
    std::uint32_t number = 0;
    std::uint64_t segment_bytes = 0;
    bool footer = true;  ///< false: scan even what is closed (reprise-store verify)
    bool bodies = true;  ///< false: a scan does not read bodies; damage shows when they are served
};

/// @throws std::bad_alloc
[[nodiscard]] recovered_segment recover(const read_at& read, const recovery_options& options);

}  // namespace reprise::proxy::cache::disk
