#pragma once
// What an origin says of storing and lifetime that an operator has this cache set aside.
// All of it breaks RFC 9111, so each is a choice of its own, and none of them reaches what belongs
// to one client: is_personal says what that is.

#include "proxy/http/cache_control.hpp"
#include "proxy/http/fields.hpp"

namespace reprise::proxy::http {

/// Each is true where what it names is set aside.
struct overrides {
    bool expires = false;          ///< RFC 9111 5.3: raised to freshness_rules::at_least
    bool max_age = false;          ///< 5.2.2.1: the same
    bool s_maxage = false;         ///< 5.2.2.10: the same
    bool no_store = false;         ///< 5.2.2.5
    bool no_cache = false;         ///< 5.2.2.4, not where it names fields
    bool private_ = false;         ///< 5.2.2.7, not where it names fields
    bool must_revalidate = false;  ///< 5.2.2.2, and proxy-revalidate, 5.2.2.8
    bool operator==(const overrides&) const = default;
};

/// A response to a request with Authorization or Cookie, or one with Set-Cookie. O(lines).
[[nodiscard]] bool is_personal(field_list request, field_list response) noexcept;

/// `stated` without the directives that are set aside. Times stay: freshness_of raises them, and
/// s-maxage is the leave to share that RFC 9111 3.5 wants.
[[nodiscard]] response_directives without(response_directives stated,
                                          const overrides& set_aside) noexcept;

}  // namespace reprise::proxy::http
