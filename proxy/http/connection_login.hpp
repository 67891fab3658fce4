#pragma once
// Credentials that log a connection in, and not the request that brings them: NTLM ([MS-NTHT]) and what
// came after it (RFC 4559). Whatever comes on that connection next is answered as its user is.

#include "proxy/http/fields.hpp"

namespace reprise::proxy::http {

/// Whether Authorization names such a scheme. O(lines).
[[nodiscard]] bool logs_connection_in(field_list request) noexcept;

/// Whether WWW-Authenticate names one. Clients log in so through a proxy only where that says by
/// Proxy-Support that it keeps their connections apart (RFC 4559 6). O(bytes of those lines).
[[nodiscard]] bool asks_for_connection_login(field_list response) noexcept;

}  // namespace reprise::proxy::http
