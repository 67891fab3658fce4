#pragma once
// Whether an address can be listened on.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"

#include <string>

namespace reprise::proxy::net {

/// "127.0.0.1:3128", "[::1]:3128"
[[nodiscard]] std::string to_text(const config::endpoint& where);

/// Why nobody could listen there now; no error: somebody could. Whoever listens there already is
/// seen even where SO_REUSEPORT would let us share the port with it. Listens nowhere itself.
[[nodiscard]] error_code why_not_listen(asio::io_context& io, const config::endpoint& where);

}  // namespace reprise::proxy::net
