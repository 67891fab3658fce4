#pragma once
// The few Asio names that everything above the sockets is written in.
// One io_context runs on one thread, so nothing here needs a strand. The executor is named once:
// whoever writes `awaitable` and `tcp_socket` follows when it changes.

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

namespace net = boost::asio;
using tcp = net::ip::tcp;
using boost::system::error_code;

// The io_context's own executor, not any_io_executor: nothing here ever runs elsewhere, and type
// erasure would be paid for at each operation.
using executor = net::io_context::executor_type;
using tcp_socket = net::basic_stream_socket<tcp, executor>;
template <class T>
using awaitable = net::awaitable<T, executor>;

/// The token for awaits whose next line decides: the error comes back as a value, nothing throws.
inline constexpr net::as_tuple_t<net::use_awaitable_t<executor>> use_tuple{};

}  // namespace reprise::proxy
