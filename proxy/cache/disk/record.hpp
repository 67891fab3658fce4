#pragma once
// One record of a segment: a front (header, checksums of the body's blocks, a section by kind) and
// a body, as pure functions from and to bytes (FORMAT.md, "Records").
//
//     writing   sized(what) bytes are reserved, then encode(what, stamp, store_id, into) fills them
//     reading   check_front(bytes) verifies all but the body, in one checksum; read_object and the
//               others make views of it; check_body verifies an inline body, check_block a block
//     moving    restamp(record, ...) makes a verified record one of another segment, as it is
//
// Whatever the bytes, reading yields a value or a format_errc, and looks at nothing outside them.
// What passed its checksum is held against every bound nevertheless, so that a fault of ours in
// writing can't become one in memory. A view's texts lie in the bytes that it was read from.
//
// Threads   pure functions.
// Cost      a hit: one checksum of the front (some hundred bytes) and one of the body, no text is
//           parsed; make_response allocates what the response needs.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/stored_response.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache::disk {

enum class record_kind : std::uint8_t {
    object = 1,  ///< a response with its body
    extent,      ///< a piece of a large object's body
    large,       ///< a large object's head: written last, so that it is there only when whole
    refresh,     ///< a newer head of an object or large object
    variants,    ///< which variants a primary key has
};
[[nodiscard]] std::string_view to_string(record_kind kind) noexcept;

/// What every record begins with.
struct record_header {
    record_kind kind = record_kind::object;
    bool carried = false;      ///< moved here from a segment that was reclaimed
    std::uint16_t expiry = 0;  ///< coarse_time of the end of its freshness; 0 for extents
    std::uint64_t sequence = 0;
    filter::key_hash primary{};       ///< of the URL that it belongs to, whatever it is
    std::uint64_t discriminator = 0;  ///< which of the primary key's records; see index_key
    std::uint64_t id = 0;             ///< never 0, no other record's in this store
    /// Extent: its large object's id. Refresh: the id of what it is a newer head of. Else 0.
    std::uint64_t subject = 0;
    std::uint32_t front_bytes = 0;  ///< a multiple of 8; the body follows at once
    std::uint32_t body_bytes = 0;
    std::uint32_t part = 0;  ///< an extent's number
    /// What the fetch of an object, large object or refreshed one took; of others it is not known.
    packed_wait wait{};
    wall_time written{};

    /// What it takes in the segment.
    [[nodiscard]] std::uint64_t record_bytes() const noexcept {
        return round_up(std::uint64_t{front_bytes} + body_bytes, alignment);
    }
};
inline constexpr std::size_t record_header_bytes = 88;

// Keys. All are made from the primary key, which is secret, so nobody can choose them.

/// Under which key the index has a record. An object without Vary and a directory of variants: the
/// primary key itself.
[[nodiscard]] filter::key_hash index_key(record_kind kind,
                                         const filter::key_hash& primary,
                                         std::uint64_t discriminator) noexcept;
/// A variant's, never 0. An object without Vary has 0 when it stands alone.
[[nodiscard]] std::uint64_t variant_discriminator(const filter::key_hash& primary,
                                                  std::string_view names,
                                                  std::string_view selecting) noexcept;
/// `object`: the id of the large object's head.
[[nodiscard]] std::uint64_t extent_discriminator(std::uint64_t object, std::uint32_t part) noexcept;

/// Where the refresh of an object is looked for. It is one of this very object only if its subject
/// is the object's id.
[[nodiscard]] inline filter::key_hash refresh_key(const filter::key_hash& primary,
                                                  std::uint64_t discriminator) noexcept {
    return index_key(record_kind::refresh, primary, discriminator);
}
[[nodiscard]] inline filter::key_hash extent_key(const filter::key_hash& primary,
                                                 std::uint64_t object,
                                                 std::uint32_t part) noexcept {
    return index_key(record_kind::extent, primary, extent_discriminator(object, part));
}

// Writing.

/// What the segment says of a record, not the record of itself.
struct record_stamp {
    std::uint64_t sequence = 0;
    std::uint64_t id = 0;
    wall_time now{};
};

