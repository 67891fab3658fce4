#pragma once
// A connection as accept(2) gives it, with as few system calls as it takes.

#include "proxy/net/asio.hpp"

#include <optional>

namespace reprise::proxy::net {

struct accepted {
    tcp_socket socket;  ///< non-blocking, watched from its first wait on (watched.hpp); its options
                        ///< are inherited (prepare_listener)
    tcp::endpoint from;
};

/// The connection that has waited longest for `by`. None: nobody waits, or `error` says why not.
/// @pre `by` listens, and is non-blocking
[[nodiscard]] std::optional<accepted> accept_now(tcp_socket& by, error_code& error);

}  // namespace reprise::proxy::net
