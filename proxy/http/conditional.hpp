#pragma once
// Validation, in both directions.
// Towards the client: its preconditions against a stored response (RFC 9110 13.2.2, RFC 9111
// 4.3.2). Towards the origin: our own conditional request, whether the 304 speaks of what is stored
// (RFC 9111 4.3.4), and the field lines that come of it (3.2).

#include "proxy/base/clock.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/freshness.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {

/// Entity-tag comparisons (RFC 9110 8.8.3.2), of tags as they stand in a field. A tag without
/// quotes, which some origins send, equals only itself.
[[nodiscard]] bool equal_weak(std::string_view a, std::string_view b) noexcept;
[[nodiscard]] bool equal_strong(std::string_view a, std::string_view b) noexcept;
/// Not "W/..." and not empty.
[[nodiscard]] bool is_strong(std::string_view etag) noexcept;

/// What a stored response can be validated with, as views into its field lines; empty: has none.
struct validators {
    std::string_view etag;
    std::string_view last_modified;  ///< only if it is a date
    [[nodiscard]] bool empty() const noexcept { return etag.empty() && last_modified.empty(); }
};
/// The first ETag and the first Last-Modified that count. `now` is for two-digit years alone.
[[nodiscard]] validators validators_of(field_list response, wall_time now) noexcept;

// ---- a client's conditional request --------------------------------------------------------

enum class precondition : std::uint8_t {
    none,          ///< not conditional, or nothing in it counts: answer with the stored response
    not_modified,  ///< answer 304
    serve,         ///< conditional, and the client's copy is out of date: answer in full
    forward,       ///< If-Match or If-Unmodified-Since: only the origin can tell (RFC 9111 4.3.2)
};
[[nodiscard]] std::string_view to_string(precondition verdict) noexcept;

/// Judges the preconditions of a GET or HEAD against the stored response that would answer it.
///
/// - A stored status other than 2xx: `none` (RFC 9110 13.2.1).
/// - If-None-Match: weak comparison with each tag of each line; "*" matches. It wins over
///   If-Modified-Since even when it holds no valid tag.
/// - If-Modified-Since: one line with a valid date, else ignored. Measured against Last-Modified,
///   else Date, else `response_time` (RFC 9111 4.3.2).
///
/// If-Range is range.hpp's.
[[nodiscard]] precondition judge_preconditions(field_list request,
                                               unsigned stored_status,
                                               field_list stored,
                                               wall_time response_time,
                                               wall_time now) noexcept;

/// The stored line belongs in a 304 made from the stored response (RFC 9110 15.4.5): all but the
/// fields that describe the content that isn't sent (Content-*, save Content-Location and
/// Content-Security-Policy*, whose names only look alike).
[[nodiscard]] bool belongs_in_not_modified(const field& stored) noexcept;

// ---- our conditional request to the origin -------------------------------------------------

/// Appends "If-None-Match" and "If-Modified-Since" lines, each ended by CR LF (RFC 9111 4.3.1:
/// both where both are known). The client's own preconditions must not be forwarded beside them.
void append_validation(std::string& head, const validators& known);

/// What a 304 to our validation says of the stored response.
enum class validation : std::uint8_t {
    confirmed,        ///< freshen it and use it
    other_validator,  ///< speaks of another representation: fetch again, unconditionally
    other_length,     ///< its Content-Length is not the stored body's: the same
};
[[nodiscard]] std::string_view to_string(validation verdict) noexcept;

/// RFC 9111 4.3.4, for a request that carried validators_of(stored).
///
/// - Both have an ETag: a strong one must equal a strong one byte by byte, a weak one is compared
///   weakly. Nothing else is then asked of validators. But where a strong one is the stored weak one
///   without its W/, and both have the same strong Last-Modified, that is the strong validator in common
///   which 4.3.4 asks for: a server that compresses as it sends weakens the tag of what it sends, and not
///   that of its 304s (tag_was_weakened()).
/// - Else an ETag that the stored response never had is believed to be its own where the Last-Modified of both
///   is the same, and, if the ETag is strong, where that is strong too: a second before the stored Date
///   (RFC 9110 8.8.2.2). Bytes of two representations would be joined by it otherwise.
/// - Else, both have a Last-Modified: the same bytes; and a 304 without any validator can only speak of what we
///   sent.
/// - Content-Length: a 304 may state only what the 200 would have (RFC 9110 8.6). Under the same
///   strong ETag a difference is the origin's slip and is ignored, as RFC 9111 3.2 does; without
///   one it is the only hint that the representation changed, and we would rather fetch again.
///
/// `stored_length`: bytes of the stored body, without transfer coding.
[[nodiscard]] validation judge_validation(field_list stored,
                                          std::uint64_t stored_length,
                                          field_list not_modified,
                                          wall_time now) noexcept;

/// The 304's ETag is strong, and the stored one the same, but weak: it is of other bytes than those that are
/// stored, and they are not to get it.
[[nodiscard]] bool tag_was_weakened(field_list stored, field_list not_modified) noexcept;

/// What a response to HEAD says of a stored response to GET for the same URL that HEAD's request
/// would have selected (RFC 9111 4.3.5).
enum class head_effect : std::uint8_t {
    nothing,  ///< not a 200, or the stored one is none, or it names no representation: it says nothing of it
    freshen,  ///< as a 304 does: `freshen` the stored lines, and judge them anew
    outdate,  ///< another representation: the stored one is stale from now on
};
[[nodiscard]] std::string_view to_string(head_effect effect) noexcept;

/// - Each validator that HEAD's response has (ETag, Last-Modified) must be the stored one's: a
///   strong ETag byte by byte, a weak one weakly, a date byte by byte. One that was not stored is
///   another representation's. Without any it may be of what the origin has by now: nothing was confirmed, and what
///   is stored gets no lifetime by it, for which an origin has to be asked with its validators, or for all of it.
/// - Content-Length, where HEAD's response has one, must be `stored_length`, even under an equal
///   ETag: a HEAD is not asked with our validators, so nothing else says that it means our bytes.
///
/// O(lines), no allocation.
[[nodiscard]] head_effect judge_head(unsigned stored_status,
                                     field_list stored,
                                     std::uint64_t stored_length,
                                     unsigned head_status,
                                     field_list head_response) noexcept;

/// The stored lines, updated by those of a 304, or of a 200 to HEAD (RFC 9111 3.2): a name in the
/// 304 replaces all its stored lines; the others stay. None if the result would be larger than
/// `most_bytes` (name, value and 4 bytes per line) or `most_lines`: treat it as a failed
/// validation, so that an origin can't grow a head past what could have been stored.
///
/// Never taken from the 304: Content-Length, Content-Encoding, Content-Range, Content-Digest (they describe the
/// stored bytes, or a message's that has others; 3.2 lets a cache leave out what would break its integrity, and origins are known
/// whose 304 forgets that the 200 was compressed), and whatever is_hop_by_hop (RFC 9111 3.1).
/// Nor Set-Cookie: what is stored would hand one client's cookie to all, whatever lifetime is
/// stated. Content-Type is taken: this cache stores bytes, it doesn't act on their type.
///
/// Date and Age are never the stored ones: they are the 304's or absent. So freshness_of over the
/// result gives the new age, and the caller adds a Date where there is none. The caller reads the
/// directives and judges storability anew: the 304 may bring a no-store or another Vary.
///
/// The result's views point into both inputs' buffers.
[[nodiscard]] std::optional<std::vector<field>> freshen(field_list stored,
                                                        field_list not_modified,
                                                        std::size_t most_bytes,
                                                        std::size_t most_lines);

}  // namespace reprise::proxy::http
