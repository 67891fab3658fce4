#pragma once
// What this machine itself knows to be refused, before anybody is asked to connect in its place.
// A peer connects from where it stands, and judges by its own settings if at all: to its own
// loopback, to the metadata of its cloud, or back to this machine. Where a name leads that must be
// looked up is the peer's business. What is no host name here is left to none: of 0127.0.0.1 one reads
// an octal number and another 127, and which of them the peer is nobody knows.

#include "proxy/base/failure.hpp"
#include "proxy/net/guard.hpp"
#include "proxy/net/resolver.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise::proxy::net {

/// destination_refused, for a literal address that the guard refuses, and for a name that the hosts
/// file leads to such ones alone; dns_not_found, for what is neither a name nor an address in its plain
/// spelling. None: it may be left to a peer. Asks no name server.
[[nodiscard]] std::optional<failure> known_refusal(const destination_guard& guard,
                                                   resolver& names,
                                                   std::string_view host,
                                                   std::uint16_t port);

}  // namespace reprise::proxy::net
