#pragma once
// What a server says itself of its certificate's revocation: an OCSP response that it staples to
// its handshake (RFC 6066 8, RFC 6960).
//
// One that is good or says nothing of use changes nothing; one that is signed for the certificate's
// issuer, current, and says that it is revoked, ends the handshake. A certificate that says itself
// that it always comes with one (must-staple, RFC 7633) is not taken without one that is good. No
// other server is ever asked.

struct ssl_ctx_st;

namespace reprise::proxy::net {

/// Connections of this context (a client's) ask for a stapled response, and heed it: the handshake
/// fails, and SSL_get_verify_result says why.
/// @throws std::runtime_error  OpenSSL is out of memory
void heed_stapled_status(ssl_ctx_st* context);

}  // namespace reprise::proxy::net
