#pragma once
// A stored response of which only parts are held: how they come together (RFC 9110 15.3.7.3, RFC
// 9111 3.3 and 3.4) and what they can answer.
//
// It is kept as the head that the whole would have (200, Content-Length where the complete length
// is known, no Content-Range), with `parts` in place of `content`. The rules:
//
// - Parts are combined only under the same strong validator: a strong ETag, or, where there is no
//   ETag, a Last-Modified that is strong by RFC 9110 8.8.2.2 (If-Range could name no
//   other, 13.1.5). A part of another representation, or of one that cannot be told, takes the old
//   ones' place.
// - The newer head's fields replace the older's of the same name (RFC 9111 3.4, 3.2): so a part
//   that comes freshens all of them.
// - When nothing is missing any more it is an ordinary stored response.
//
// Pure functions over values; `now` is an argument.

#include "proxy/cache/parts.hpp"
#include "proxy/cache/stored_response.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::cache {

/// A 206's Content-Range; `total` is partial_body::unknown for "*".
struct part_place {
    http::byte_range range;
    std::uint64_t total = partial_body::unknown;
};
/// None unless the head has exactly one valid Content-Range line: so none for multipart/byteranges.
[[nodiscard]] std::optional<part_place> part_place_of(http::field_list partial);

/// What names a representation byte by byte, as If-Range says it: two responses with the same one,
/// not empty, have the same bytes. Empty: it has none. A view into the lines.
[[nodiscard]] std::string_view strong_validator_of(http::field_list response, wall_time now);
/// By their strong validators: parts of the one are parts of the other.
[[nodiscard]] bool are_of_one_representation(const stored_response& one,
                                             const stored_response& other);

/// What a 206 is stored as. The directives, the freshness, vary and selecting values are the
/// caller's to set, from the 206's own head.
/// `head`: status line and end-to-end fields of the 206 in wire form, without Content-Length.
/// @pre content->size == place.range.size(), not 0
[[nodiscard]] response_draft made_of_part(std::string_view head,
                                          const part_place& place,
                                          body_ptr content);

enum class combination : std::uint8_t {
    combined,
    other_object,  ///< not the same representation for certain: the newer replaces the older
    too_large,     ///< together more than may be held: the older stays as it is
};
struct combining_rules {
    std::uint64_t most_bytes = 0;  ///< of body held (memory.max_object)
    std::size_t head_bytes = 0, head_fields = 0;
    http::freshness_rules freshness;
    std::span<const std::string> targeted;
};
struct combined_response {
    combination what = combination::other_object;
    stored_ptr response;  ///< of `combined`
};
/// The head of `stored`, updated by that of a 206 of the same representation (RFC 9111 3.4): its
/// bytes are `stored`'s. Freshness is computed anew over the fields of both, the age is the
/// newer's; vary and selecting values are `stored`'s. None when it would be too large.
[[nodiscard]] std::optional<response_draft> updated_by(const stored_response& stored,
                                                       http::field_list partial,
                                                       const http::freshness_facts& newer,
                                                       const combining_rules& rules);

/// `stored`, a whole or parts, together with `added`, made by made_of_part; the head as by
/// updated_by.
/// O(lines + parts + slices joined).
[[nodiscard]] combined_response combine(const stored_response& stored,
                                        const stored_response& added,
                                        const combining_rules& rules);

/// Makes an ordinary stored response of one whose parts miss nothing; leaves others alone.
void complete_if_whole(response_draft& response);

/// What parts can do for a request.
enum class part_use : std::uint8_t {
    none,           ///< nothing: the origin is asked for all that the client wants
    head,           ///< HEAD: no byte is needed
    held,           ///< 206 from the store
    unsatisfiable,  ///< 416: the range begins behind the known end
    gap,            ///< what is missing is fetched, the rest is held
};
[[nodiscard]] std::string_view to_string(part_use use) noexcept;

struct part_plan {
    part_use use = part_use::none;
    bool ranged = false;        ///< 206 with `wanted`, else a 200 of everything
    http::byte_range wanted{};  ///< of held and gap
    http::byte_range gap{};     ///< of gap; within `wanted`, and never all of it
    bool open = false;          ///< of gap: it reaches to the object's end
    /// For a gap: the If-Range value, never empty. A view into the stored head.
    std::string_view validator;
};
/// For a GET or HEAD whose preconditions allow an answer. Several ranges, ranges of other units
/// and a Range whose If-Range does not hold get `none`. From an object of unknown length only
/// ranges with both ends, and held, are served. Without a strong validator nothing can be joined to
/// what is held: whoever wants more gets `none`, and what comes takes its place.
/// @pre stored.parts
[[nodiscard]] part_plan plan_parts(const stored_response& stored,
                                   std::string_view method,
                                   http::field_list request,
                                   wall_time now);

/// A 206 to the plan's gap brings exactly that, of the same representation: what is held and what
/// comes may be sent as one.
[[nodiscard]] bool fills_gap(const part_plan& plan,
                             std::uint64_t total,
                             unsigned status,
                             http::field_list fields,
                             wall_time now);

/// What answered the request for the plan's gap, and does not fill it, says that the parts are no
/// more: another representation, another length, a range that lies beyond it (416), or nothing
/// there (404, 410). Every other answer says nothing of them: they stay (as what is stored whole
/// stays where a validation is answered by an error).
[[nodiscard]] bool ends_parts(const part_plan& plan,
                              std::uint64_t total,
                              unsigned status,
                              http::field_list fields,
                              wall_time now);

}  // namespace reprise::proxy::cache
