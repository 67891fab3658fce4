#pragma once
// Credentials that log a connection in, and not the request that brings them: NTLM ([MS-NTHT]) and what
// came after it (RFC 4559). Whatever comes on that connection next is answered as its user is.

#include "proxy/http/fields.hpp"

namespace reprise::proxy::http {

/// Whether Authorization names such a scheme. O(lines).
[[nodiscard]] bool logs_connection_in(field_list request) noexcept;

}  // namespace reprise::proxy::http
