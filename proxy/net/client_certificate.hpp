#pragma once
// Servers that ask their clients for a certificate (RFC 8446 4.3.2). We have none to show, so they are shown none; that they asked
// is noted, since what they say then may be meant for anybody or nobody.

struct ssl_ctx_st;
struct ssl_st;

namespace reprise::proxy::net {

/// For connections of this context (a client's).
void note_certificate_requests(ssl_ctx_st* context) noexcept;

/// The server asked, on a connection of such a context. A session that was resumed doesn't tell, so
/// those of such servers are not kept (tls_resumption).
[[nodiscard]] bool was_asked_for_certificate(const ssl_st* connection) noexcept;

}  // namespace reprise::proxy::net
