#pragma once
// Handshakes: what makes a TCP connection a byte_stream with TLS.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/byte_stream.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/tls_context.hpp"
#include "proxy/net/tls_resumption.hpp"
#include "proxy/net/tls_trust.hpp"

#include <cstdint>
#include <string>

namespace reprise::proxy::net {

/// The server's side, on a connection just accepted. A client that speaks no TLS gets no answer.
/// Bytes of a handshake are bounded by OpenSSL (some 130 KiB), its time by `until`; its
/// computations run on this loop, about a millisecond with an RSA key of 2048 bits, a tenth with
/// P-256, and less to resume.
/// @param first  bytes of the connection that were read already (client_hello_reader); they come
/// before what the socket holds
/// @pre of both: the socket is prepared (io.hpp)
/// Errors: tls_failed, with a detail for the log; there is nobody to be told.
[[nodiscard]] awaitable<attempt<byte_stream>> accept_tls(tcp_socket socket,
                                                         tls_identity_ptr identity,
                                                         deadlines& timer,
                                                         steady_time until,
                                                         std::string first);
[[nodiscard]] awaitable<attempt<byte_stream>> accept_tls(tcp_socket socket,
                                                         tls_identity_ptr identity,
                                                         deadlines& timer,
                                                         steady_time until);

/// Whom a handshake is with, on the client's side.
struct tls_server {
    std::string host;  ///< lower case, without brackets: what the certificate must be valid for
    std::uint16_t port = 0;
    /// Null: no session is resumed. It outlives the handshake.
    tls_resumption* sessions = nullptr;
};

/// The client's side, on a socket that leads to `server`.
/// Errors: tls_certificate, with the reason; tls_client_certificate; tls_failed; connect_timeout.
/// All may be tried elsewhere. A server that only asks for a certificate, or by TLS 1.3 says later that
/// it must have one, is connected to: byte_stream::was_asked_for_certificate.
[[nodiscard]] awaitable<attempt<byte_stream>> connect_tls(
    tcp_socket socket, tls_trust_ptr trust, tls_server server, deadlines& timer, steady_time until);

}  // namespace reprise::proxy::net
