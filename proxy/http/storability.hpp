#pragma once
// May this response be stored, and if not, why not (RFC 9111 3, for a shared cache).
// One enumerator per rule; the first that applies is named, in the order of the enumeration. What
// is stored need not be fresh: a response that must be validated each time is worth storing if
// there is something to validate it with.

#include "proxy/http/cache_control.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/freshness.hpp"

#include <cstdint>
#include <string_view>

namespace reprise::proxy::http {

struct target;

enum class storability : std::uint8_t {
    storable,
    /// Not GET (RFC 9111 3: a method that is understood as cacheable), nor a POST whose answer
    /// stands for the URL (judge_post).
    method,
    no_store_request,  ///< 5.2.1.5
    partial,           ///< 206, or 416 to a Range: about a part, and parts are not stored
    /// About the exchange, not what the URL stands for: 1xx, 226, 304, 407, 412, 428, 429, 431, 511, 6xx and beyond.
    status,
    must_understand,   ///< 5.2.2.3: must-understand, and we have no rules for the status
    no_store,          ///< 5.2.2.5; overridden by a must-understand that is met
    private_response,  ///< 5.2.2.7, not where it names fields that can be left out
    authorization,     ///< 3.5: Authorization without public, must-revalidate or s-maxage
    vary_any,  ///< 4.1: Vary: *, more names than vary_spec holds, or (the caller's to say) a field that we write
    set_cookie,   ///< 7.3: Set-Cookie without a lifetime that the origin stated, or at all
    cookie,       ///< Cookie, where that needs a stated lifetime and leave to share (below)
    no_lifetime,  ///< 3: no explicit lifetime, and the status has no heuristic one
    useless,      ///< never fresh and without a validator: nothing could reuse it
};

/// A reason as Cache-Status' `detail` has it: "no-store", "private", "vary-any"...
[[nodiscard]] std::string_view to_string(storability verdict) noexcept;
/// It as a clause for people, without a full stop: "the origin said no-store".
[[nodiscard]] std::string_view in_words(storability verdict) noexcept;
/// "RFC 9111 5.2.2.5"
[[nodiscard]] std::string_view section_of(storability verdict) noexcept;

/// What keeps responses out beyond the RFC.
struct storing_rules {
    bool never_cookies = false;  ///< Set-Cookie is `set_cookie`, whatever lifetime is stated
    /// What answers a request with Cookie is stored only with a lifetime that the origin stated and
    /// its leave to share (public, s-maxage): for https URLs, whose origins don't expect shared caches.
    bool cookie_needs_leave = false;
    /// The connection was logged in (connection_login.hpp): whatever the origin says of what came on it, it
    /// may not know who asked, and so nothing is stored. Counts as `authorization`.
    bool is_logged_in = false;
};

/// Judges a complete response head. O(lines), no allocation.
///
/// - `request` is the request as the origin saw it: 3.5 and 416 are about what was answered. What
///   Connection may not take away (Authorization, Range) is in it (forwarding.hpp).
/// - Unknown final statuses are stored when their lifetime is explicit, or `public` (RFC 9111 3).
/// - Without fresh time it is stored only with an ETag or a valid Last-Modified. A response that
///   only arrived stale (Age above a lifetime that is not zero) is stored without one too: a
///   client's max-stale or a stale-if-error may still use it.
/// - no-cache without a validator is `useless`: each reuse would be a whole fetch.
[[nodiscard]] storability judge_storable(std::string_view method,
                                         unsigned status,
                                         field_list request,
                                         const request_directives& asked,
                                         field_list response,
                                         const response_directives& allowed,
                                         const freshness_facts& facts,
                                         const storing_rules& rules = {}) noexcept;

/// May the answer to a POST be stored and answer later GETs of its URL (RFC 9110 9.3.3): only a 2xx
/// with an explicit lifetime above zero, and a Content-Location that is the target URI itself.
/// `method` where it does not qualify, else what judge_storable says of it as a GET's. A lifetime
/// is needed here even where `public` would do for a GET.
///
/// `wanted` is what the request asked for, with its authority; Content-Location may name it in
/// absolute form or by an absolute path. One line only: two could disagree.
///
/// The store's own answer for the URL is invalidated by the POST all the same (RFC 9111 4.4), and
/// before this one is put in. Allocates for the comparison of a Content-Location in another
/// spelling.
[[nodiscard]] storability judge_post(unsigned status,
                                     const target& wanted,
                                     field_list request,
                                     const request_directives& asked,
                                     field_list response,
                                     const response_directives& allowed,
                                     const freshness_facts& facts,
                                     const storing_rules& rules = {});

/// Statuses whose caching rules this cache follows (what must-understand asks, RFC 9111 5.2.2.3).
[[nodiscard]] bool is_understood(unsigned status) noexcept;

}  // namespace reprise::proxy::http
