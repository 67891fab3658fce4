#pragma once
// What a client's address says of it: whether it may ask (access.clients), and whether it speaks
// for many (access.fronts).

#include "config/options.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/asio.hpp"

#include <vector>

namespace reprise::proxy::net {

/// True when `client` is in one of the networks; a mapped IPv4 address counts as IPv4. An empty
/// list allows nobody. O(networks), no allocation.
[[nodiscard]] bool client_allowed(const std::vector<config::network>& allowed,
                                  const asio::ip::address& client) noexcept;

/// True when one of the networks holds the address. O(networks), no allocation.
[[nodiscard]] bool is_in(const std::vector<config::network>& networks,
                         const address_bytes& address) noexcept;

}  // namespace reprise::proxy::net
