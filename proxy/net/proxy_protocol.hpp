#pragma once
// What a front (a load balancer) says of a connection before anything else of it: the PROXY protocol,
// version 2 (haproxy's doc/proxy-protocol.txt, 2.2). Version 1, the one in words, is not taken.

#include "proxy/net/asio.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace reprise::proxy::net {

inline constexpr std::size_t proxy_head_bytes = 16;  ///< up to and with the length of what follows
/// Most of what follows: addresses, and values that nobody reads here (TLS, the front's own).
inline constexpr std::size_t most_proxy_rest = 4096;

/// How much follows behind the first proxy_head_bytes. None: it is no such header, or more than
/// most_proxy_rest follows. Total, O(1).
[[nodiscard]] std::optional<std::size_t> proxy_rest(std::string_view head) noexcept;

struct fronted {
    /// Whose connection the front passes on. None: its own (LOCAL, a health check), or one that has no
    /// IP address (UNSPEC, UNIX): then the connection's own address is all there is to know.
    std::optional<tcp::endpoint> client{};
};
/// The whole header: proxy_head_bytes, and what proxy_rest() said. None: it says what can't be so of a
/// TCP connection. A mapped address is IPv4. Total, O(1).
[[nodiscard]] std::optional<fronted> read_proxy_header(std::string_view whole) noexcept;

}  // namespace reprise::proxy::net
