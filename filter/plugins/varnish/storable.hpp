#pragma once
// Would Varnish store this answer, and may it? In a fetch that VCL passed there is no beresp.ttl and the built-in VCL
// judges nothing, so that whoever wants to know must do both anew.
//
// The answer is yes where Varnish's own arithmetic (cache_rfc2616.c) gives a lifetime, its built-in vcl_backend_response
// would store, and RFC 9111 has nothing against it: an Expires that can't be read is in the past (5.3), "*" anywhere in
// Vary (4.1), Authorization (3.5). An error is a sight only where it says how long it is good for.

#include <string_view>

namespace reprise::varnish {

/// What there is to judge by. A field that is missing has no data (a null pointer); one that is empty has.
struct answer {
    int status = 200;
    std::string_view cache_control, surrogate_control, vary;
    bool has_expires = false;
    double expires = 0;  ///< seconds since 1970; 0 where it can't be read
    double date = 0;     ///< likewise, or there is none
    bool sets_cookie = false;
    bool was_authorized = false;  ///< the request had Authorization
    double age = 0;               ///< of the answer, in seconds
    double now = 0;
    double default_ttl = 120;  ///< Varnish's parameter: where nothing says anything
    double clock_skew =
        10;  ///< likewise: how far Date may be from `now` and Expires still be read by our clock
};

enum class verdict {
    storable,
    bad_status,
    no_lifetime,  ///< over already, or an error that gives none
    forbidden,    ///< no-store, private, no-cache
    sets_cookie,
    varies_by_all,
    authorized
};

/// Total: whatever the fields say. 206 and 304, which only a passed request is answered with, count as the 200 that they
/// are parts of. Allocates nothing.
[[nodiscard]] verdict judge(const answer& given) noexcept;

}  // namespace reprise::varnish
