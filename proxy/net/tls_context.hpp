#pragma once
// What a side of TLS is set up with: a listener's certificate and key, or whom a client of TLS
// believes. Made on a thread that may wait for files, used by all, replaced whole on a reload:
// connections that are open keep what they began with.
// TLS 1.2 and later, no renegotiation, no compression, HTTP/1.1 by ALPN (byte_stream::protocol says
// what was agreed on). A client that returns within ticket_keys::period resumes, on any thread, and
// after a reload too, as long as the certificate is the same.

#include "config/options.hpp"
#include "proxy/net/pem_file.hpp"

#include <array>
#include <memory>
#include <span>
#include <string>

struct ssl_ctx_st;
struct ssl_method_st;
struct ssl_st;

namespace reprise::proxy::net {

namespace detail {
struct tls_free {
    void operator()(ssl_ctx_st* context) const noexcept;
    void operator()(ssl_st* connection) const noexcept;
};
/// TLS 1.2 and later, no renegotiation, no compression. @throws std::runtime_error
[[nodiscard]] std::unique_ptr<ssl_ctx_st, tls_free> make_tls_context(const ssl_method_st* method);
/// What we speak by ALPN, in the order in which we like it.
inline constexpr unsigned char protocols[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
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

    /// Identities of one group take each other's session tickets.
    using ticket_group = std::array<unsigned char, 32>;

private:
    friend class tls_identity_family;
    explicit tls_identity(ssl_ctx_ptr context) noexcept : context_{std::move(context)} {}
    ssl_ctx_ptr context_;
    certificate_ptr own_;        // null: the context's
    ticket_group tickets_of_{};  // where `own_` is set; otherwise the context says
};
using tls_identity_ptr = std::shared_ptr<const tls_identity>;

/// Identities that are made in memory, with a certificate each and all else in common, so that one
/// of them costs little more than its certificate. Immutable; any thread.
class tls_identity_family {
public:
    /// @param key    of all their certificates; shared
    /// @param above  what is sent behind each certificate, in this order; shared
    /// @throws std::runtime_error
    tls_identity_family(evp_pkey_st* key, std::span<const certificate_ptr> above);

    /// @param own  a certificate for the family's key
    /// @throws std::bad_alloc
    [[nodiscard]] tls_identity_ptr with(certificate_ptr own,
                                        const tls_identity::ticket_group& tickets) const;

private:
    ssl_ctx_ptr context_;
};

}  // namespace reprise::proxy::net
