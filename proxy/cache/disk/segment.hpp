#pragma once
// A segment's own parts: the header that says which round it is in, and the footer that lists its
// records, so that a start reads some kilobytes of each segment and not all of it.
//
//     0          header (64 bytes)
//     64         records, one behind the other
//     ...        (unused)
//     end - 64 - 48 n   the footer's n entries, in the order of the records
//     end - 64   the footer's trailer
//
// Threads   pure functions; a segment_fill belongs to one thread.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/record.hpp"
#include "proxy/cache/disk/room_in.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reprise::proxy::cache::disk {

inline constexpr std::size_t segment_header_bytes = 64;
inline constexpr std::size_t footer_entry_bytes = 48;
inline constexpr std::size_t trailer_bytes = 64;
/// Where the first record is.
inline constexpr std::uint64_t first_record = segment_header_bytes;

struct segment_header {
    std::uint32_t number = 0;    ///< its file's: a file under another's name is not that one
    std::uint64_t sequence = 0;  ///< grows with every use of any segment; never 0
    std::uint64_t segment_bytes = 0;
    wall_time begun{};
};
/// What a process that begins to write numbers its first segment. `last` is the highest that it knows, but
/// there may be higher ones, which it could not read or which another process wrote meanwhile. Nobody begins
/// a segment every microsecond, so that by the clock this is higher than all earlier ones, unless it went
/// back.
[[nodiscard]] std::uint64_t sequence_after(std::uint64_t last, wall_time now) noexcept;

using segment_header_image = std::array<char, segment_header_bytes>;
[[nodiscard]] segment_header_image encode(const segment_header& header,
                                          std::uint64_t store_id) noexcept;
[[nodiscard]] result<segment_header> read_segment_header(std::span<const char> bytes,
                                                         std::uint64_t store_id) noexcept;

/// A record as its segment's footer lists it: all that the index, the journal and whoever reclaims
/// the segment want to know.
struct footer_entry {
    record_kind kind = record_kind::object;
    bool carried = false;
    std::uint16_t expiry = 0;
    filter::key_hash primary{};
    std::uint64_t discriminator = 0;
    std::uint64_t id = 0;
    std::uint64_t offset = 0;  ///< in the segment
    std::uint64_t bytes = 0;   ///< front, body and padding
    packed_wait wait{};        ///< record_header::wait
    bool operator==(const footer_entry&) const = default;

    [[nodiscard]] filter::key_hash key() const noexcept {
        return index_key(kind, primary, discriminator);
    }
};
[[nodiscard]] footer_entry entry_of(const record_header& header, std::uint64_t offset) noexcept;

struct trailer {
    std::uint64_t sequence = 0;
    std::uint64_t records_end = 0;  ///< the offset behind the last record
    std::uint32_t entries = 0;
    wall_time closed{};

    /// Entries and trailer: the last so many bytes of the segment.
    [[nodiscard]] std::uint64_t footer_bytes() const noexcept {
        return std::uint64_t{entries} * footer_entry_bytes + trailer_bytes;
    }
};

/// The trailer, as far as it can be told alone: its checksum covers the entries too. Bounded by
/// `segment_bytes`.
[[nodiscard]] result<trailer> read_trailer(std::span<const char> last_bytes,
                                           std::uint64_t segment_bytes) noexcept;
/// `footer`: the last footer_bytes() of the segment. Entries are within the records' part, in
/// order, and do not overlap.
[[nodiscard]] result<std::vector<footer_entry>> read_footer(std::span<const char> footer,
                                                            std::uint64_t store_id,
                                                            std::uint64_t sequence,
                                                            std::uint64_t segment_bytes);

/// The filling of one segment: where the next record goes, and what the footer will say. Room for
/// the footer is kept as records come.
class segment_fill {
public:
    explicit segment_fill(std::uint64_t segment_bytes) noexcept : segment_bytes_{segment_bytes} {}

    /// Whether a record of so many bytes, and its entry, still fit.
    [[nodiscard]] bool has_room(std::uint64_t record_bytes) const noexcept;
    /// Where the next record goes.
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
    /// So that the next note() takes no memory. @throws std::bad_alloc, and nothing has changed
    void room_for_entry() { make_room_in(entries_); }
    /// @pre has_room(header.record_bytes())
    const footer_entry& note(const record_header& header);

    [[nodiscard]] const std::vector<footer_entry>& entries() const noexcept { return entries_; }
    /// The bytes of the footer, to be written at footer_offset().
    [[nodiscard]] std::vector<char> footer(std::uint64_t store_id,
                                           std::uint64_t sequence,
                                           wall_time now) const;
    [[nodiscard]] std::uint64_t footer_offset() const noexcept {
        return segment_bytes_ - trailer_bytes - entries_.size() * footer_entry_bytes;
    }

    /// Goes on behind `end`, where recovery found the last record (recovered_segment::end).
    static segment_fill resumed(std::uint64_t segment_bytes,
                                std::vector<footer_entry> entries,
                                std::uint64_t end);

private:
    std::uint64_t segment_bytes_;
    std::uint64_t offset_ = first_record;
    std::vector<footer_entry> entries_;
};

}  // namespace reprise::proxy::cache::disk
