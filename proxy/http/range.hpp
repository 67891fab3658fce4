#pragma once
// Byte ranges of a stored whole (RFC 9110 14): what part of it a request asks for.
// A Range that is malformed, in another unit, or greedy is ignored, as 14.2 allows: the whole is
// always a right answer. `parse_ranges` reads, `judge_ranges` decides what is sent; several parts
// are then laid out by multipart.hpp.

#include "proxy/base/clock.hpp"
#include "proxy/http/fields.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

/// Both ends included; first <= last < length.
struct byte_range {
    std::uint64_t first = 0, last = 0;
    [[nodiscard]] std::uint64_t size() const noexcept { return last - first + 1; }
    bool operator==(const byte_range&) const = default;
};

enum class range_answer : std::uint8_t {
    whole,          ///< no range that counts: 200
    part,           ///< 206
    unsatisfiable,  ///< 416, with Content-Range: bytes */length
};
[[nodiscard]] std::string_view to_string(range_answer answer) noexcept;

/// More ranges than this in one request are taken for an attack, and ignored (14.2, 17.15).
inline constexpr std::size_t most_ranges = 16;

/// The satisfiable ranges of one Range field, in the order asked for.
struct range_set {
    range_answer answer = range_answer::whole;
    std::size_t count = 0;  ///< ranges in `parts`; at least 1 if and only if answer is `part`
    std::array<byte_range, most_ranges> parts{};
    [[nodiscard]] std::span<const byte_range> ranges() const noexcept {
        return {parts.data(), count};
    }
};

/// "bytes=0-499", "bytes=-500", "bytes=0-0,-1"... against a representation of `length` bytes.
/// Total, no allocation, O(text). Numbers beyond 64 bits are larger than every length. Ranges past
/// the end are left out; if all are, `unsatisfiable`. A suffix range of an empty representation is
/// the whole (no Content-Range can say it).
[[nodiscard]] range_set parse_ranges(std::string_view text, std::uint64_t length) noexcept;

/// Parts with a smaller gap between them are sent as one (15.3.7.2): the head of a part of its own
/// costs as much.
inline constexpr std::uint64_t least_gap = 128;

/// What to send of a stored complete 200 whose body has `length` bytes. Preconditions come first
/// (RFC 9110 13.2.2). Whole unless the method is GET, there is exactly one Range line, and
/// If-Range, if there is one, holds.
///
/// Several ranges: those that overlap, touch or lie closer than least_gap become one, in the place
/// of the first of them; the others keep the order asked for (15.3.7.2). Whole all the same, as
/// 14.2 allows, when three of them share a byte, when they are more than two and not in ascending
/// order, when the parts left would be no smaller than the whole, or when the stored response has
/// a Content-Encoding: outside its parts the field would speak of the multipart text.
/// With one part left it is an ordinary 206; with more, a multipart/byteranges.
/// O(Range + lines), no allocation.
[[nodiscard]] range_set judge_ranges(std::string_view method,
                                     field_list request,
                                     field_list stored,
                                     std::uint64_t length,
                                     wall_time now) noexcept;

/// Whether its Last-Modified is a strong validator (8.8.2.2): at least a second before its Date, which must be
/// the origin's that changes it.
[[nodiscard]] bool has_strong_last_modified(field_list response, wall_time now) noexcept;

/// If-Range (13.1.5): a strong ETag by strong comparison, or a date that is exactly the stored
/// Last-Modified, where that is strong. True
/// without any If-Range; false for several.
[[nodiscard]] bool if_range_holds(field_list request, field_list stored, wall_time now) noexcept;

/// A 206's Content-Range taken apart.
struct content_range {
    std::uint64_t first = 0, last = 0, total = 0;  ///< total 0: unknown ("*"), or malformed
};
/// "bytes 0-499/1234" with first <= last < total; total is 0 for everything else. No allocation.
[[nodiscard]] content_range parse_content_range(std::string_view text) noexcept;

/// "bytes 0-499/1234": a 206's Content-Range value.
void append_content_range(std::string& out, byte_range part, std::uint64_t length);
/// "bytes */1234": a 416's.
void append_unsatisfied_range(std::string& out, std::uint64_t length);

}  // namespace reprise::proxy::http
