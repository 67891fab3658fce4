#pragma once
// Whether an address can be listened on.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"

#include <string>

namespace reprise::proxy::net {

/// "127.0.0.1:3128", "[::1]:3128"
[[nodiscard]] std::string to_text(const config::endpoint& where);

/// Whether sockets at both are in each other's way: the same port, and one address, or all of them at
/// either.
[[nodiscard]] bool overlap(const config::endpoint& one, const config::endpoint& other);

/// Why nobody could listen there now; no error: somebody could. Whoever listens there already is
/// seen even where SO_REUSEPORT would let us share the port with it. Listens nowhere itself.
/// @param for_both  where it is `::`, IPv4 is to reach it too, as it does the admin's
[[nodiscard]] error_code why_not_listen(asio::io_context& io,
                                        const config::endpoint& where,
                                        bool for_both = false);

}  // namespace reprise::proxy::net