/// A response to be written.
struct object_source {
    /// object: the response has its content, which is the body. large: `length` bytes in extents. refresh: no body.
    record_kind kind = record_kind::object;
    filter::key_hash primary{};
    std::uint64_t discriminator = 0;
    std::string_view url;
    const stored_response& response;
    std::uint64_t ban_epoch = 0;     ///< it was held against the bans up to this one
    std::uint64_t subject = 0;       ///< refresh: what it is a newer head of
    std::uint64_t length = 0;        ///< large and refresh: of the whole body
    std::uint32_t extent_bytes = 0;  ///< large: of each extent but the last, which may be shorter
    bool carried = false;
};

/// A piece of a large object's body.
struct extent_source {
    filter::key_hash primary{};
    std::uint64_t object = 0;
    std::uint32_t part = 0;
    std::span<const slice> bytes;
};

/// The record's size in its segment, or too_large (a front over front_most, a body over 4 GiB,
/// numbers that no response can have). O(slices).
[[nodiscard]] result<std::size_t> sized(const object_source& what) noexcept;
[[nodiscard]] result<std::size_t> sized(const extent_source& what) noexcept;

/// Writes the record, body and padding included, and gives its header.
/// @pre into.size() == *sized(what)
record_header encode(const object_source& what,
                     const record_stamp& stamp,
                     std::uint64_t store_id,
                     std::span<char> into) noexcept;
record_header encode(const extent_source& what,
                     const record_stamp& stamp,
                     std::uint64_t store_id,
                     std::span<char> into) noexcept;

/// Makes `record` one of segment `sequence`, carried; its id and all else stay. The body is not
/// touched, nor looked at. @pre check_front(record, ...) succeeded
record_header restamp(std::span<char> record,
                      std::uint64_t store_id,
                      std::uint64_t sequence) noexcept;

// Reading.

/// The header, unverified: good for its lengths, which are within bounds. @pre none
[[nodiscard]] result<record_header> read_header(std::span<const char> bytes) noexcept;

/// The header of a front that is whole and of this store and sequence. `bytes` begins with the
/// record and has at least its front.
[[nodiscard]] result<record_header> check_front(std::span<const char> bytes,
                                                std::uint64_t store_id,
                                                std::uint64_t sequence) noexcept;

/// Whether the body in `record`, the whole of it, is what was written. @pre check_front succeeded
[[nodiscard]] bool check_body(std::span<const char> record,
                              const record_header& header,
                              std::uint64_t store_id) noexcept;
/// The same of one of the body's blocks. @pre number < blocks_of(header)
[[nodiscard]] bool check_block(std::span<const char> front,
                               std::uint32_t number,
                               std::span<const char> block,
                               std::uint64_t store_id) noexcept;
[[nodiscard]] constexpr std::uint32_t blocks_of(const record_header& header) noexcept {
    return static_cast<std::uint32_t>((header.body_bytes + block_bytes - 1) / block_bytes);
}

/// An object, a large object's head or a refresh.
struct object_view {
    record_header header;
    std::string_view url, head, vary_names, selecting;
    std::string_view tags;  ///< eight bytes each
    std::uint64_t length = 0;
    std::uint64_t ban_epoch = 0;
    std::uint32_t extent_bytes = 0;  ///< of each extent but the last; 0 unless it is large
    std::uint32_t extents = 0;
    http::freshness_facts freshness;
    http::response_directives directives;
    unsigned status = 0;
    std::uint32_t status_line_size = 0, length_at = 0;
    bool purged_softly = false;
    bool weak_last_modified = false;
};

/// @pre check_front(front, ...) succeeded, and the kind is one of the three
[[nodiscard]] result<object_view> read_object(std::span<const char> front) noexcept;

/// The response without its body: `content` or `on_disk` is the caller's to set. Its disk_record is
/// the id (a refresh's: its subject). @throws std::bad_alloc
[[nodiscard]] response_draft make_response(const object_view& view);

}  // namespace reprise::proxy::cache::disk
