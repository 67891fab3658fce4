#pragma once
// Reading and writing with as few turns of the loop as the kernel allows.
// A socket's send buffer nearly always has room, so a write is tried at once and only what is left
// over waits. Sockets are non-blocking (prepare_socket).

#include "proxy/net/asio.hpp"

#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_suffix.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace reprise::proxy::net {

/// What every stream socket of ours is set to: non-blocking, TCP_NODELAY. Errors are ignored: a
/// socket that can't be set is a dead one, and the next operation says so.
void prepare_socket(tcp_socket& socket) noexcept;

/// Writes what the kernel takes now. That it takes nothing now is 0 without an error.
template <class Buffers>
[[nodiscard]] std::size_t try_write(tcp_socket& socket, const Buffers& buffers, error_code& error) {
    const auto written = socket.write_some(buffers, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
        error.clear();
    }
    return written;
}

/// Reads what is there now. Nothing there: 0 without an error. The end: asio::error::eof.
[[nodiscard]] std::size_t try_read(tcp_socket& socket,
                                   asio::mutable_buffer into,
                                   error_code& error);

/// Bytes given to the socket that the other side's machine has not acknowledged (of a socket pair:
/// that its other end has not read, with the kernel's own cost). 0 when the kernel doesn't say.
[[nodiscard]] std::uint64_t not_acknowledged(tcp_socket& socket) noexcept;

/// From now on closing the socket is a reset, whoever closes it, the kernel of a process that dies
/// too; or it is an end again. (Asio's own option is undone by a socket's destructor.)
void set_reset_on_close(tcp_socket& socket, bool on) noexcept;

/// Writes all, suspending only when the kernel will not take all at once. The memory that `buffers`
/// point to outlives the call; the sequence itself (a const_buffer, or a std::array or std::vector
/// of them) is copied. No deadline of its own: the caller's closes the socket.
template <class Buffers>
[[nodiscard]] awaitable<error_code> write_all(tcp_socket& socket, Buffers buffers) {
    error_code error;
    const auto total = asio::buffer_size(buffers);
    const auto written = try_write(socket, buffers, error);
    if (error || written == total) {
        co_return error;
    }
    boost::beast::buffers_suffix<Buffers> rest{buffers};
    rest.consume(written);
    const auto [late_error, count] = co_await asio::async_write(socket, rest, use_tuple);
    co_return late_error;
}

/// Reads at least one byte, or reports the end as asio::error::eof.
[[nodiscard]] inline awaitable<std::tuple<error_code, std::size_t>> read_some(
    tcp_socket& socket, asio::mutable_buffer into) {
    return socket.async_read_some(into, use_tuple);
}

}  // namespace reprise::proxy::net
