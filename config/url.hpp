#pragma once
// The kinds of URL an operator writes: an accelerator's upstream, a peer's, and a rule's pattern.

#include "config/parsed.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::config {

/// "http://host[:port][/]" or https -> the same without the slash: host in lower case, an IPv6
/// address in brackets and its shortest form, the scheme's own port left out. Refuses user
/// information, a path, a query.
[[nodiscard]] parsed<std::string> parse_upstream(std::string_view text);

/// "http://host:port[/]" or https -> the same without the slash: host as above; the port must be
/// written, since proxies have no default one.
[[nodiscard]] parsed<std::string> parse_peer_url(std::string_view text);

/// A URL in which * stands for any run of characters. Scheme and host are put in lower case and a
/// default port is dropped, so that the pattern is spelt as the URLs it is compared with. One that
/// none of them can match is refused, and one that is a host alone: it would be for one page.
[[nodiscard]] parsed<std::string> parse_url_pattern(std::string_view text);

/// Whether all of `first` and `second`, one behind the other, is what a pattern says. Given another
/// pattern as text: whether that can match nothing that this one does not. O(pattern * text) at
/// worst, no allocation.
[[nodiscard]] bool matches_pattern(std::string_view pattern,
                                   std::string_view first,
                                   std::string_view second = {}) noexcept;

/// The port that a pattern's URLs have; none: a * may stand for it.
[[nodiscard]] std::optional<std::uint16_t> port_of_pattern(std::string_view pattern) noexcept;

}  // namespace reprise::config
