#pragma once
// The few Asio names that everything above the sockets is written in.
// They are vocabulary and so lie in reprise::proxy, where every folder says them without a prefix;
// what net/ itself makes is in reprise::proxy::net.
// One io_context runs on one thread, so nothing here needs a strand. The executor is named once:
// whoever writes `awaitable` and `tcp_socket` follows when it changes.

#include "proxy/net/frames.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

namespace reprise::proxy {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

// The io_context's own executor, not any_io_executor: nothing here ever runs elsewhere, and type
// erasure would be paid for at each operation.
using executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<tcp, executor>;
template <class T>
using awaitable = asio::awaitable<T, executor>;

/// The token for awaits whose next line decides: the error comes back as a value, nothing throws.
inline constexpr asio::as_tuple_t<asio::use_awaitable_t<executor>> use_tuple{};

}  // namespace reprise::proxy
