#pragma once
// Handshakes: what makes a TCP connection a byte_stream with TLS.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/byte_stream.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/tls_context.hpp"

#include <string>

namespace reprise::proxy::net {

/// The server's side, on a connection just accepted. A client that speaks no TLS gets no answer.
/// Bytes of a handshake are bounded by OpenSSL (some 130 KiB), its time by `until`; its
/// computations run on this loop, about a millisecond with an RSA key of 2048 bits, a tenth with
/// P-256, and less to resume.
/// @pre of both: the socket is prepared (io.hpp)
/// Errors: tls_failed, with a detail for the log; there is nobody to be told.
[[nodiscard]] awaitable<attempt<byte_stream>> accept_tls(tcp_socket socket,
                                                         tls_identity_ptr identity,
                                                         deadlines& timer,
                                                         steady_time until);

/// The client's side, on a socket that dial connected to `host`.
/// Errors: tls_certificate, with the reason; tls_failed; connect_timeout. All may be tried
/// elsewhere.
[[nodiscard]] awaitable<attempt<byte_stream>> connect_tls(
    tcp_socket socket, tls_trust_ptr trust, std::string host, deadlines& timer, steady_time until);

}  // namespace reprise::proxy::net
