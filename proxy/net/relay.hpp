#pragma once
// Bytes both ways between two connections until both ends are done: CONNECT and WebSocket.
// An idle tunnel holds no buffer: a thread's one scratch block is filled and emptied between two
// suspensions, and only what a slow receiver would not take is copied to wait for it.

#include "proxy/net/byte_stream.hpp"
#include "proxy/net/deadlines.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace reprise::proxy::net {

enum class relay_end : std::uint8_t {
    finished,   ///< both sides ended their stream
    reset,      ///< one side broke off
    timed_out,  ///< nothing moved for `idle`, or the thread is stopping
};

struct relay_result {
    std::uint64_t a_to_b = 0;  ///< bytes handed to b's socket, those of `from_a` included
    std::uint64_t b_to_a = 0;
    relay_end end = relay_end::finished;
};

/// First `from_a` to b and `from_b` to a, then everything that arrives. A side's FIN is passed on
/// and the other direction goes on. Any other end resets both sides: a FIN could make what is
/// inside look complete. With TLS its close_notify is the FIN. Nothing is read from a side while
/// the other has not taken what was read before: memory is bounded by one scratch block per
/// direction. Afterwards both sockets are closed.
/// @param from_a  read from a beyond the head; must live as long as the call, like the sockets
/// @param idle    ends the tunnel when nothing moved in either direction for so long (pace_guard);
///                what a slow receiver acknowledges of what it was sent before has moved too
[[nodiscard]] awaitable<relay_result> relay(byte_stream& a,
                                            byte_stream& b,
                                            std::string_view from_a,
                                            std::string_view from_b,
                                            std::chrono::milliseconds idle,
                                            deadlines& timer);

}  // namespace reprise::proxy::net
