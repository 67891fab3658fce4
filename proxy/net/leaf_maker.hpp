#pragma once
// Makes the certificate that a client is shown in a host's place (a leaf), and what TLS with it is begun
// by. A leaf says as little as clients ask for (RFC 5280, and Python's strict reading of it): no
// subject, the one host as a critical subjectAltName, serverAuth, and who signed it.

#include "proxy/base/clock.hpp"
#include "proxy/net/leaf_authority.hpp"
#include "proxy/net/tls_context.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct X509_extension_st;

namespace reprise::proxy::net {

/// The key of all leaves of a process: P-256, made at its start and never on disk. Null: OpenSSL
/// has no random bytes.
[[nodiscard]] std::shared_ptr<evp_pkey_st> make_leaf_key();

/// One leaf, and when the next is due.
struct made_leaf {
    tls_identity_ptr identity;
    wall_time from{};  ///< of its validity
    wall_time due{};   ///< half of its lifetime is over, or soon the CA's
    /// Also what a clock that was set makes of it.
    [[nodiscard]] bool is_good_at(wall_time now) const noexcept { return from <= now && now < due; }
};

/// Immutable; any thread.
/// Cost  some 60 microseconds a leaf where the CA's key is one of P-256, most of it the signature;
///       a millisecond with RSA of 2,048 bits. It is computed where it is called.
class leaf_maker {
public:
    /// A leaf is valid from this long ago, for clients whose clock is behind.
    static constexpr std::chrono::hours back_dated{1};

    /// @param lifetime  of a leaf from now on; it never outlives its CA
    /// @throws std::runtime_error  OpenSSL cannot set it up
    leaf_maker(leaf_authority_ptr by,
               std::shared_ptr<evp_pkey_st> key,
               std::chrono::seconds lifetime);

    /// @param host  a name in lower case, or "*.domain"
    /// None: the CA has expired, or there is no memory or are no random bytes.
    /// @throws std::bad_alloc
    [[nodiscard]] std::optional<made_leaf> make(const std::string& host, wall_time now) const;

    [[nodiscard]] const leaf_authority& authority() const noexcept { return *by_; }

private:
    struct free_extension {
        void operator()(X509_extension_st* one) const noexcept;
    };
    [[nodiscard]] certificate_ptr sign(const std::string& host,
                                       wall_time from,
                                       wall_time until) const;
    [[nodiscard]] tls_identity::ticket_group tickets_for(const std::string& host) const;

    leaf_authority_ptr by_;
    std::shared_ptr<evp_pkey_st> key_;
    std::chrono::seconds lifetime_;
    tls_identity_family family_;
    std::vector<std::unique_ptr<X509_extension_st, free_extension>> same_in_all_;
};

}  // namespace reprise::proxy::net
