#pragma once
// From a host and a port to a connected socket.
// Addresses of both families are raced as RFC 8305 says: IPv6 first, families in turn, the next one
// started when the last has failed or has been silent for 250 ms; the first to connect wins.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/guard.hpp"
#include "proxy/net/resolver.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::net {

/// Connects; the socket is prepared (io.hpp). Only addresses that `guard` allows are tried. Those of a
/// family that is late are waited for, and tried, when the others have led nowhere, or are silent for half of the time.
/// Errors: the resolver's; destination_refused, naming the address and the setting, when the guard
/// left none; connect_refused, connect_unreachable, connect_timeout; out_of_memory when
/// nothing_left, for one of its addresses at the least: whether it can be reached is not known then. All
/// but destination_refused and out_of_memory may be tried elsewhere.
/// Given up (coroutine.hpp), it ends in the loop's next turn, and its sockets with it.
/// @param exempt  a configured upstream: the guard lets it pass
/// @param asker   the resolver's
[[nodiscard]] awaitable<attempt<tcp_socket>> dial(resolver& names,
                                                  std::shared_ptr<const destination_guard> guard,
                                                  std::string host,
                                                  std::uint16_t port,
                                                  bool exempt,
                                                  steady_time until,
                                                  share_holder asker = {});

/// Whether connecting there failed so since the system had no descriptor, memory or local port for it: a
/// little later it may. Of a port it asks the system, at the cost of a socket.
[[nodiscard]] bool nothing_left(const boost::system::error_code& error,
                                const tcp::endpoint& target) noexcept;

/// The order in which addresses are tried (RFC 8305 4): families in turn, IPv6 first, the order
/// within a family kept.
[[nodiscard]] std::vector<asio::ip::address> interleaved(
    const std::vector<asio::ip::address>& addresses);

}  // namespace reprise::proxy::net
