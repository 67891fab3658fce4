#pragma once
// Redirects for clients that asked as http://HTTPS///host/path: they are to ask so again, since they
// would not know the way by https.

#include "config/options.hpp"
#include "proxy/http/target.hpp"

#include <string>
#include <string_view>

namespace reprise::proxy::serve {

[[nodiscard]] constexpr bool is_redirect(unsigned status) noexcept {
    return status / 100 == 3;
}

/// Appends `head` (status line and field lines, perhaps the empty line) with its Location lines as
/// such a client can follow them. One that leads to an https URL of a host in access.https_prefix,
/// or is relative (its base would be the wrong one), becomes http://HTTPS///host/path. Others, and
/// what cannot be read, stay. Cost: the head's bytes.
void append_prefixed(std::string& out,
                     std::string_view head,
                     const http::target& asked,
                     const config::access_options& access);

}  // namespace reprise::proxy::serve
