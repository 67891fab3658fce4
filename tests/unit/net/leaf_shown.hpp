#pragma once
// A handshake in memory with an identity, by a client that believes the test's root and reads strictly.

#include "proxy/net/tls_context.hpp"
#include "tests/unit/net/authority_files.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string>

namespace reprise::proxy::net {

struct ssl_freed {
    void operator()(SSL* one) const noexcept { SSL_free(one); }
    void operator()(SSL_CTX* one) const noexcept { SSL_CTX_free(one); }
    void operator()(SSL_SESSION* one) const noexcept { SSL_SESSION_free(one); }
    void operator()(BIO* one) const noexcept { BIO_free(one); }
};
template <class T>
using ssl_owned = std::unique_ptr<T, ssl_freed>;

inline certificate_ptr certificate_of(const std::string& pem) {
    const ssl_owned<BIO> in{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
    certificate_ptr made{PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)};
    REQUIRE(made);
    return made;
}

struct shown {
    bool shaken = false;
    std::string verdict{};  ///< "ok", or what the client has against it
    certificate_ptr leaf{};
    int sent = 0;  ///< certificates, the leaf too
    bool resumed = false;
    ssl_owned<SSL_SESSION> session{};  ///< to come back with
};

/// @param host  whom the client wants
inline shown show(const tls_identity& identity,
                  const std::string& host,
                  int newest = TLS1_3_VERSION,
                  SSL_SESSION* returning = nullptr) {
    const ssl_owned<SSL_CTX> context{SSL_CTX_new(TLS_client_method())};
    auto* store = SSL_CTX_get_cert_store(context.get());
    const auto root = certificate_of(root_of_the_test().certificate());
    X509_STORE_add_cert(store, root.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_max_proto_version(context.get(), newest);
    const ssl_owned<SSL> client{SSL_new(context.get())};
    X509_VERIFY_PARAM_set_flags(SSL_get0_param(client.get()), X509_V_FLAG_X509_STRICT);
    SSL_set1_host(client.get(), host.c_str());
    SSL_set_tlsext_host_name(client.get(), host.c_str());
    if (returning != nullptr) {
        SSL_set_session(client.get(), returning);
    }
    const auto server = identity.begin();
    REQUIRE(server);
    BIO* here = nullptr;
    BIO* there = nullptr;
    REQUIRE(BIO_new_bio_pair(&here, 1 << 16, &there, 1 << 16) == 1);
    SSL_set_bio(client.get(), here, here);
    SSL_set_bio(server.get(), there, there);
    SSL_set_connect_state(client.get());
    for (int turn = 0; turn < 5; ++turn) {
        static_cast<void>(SSL_do_handshake(client.get()));
        static_cast<void>(SSL_do_handshake(server.get()));
    }
    char nothing = 0;
    static_cast<void>(SSL_read(client.get(), &nothing, 1));  // the ticket of TLS 1.3
    shown seen;
    seen.shaken = SSL_is_init_finished(client.get()) == 1 &&
                  SSL_is_init_finished(server.get()) == 1;
    seen.verdict = X509_verify_cert_error_string(SSL_get_verify_result(client.get()));
    seen.leaf.reset(SSL_get1_peer_certificate(client.get()));
    if (const auto* all = SSL_get_peer_cert_chain(client.get())) {
        seen.sent = sk_X509_num(all);
    }
    seen.resumed = SSL_session_reused(client.get()) == 1;
    seen.session.reset(SSL_get1_session(client.get()));
    SSL_shutdown(client.get());  // or OpenSSL would take the session for a bad one
    return seen;
}

}  // namespace reprise::proxy::net
