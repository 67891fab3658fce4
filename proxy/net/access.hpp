#pragma once
// Who may ask: the networks of access.clients.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"

#include <vector>

namespace reprise::proxy {

/// True when `client` is in one of the networks; a mapped IPv4 address counts as IPv4. An empty
/// list allows nobody. O(networks), no allocation.
[[nodiscard]] bool client_allowed(const std::vector<config::network>& allowed,
                                  const net::ip::address& client) noexcept;

}  // namespace reprise::proxy
