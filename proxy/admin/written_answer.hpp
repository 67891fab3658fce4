#pragma once
// A response, written to whoever asked for it.
//
// Threads   the sockets'.
// Waits     as long as the stream's own timer lets them.

#include "proxy/admin/admin_answers.hpp"
#include "proxy/admin/visitors.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>

namespace reprise::proxy::admin {

using client_stream = boost::beast::basic_stream<visitor::protocol>;

/// True when all of it was written. `head`: it answers HEAD, and no body is sent.
[[nodiscard]] boost::asio::awaitable<bool> send(client_stream& to,
                                                admin_http_response& response,
                                                bool keep,
                                                bool head);

/// Ends when the client has left, or takes nothing for as long as `most`. The connection is to be closed then.
[[nodiscard]] boost::asio::awaitable<void> send_as_it_comes(client_stream& to,
                                                            admin_http_response& response,
                                                            admin_stream& body,
                                                            std::chrono::milliseconds most);

}  // namespace reprise::proxy::admin
