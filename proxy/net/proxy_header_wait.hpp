#pragma once
// The wait for what a front says of a connection (proxy_protocol.hpp).

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/proxy_protocol.hpp"

namespace reprise::proxy::net {

/// Reads the header from a connection just accepted, and not a byte more.
/// Errors: bad_request, also where the front leaves; request_timeout, when `until` has passed.
/// @throws std::bad_alloc
[[nodiscard]] awaitable<attempt<fronted>> take_proxy_header(tcp_socket& socket,
                                                            deadlines& timer,
                                                            steady_time until);

}  // namespace reprise::proxy::net
