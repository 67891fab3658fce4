#pragma once
// What a side of TLS is set up with: a listener's certificate and key, or whom a client of TLS
// believes. Made on a thread that may wait for files, used by all, replaced whole on a reload:
// connections that are open keep what they began with.
// TLS 1.2 and later, no renegotiation, no compression, HTTP/1.1 by ALPN (byte_stream::protocol says
// what was agreed on). A client that returns within ticket_keys::period resumes, on any thread, and
// after a reload too, as long as the certificate is the same.

#include "config/options.hpp"

#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace reprise::proxy::net {

namespace detail {
struct tls_free {
    void operator()(ssl_ctx_st* context) const noexcept;
    void operator()(ssl_st* connection) const noexcept;
};
}  // namespace detail
using ssl_ctx_ptr = std::unique_ptr<ssl_ctx_st, detail::tls_free>;
using ssl_ptr = std::unique_ptr<ssl_st, detail::tls_free>;

/// Who we are to our clients. Immutable; any thread.
class tls_identity {
public:
    /// Reads both files.
    /// @param setting  where they were written, for what is thrown: "listeners[0].tls"
    /// @throws std::runtime_error naming the member and the file: it cannot be read, holds no
    /// certificate or key, the two do not belong together, a passphrase is asked for. Never a byte
    /// of what the files hold.
    [[nodiscard]] static std::shared_ptr<const tls_identity> read(const config::tls_options& files,
                                                                  const std::string& setting);

    /// For one accepted connection. Null: out of memory.
    [[nodiscard]] ssl_ptr begin() const noexcept;

private:
    explicit tls_identity(ssl_ctx_ptr context) noexcept : context_{std::move(context)} {}
    ssl_ctx_ptr context_;
};
using tls_identity_ptr = std::shared_ptr<const tls_identity>;

/// Whose certificates we take: the system's trust store, where OpenSSL looks for it (its
/// SSL_CERT_FILE and SSL_CERT_DIR included). A file of many is read when this is made; one in a
/// directory when a certificate first leads to it.
/// Immutable; any thread.
class tls_trust {
public:
    /// @throws std::runtime_error
    [[nodiscard]] static std::shared_ptr<const tls_trust> of_the_system();

    /// For one connection to `host` (lower case, a name or a numeric address without brackets),
    /// for which the certificate must be valid; a name is also sent (SNI). Null: out of memory, or
    /// not a host.
    [[nodiscard]] ssl_ptr begin(const std::string& host) const noexcept;

private:
    explicit tls_trust(ssl_ctx_ptr context) noexcept : context_{std::move(context)} {}
    ssl_ctx_ptr context_;
};
using tls_trust_ptr = std::shared_ptr<const tls_trust>;

}  // namespace reprise::proxy::net
