#pragma once
// What is held of an object whose other bytes are not: byte ranges of one representation, sorted,
// with gaps between them.
//
// Pure arithmetic. Which bytes belong to one representation is partial_response.hpp's to say: what
// meets here is taken for parts of the same. Runs that a new part does not touch are shared, not
// copied; where bytes come twice the earlier stay, so memory is never held twice.
//
// Memory    blocks as they came, except where most of one would be waste: such bytes are copied
//           into a block of their own size, and neighbours of together less than 4 KiB into one.
//           So a run that came a byte at a time costs about what it would have cost at once.
// Threads   values; a body that is shared is never written.

#include "proxy/cache/body.hpp"
#include "proxy/http/range.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace reprise::proxy::cache {

/// Bytes first to end()-1 of an object, without gaps.
struct part {
    std::uint64_t first = 0;
    body_ptr bytes;  ///< never empty
    [[nodiscard]] std::uint64_t end() const noexcept { return first + bytes->size; }
};

/// Calls take(slice, skip, size) for each run of those bytes of `wanted` that `from` has: `size`
/// bytes, `skip` behind the slice's beginning.
template <class Take>
void each_slice(const part& from, http::byte_range wanted, const Take& take) {
    auto at = from.first;
    for (const auto& piece : from.bytes->slices) {
        const auto begin = std::max(wanted.first, at);
        const auto end = std::min(wanted.last + 1, at + piece.size);
        if (begin < end) {
            take(
                piece, static_cast<std::size_t>(begin - at), static_cast<std::size_t>(end - begin));
        }
        at += piece.size;
        if (at > wanted.last) {
            break;
        }
    }
}

struct partial_body {
    /// No Content-Range has told the complete length ("*"). No byte of an object lies there, so
    /// ranges that count from the end hold nothing.
    static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
    /// Most parts of one object; of more the smallest goes.
    static constexpr std::size_t most_parts = 64;

    std::vector<part> held;  ///< ascending, none touching the next; not empty once stored
    std::uint64_t total = unknown;

    [[nodiscard]] bool knows_total() const noexcept { return total != unknown; }
    /// Bytes held, of all parts.
    [[nodiscard]] std::uint64_t bytes() const noexcept;
    /// Everything: one part, from the first byte to the last.
    [[nodiscard]] bool is_whole() const noexcept;
    /// All of `wanted` is held. O(log parts).
    [[nodiscard]] bool holds(http::byte_range wanted) const noexcept;
    /// From the first byte of `wanted` that is missing to the last that is: what one request can
    /// fetch. Parts between the two are in it. None when all is held. O(log parts).
    [[nodiscard]] std::optional<http::byte_range> gap_in(http::byte_range wanted) const noexcept;
    /// The same of `wanted`, which is held. O(slices of the part).
    /// @pre holds(wanted)
    template <class Take>
    void each_slice(http::byte_range wanted, const Take& take) const {
        cache::each_slice(*at_or_before(wanted.first), wanted, take);
    }
    /// The last part that begins at or before `offset`, or null. O(log parts).
    [[nodiscard]] const part* at_or_before(std::uint64_t offset) const noexcept;
    /// Memory of all parts and the list, in bytes; without this object itself.
    [[nodiscard]] std::size_t footprint() const noexcept;
};

/// `before` and `added` together: what touches or overlaps becomes one part. The total is whichever
/// is known. With more than most_parts the smallest goes, never the one that holds `added`. None
/// when more than `most_bytes` would be held.
/// O(parts + slices of those that are joined).
/// @pre both are of one representation; where both know the total, it is the same
[[nodiscard]] std::optional<partial_body> with_part(const partial_body& before,
                                                    const part& added,
                                                    std::uint64_t total,
                                                    std::uint64_t most_bytes);

}  // namespace reprise::proxy::cache
