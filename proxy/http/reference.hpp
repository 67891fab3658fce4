#pragma once
// A URI reference, read from where it stands: what Location and Content-Location name (RFC 9110
// 10.2.2, RFC 3986 5.2). Only paths are put together here; callers compare authorities.

#include <string>
#include <string_view>

namespace reprise::proxy::http {

/// "http:", "HTTPS:", "mailto:"... stands at its beginning (RFC 3986 3.1).
[[nodiscard]] bool has_scheme(std::string_view reference) noexcept;

/// The absolute path and query that a reference without scheme and authority names from `base`, a
/// path and query itself (RFC 3986 5.2.2 to 5.2.4): "t" and "./t" from "/a/b?x" are "/a/t", "../t"
/// is "/t", "?y" is "/a/b?y", "" is the base. No fragment in the result. Total, O(length).
[[nodiscard]] std::string resolve_path(std::string_view base, std::string_view reference);

}  // namespace reprise::proxy::http
