#pragma once
// Whom a client of TLS believes.

#include "config/options.hpp"
#include "proxy/net/tls_context.hpp"

#include <memory>
#include <string>

namespace reprise::proxy::net {

/// Whose certificates we take: those of the system's trust store, where OpenSSL looks for it (its
/// SSL_CERT_FILE and SSL_CERT_DIR included), and of origins.ca_file. A file of many is read when
/// this is made; one in a directory when a certificate first leads to it.
/// Which of them we don't: what a list of origins.crl_file names, and all of an authority whose list
/// there is out of date, not signed by it or of no use for it (one that has no list there in its name
/// is taken as without the file); keys below 112 bits of security (RSA of 2048) and SHA-1; chains
/// above 64 KiB.
/// Immutable; any thread.
class tls_trust {
public:
    /// Whether read would take the files that the settings name. The system's store is left alone:
    /// its hundred certificates take 50 ms to read.
    /// @throws std::runtime_error naming the setting and the file
    static void check(const config::origin_options& options);

    /// Reads the files.
    /// @throws as check, or where the system's store can't be used
    [[nodiscard]] static std::shared_ptr<const tls_trust> read(
        const config::origin_options& options);

    /// For one connection to `host` (lower case, a name or a numeric address without brackets),
    /// for which the certificate must be valid by its alternative names; a name is also sent (SNI).
    /// Null: out of memory, or not a host.
    [[nodiscard]] ssl_ptr begin(const std::string& host) const noexcept;

private:
    explicit tls_trust(ssl_ctx_ptr context) noexcept : context_{std::move(context)} {}
    ssl_ctx_ptr context_;
};
using tls_trust_ptr = std::shared_ptr<const tls_trust>;

}  // namespace reprise::proxy::net
