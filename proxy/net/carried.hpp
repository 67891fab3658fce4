#pragma once
// TLS inside TLS: a connection to a parent that is encrypted itself, as a plain socket that a
// second session can stand on. A tls_session reads and writes a descriptor, so the inner one is
// given one end of a socket pair, and a coroutine carries the bytes between the other end and the
// outer connection: two copies more, for https through a parent of https alone.

#include "proxy/base/failure.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/byte_stream.hpp"
#include "proxy/net/deadlines.hpp"

#include <chrono>
#include <memory>

namespace reprise::proxy::net {

/// So long the other side of the outer connection may acknowledge nothing of what it is given; and so
/// long, in all, may what is left behind a closed near end take.
inline constexpr std::chrono::seconds carried_write_patience{60};

/// The near end, prepared (io.hpp). A shutdown of it is passed on, after the bytes before it, and what
/// comes inwards goes on; closing it ends all. An end of the outer connection, of whatever kind, closes
/// both, after the bytes before it: ends are the inner session's to say. Out of patience, the outer
/// connection is reset. Time limits on what is read are those of the near end's owner. To the near end
/// what was carried counts as acknowledged: it goes in pieces of 16 KiB, of which the outer connection
/// keeps one or two unsent. Its remote_endpoint means nothing.
/// @param held  whatever is to last as long as the outer connection does, which may be `patience` longer than the
///              near end: its place among others, say. Let go of on the loop's thread, or where the loop is destroyed
/// Memory: 32 KiB, and what the kernel holds of a socket pair.
/// Errors: out_of_memory.
[[nodiscard]] attempt<tcp_socket> carry(byte_stream outer,
                                        deadlines& timer,
                                        std::chrono::milliseconds patience = carried_write_patience,
                                        std::shared_ptr<void> held = nullptr);

}  // namespace reprise::proxy::net
