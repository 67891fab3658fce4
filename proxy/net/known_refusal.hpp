#pragma once
// What this machine itself knows to be refused, before anybody is asked to connect in its place.
// A peer connects from where it stands, and judges by its own settings if at all: to its own
// loopback, to the metadata of its cloud, or back to this machine. Where a name leads that must be
// looked up is the peer's business.

#include "proxy/base/failure.hpp"
#include "proxy/net/guard.hpp"
#include "proxy/net/resolver.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise::proxy::net {

/// destination_refused, for a literal address that the guard refuses, and for a name that the hosts
/// file leads to such ones alone. None: it may be left to a peer. Asks no name server.
[[nodiscard]] std::optional<failure> known_refusal(const destination_guard& guard,
                                                   resolver& names,
                                                   std::string_view host,
                                                   std::uint16_t port);

}  // namespace reprise::proxy::net
