#pragma once
// What becomes of a request, given what the store has for it: a value with its reason.
// Nothing here looks anything up, reads a clock or sends a byte. The answers in serve/ carry the
// verdict out, /explain prints it, and both ask the same function: what is said is what is done.

#include "proxy/base/clock.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/partial_response.hpp"
#include "proxy/http/cache_control.hpp"
#include "proxy/http/cache_status.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/reuse.hpp"

#include <cstdint>
#include <string_view>

namespace reprise::proxy::cache {

/// What decides about a request's answer, read once from its method and field lines.
struct request_facts {
    http::request_directives asked;
    bool is_get = false;
    bool is_head = false;
    bool has_directives = false;         ///< Cache-Control or Pragma
    bool has_conditions = false;         ///< any precondition; If-Range is none
    bool has_origin_conditions = false;  ///< If-Match, If-Unmodified-Since: the origin's to judge
    bool has_range = false;
    bool has_authorization = false;
    bool has_cookie = false;
    bool has_via = false;
};

/// `fields` as the origin would see them, hop-by-hop fields taken out. One pass, no allocation.
[[nodiscard]] request_facts read_request_facts(bool is_get,
                                               bool is_head,
                                               http::field_list fields) noexcept;

enum class ruling : std::uint8_t {
    hit,           ///< the stored response answers, and is fresh
    stale_hit,     ///< it answers though stale: the client said that it may
    stale_behind,  ///< it answers though stale, and the origin is asked behind the client's back
    validate,      ///< the origin is asked whether what is stored still holds
    complete,      ///< parts answer, but for a gap that the origin is asked for
    forward,       ///< the origin is asked for all of it
    unavailable,   ///< not without the origin, and the client does not want that: 504
};
[[nodiscard]] std::string_view to_string(ruling what) noexcept;

/// The rule that decided.
enum class rule : std::uint8_t {
    fresh,
    max_stale,
    while_revalidating,
    nothing_stored,
    other_variant,
    stale,
    must_revalidate,
    response_no_cache,
    request_no_cache,
    request_max_age,
    request_min_fresh,
    origin_conditions,
    partial,  ///< parts are stored, and do not hold what is wanted
    method,
};
[[nodiscard]] std::string_view to_string(rule why) noexcept;
/// "RFC 9111 4.2"
[[nodiscard]] std::string_view section_of(rule why) noexcept;

struct verdict {
    ruling what = ruling::forward;
    rule why = rule::nothing_stored;
    /// RFC 9211's fwd; none where the stored response answers.
    http::forward_reason forward = http::forward_reason::none;
    /// Age and remaining lifetime of what is stored; zeros where nothing is.
    http::reuse_verdict reuse;
    /// Where parts are stored: what they can do for this request.
    part_plan part{};

    /// The stored response is the answer.
    [[nodiscard]] bool answers() const noexcept { return what <= ruling::stale_behind; }
};

/// Judges one request. `fields` are the request's, as for read_request_facts.
///
/// Cost   a response found before its reusable_until, for a request without directives and
///        conditions: one comparison of times, no allocation. Preconditions, and whatever does not
///        answer, parse the stored field lines.
/// @pre `kept` is what the store found for these fields
[[nodiscard]] verdict judge(const lookup_result& kept,
                            const request_facts& facts,
                            http::field_list fields,
                            wall_time now);

/// What Cache-Status says of an answer from the store.
/// @pre judged.answers()
[[nodiscard]] http::cache_status status_of(const verdict& judged,
                                           const stored_response& stored) noexcept;

/// Whether the origin is asked by the validators of what is stored (RFC 9111 4.3.1), which must
/// have some: for a GET without conditions that are the origin's to judge, whose answer may be
/// stored (5.2.1.5). Parts too, though a 304 then serves a range that they hold and nothing more. Not for a
/// stored error or redirection: a 304 says that the answer would have been a 200 (RFC 9110 15.4.5), so
/// it would say that the error is over, and be taken to confirm it.
[[nodiscard]] bool may_validate(const lookup_result& kept,
                                const request_facts& facts,
                                wall_time now);

/// The stored response may stand in for an answer that the origin failed to give (RFC 5861 4, RFC
/// 9111 4.2.4). `disconnected`: it gave none at all; then any stale response may, up to
/// `disconnected_most` past its end, and one that the client would have had younger, validated or
/// fresh for longer: it prefers that (5.2.1), as programs do that look for what is new (pip, apt and git
/// in their indexes).
[[nodiscard]] bool may_stand_in(const lookup_result& kept,
                                const verdict& judged,
                                const request_facts& facts,
                                bool disconnected,
                                http::seconds disconnected_most,
                                wall_time now) noexcept;

}  // namespace reprise::proxy::cache
