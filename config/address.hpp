#pragma once
// Addresses, networks, host names and ports as an operator writes them.
// Pure: nothing is resolved. Every text yields a value in its one normal form or a sentence on
// what would be right; to_string gives text that parses to the same value again.

#include "config/options.hpp"
#include "config/parsed.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::config {

/// A numeric IPv4 or IPv6 address, without brackets, in its mapped form; none for anything else
/// (names, zones such as %eth0, octal or short forms).
[[nodiscard]] std::optional<std::array<std::uint8_t, 16>> parse_ip(std::string_view text);
[[nodiscard]] std::string ip_to_string(const std::array<std::uint8_t, 16>& address);

/// 0 to 65535 in decimal, no sign, no leading zeros.
[[nodiscard]] std::optional<std::uint16_t> parse_port(std::string_view text);

/// "127.0.0.1:3128", "[::1]:3128". With `default_port` the port may be left out.
[[nodiscard]] parsed<endpoint> parse_endpoint(std::string_view text,
                                              std::optional<std::uint16_t> default_port = {});

/// "10.0.0.0/8", "fc00::/7", or one address. Bits beyond the prefix are refused, being a slip more
/// often than meant.
[[nodiscard]] parsed<network> parse_network(std::string_view text);

/// A host name in lower case, without the root's dot; refuses what a resolver would take for a
/// number (RFC 3986 3.2.2's dotted quads excepted) and non-ASCII names.
[[nodiscard]] parsed<std::string> parse_host(std::string_view text);

/// "host", "*.host", "10.0.0.0/8", "::1", each perhaps with a port: "host:80", "10.0.0.0/8:80",
/// "[::1]:80", "[fc00::/7]:80".
[[nodiscard]] parsed<destination> parse_destination(std::string_view text);

/// "1024-65535", or one port.
[[nodiscard]] parsed<port_range> parse_port_range(std::string_view text);

[[nodiscard]] std::string to_string(const endpoint& address);
[[nodiscard]] std::string to_string(const network& net);
[[nodiscard]] std::string to_string(const destination& where);
[[nodiscard]] std::string to_string(const port_range& ports);

}  // namespace reprise::config
