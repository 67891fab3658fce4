#pragma once
// Sets of addresses, as lists of networks: what a chain of allow and deny rules comes to.
// The two families are apart: an IPv4 network is held in its mapped form with 96 or more prefix
// bits, and no IPv6 network is taken to hold it.

#include "config/options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reprise::from_squid {

using network_set = std::vector<config::network>;

[[nodiscard]] network_set everybody();  ///< 0.0.0.0/0 and ::/0

/// What Squid's src and dst take: an address, address/bits, address/mask, first-last,
/// first-last/mask. Empty: it is none of these (a name, perhaps). At most 254 networks.
[[nodiscard]] network_set parse_addresses(std::string_view text);

/// Whether it is an IPv6 network that ::ffff:0:0/96 lies in, as ::/1. Where addresses of both families are
/// compared as IPv6 ones, by Squid and by our settings, it holds all of IPv4.
[[nodiscard]] bool reaches_over_ipv4(const config::network& one);

/// O((a + b) log(a + b)) and what comes of it, as the two below; a difference is at most 128 networks for
/// each of b.
[[nodiscard]] network_set intersection(const network_set& a, const network_set& b);
[[nodiscard]] network_set difference(const network_set& a, const network_set& b);
/// Without what lies within another of them, in the order of first sight.
[[nodiscard]] network_set tidied(const network_set& all);

/// As access.clients has them. There an IPv6 network that reaches over ::ffff:0:0/96 (::/0, ::/3) would
/// be for all of IPv4 too: where that is not meant, what clients can have of it is written.
[[nodiscard]] std::vector<std::string> as_settings(const network_set& all);

}  // namespace reprise::from_squid
