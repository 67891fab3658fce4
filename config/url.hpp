#pragma once
// The kinds of URL an operator writes: an accelerator's upstream, a peer's, and a rule's pattern.

#include "config/parsed.hpp"

#include <string>
#include <string_view>

namespace reprise::config {

/// "http://host[:port][/]" -> "http://host[:port]": host in lower case, an IPv6 address in
/// brackets and its shortest form, port 80 left out. Refuses user information, a path, a query.
[[nodiscard]] parsed<std::string> parse_upstream(std::string_view text);

/// "http://host:port[/]" or https -> the same without the slash: host as above; the port must be
/// written, since proxies have no default one.
[[nodiscard]] parsed<std::string> parse_peer_url(std::string_view text);

/// A URL in which * stands for any run of characters. Scheme and host are put in lower case, a
/// default port is dropped and an empty path becomes "/", so that the pattern is spelt as the
/// URLs it is compared with.
[[nodiscard]] parsed<std::string> parse_url_pattern(std::string_view text);

}  // namespace reprise::config
