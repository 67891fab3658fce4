#pragma once
// Reading and writing with as few turns of the loop as the kernel allows.
// A socket's send buffer nearly always has room, so a write is tried at once and only what is left
// over waits. Sockets are non-blocking (prepare_socket).

#include "proxy/net/byte_stream.hpp"

#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_suffix.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>

namespace reprise::proxy::net {

/// What every stream socket of ours is set to: non-blocking, TCP_NODELAY. Errors are ignored: a
/// socket that can't be set is a dead one, and the next operation says so.
void prepare_socket(tcp_socket& socket) noexcept;

/// What a listening socket is set to, for those that are accepted to inherit: TCP_NODELAY, and
/// TCP_INQ (tcp(7)), by which a reading tells whether more can be read. Errors are ignored: without
/// the latter a wait costs a system call.
void prepare_listener(int descriptor) noexcept;

/// byte_stream's own.
[[nodiscard]] inline std::uint64_t not_acknowledged(byte_stream& stream) noexcept {
    return stream.not_acknowledged();
}

/// Writes all, suspending only when the kernel will not take all at once. The memory that `buffers`
/// point to outlives the call; the sequence itself (a const_buffer, or a std::array or std::vector
/// of them) is copied. No deadline of its own: the caller's closes the stream.
template <class Buffers>
[[nodiscard]] awaitable<error_code> write_all(byte_stream& stream, Buffers buffers) {
    error_code error;
    const auto total = asio::buffer_size(buffers);
    const auto written = stream.try_write(buffers, error);
    if (error || written == total) {
        co_return error;
    }
    boost::beast::buffers_suffix<Buffers> rest{buffers};
    rest.consume(written);
    const auto [late_error, count] = co_await asio::async_write(stream, rest, use_tuple);
    co_return late_error;
}

/// Reads at least one byte, or reports the end as asio::error::eof.
[[nodiscard]] inline awaitable<std::tuple<error_code, std::size_t>> read_some(
    byte_stream& stream, asio::mutable_buffer into) {
    return stream.async_read_some(into, use_tuple);
}

class pace_guard;

/// Says that nothing follows (byte_stream::try_end), however long it takes to say it. False: the
/// connection has failed, or `owed`, which the caller has begun, has expired.
[[nodiscard]] awaitable<bool> end_sending(byte_stream& stream, const pace_guard& owed);

}  // namespace reprise::proxy::net
