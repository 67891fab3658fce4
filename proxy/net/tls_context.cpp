#include "proxy/net/tls_context.hpp"

#include "proxy/net/ticket_keys.hpp"

#include <algorithm>
#include <chrono>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <span>
#include <stdexcept>

// Sets up OpenSSL's contexts, and a listener's with its certificate and key, and with session tickets
// under keys of our own.

namespace reprise::proxy::net {

void detail::tls_free::operator()(ssl_ctx_st* context) const noexcept {
    SSL_CTX_free(context);
}
void detail::tls_free::operator()(ssl_st* connection) const noexcept {
    SSL_free(connection);
}

ssl_ctx_ptr detail::make_tls_context(const ssl_method_st* method) {
    ERR_clear_error();
    ssl_ctx_ptr made{SSL_CTX_new(method)};
    if (!made || SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION) != 1) {
        throw std::runtime_error{"TLS: cannot set OpenSSL up: " + openssl_reason()};
    }
    SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    // An idle connection holds no buffers; a chain is what the file says, and looked for nowhere.
    SSL_CTX_set_mode(made.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                         SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_read_ahead(made.get(), 1);
    return made;
}

namespace {

void read_certificates(SSL_CTX* context, const std::string& member, const std::string& path) {
    auto all = pem_file{member, path}.certificates();
    if (SSL_CTX_use_certificate(context, all.front().get()) != 1) {
        throw std::runtime_error{member + ": cannot use " + path + ": " + openssl_reason()};
    }
    for (auto above = all.begin() + 1; above != all.end(); ++above) {
        if (SSL_CTX_add0_chain_cert(context, above->get()) != 1) {
            throw std::runtime_error{member + ": cannot use the chain in " + path + ": " +
                                     openssl_reason()};
        }
        static_cast<void>(above->release());  // the context's now
    }
}

void read_key(SSL_CTX* context,
              const std::string& setting,
              const config::tls_options& files,
              const std::string& member) {
    const auto key = pem_file{member, files.key}.key();
    const auto* own = SSL_CTX_get0_certificate(context);
    if (X509_check_private_key(own, key.get()) != 1) {
        ERR_clear_error();
        throw std::runtime_error{member + ": " + files.key + " is not the key of " + setting +
                                 ".certificate, " + files.certificate};
    }
    if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
        throw std::runtime_error{member + ": cannot use " + files.key + ": " + openssl_reason()};
    }
}

int choose_protocol(SSL*,
                    const unsigned char** chosen,
                    unsigned char* chosen_length,
                    const unsigned char* offered,
                    unsigned offered_length,
                    void*) {
    unsigned char* found = nullptr;
    if (SSL_select_next_proto(&found,
                              chosen_length,
                              detail::protocols,
                              sizeof detail::protocols,
                              offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

/// One set for all listeners and every reload. Whose certificate a ticket was issued under is in
/// the ticket (the session's context), and OpenSSL takes it under that one alone.
ticket_keys& keys_of_the_process() {
    static ticket_keys keys;
    return keys;
}

// As SSL_CTX_set_tlsext_ticket_key_evp_cb wants it: 0 is no ticket, 2 one that is due for another.
int use_ticket_key(SSL*,
                   unsigned char* name,
                   unsigned char* vector,
                   EVP_CIPHER_CTX* cipher,
                   EVP_MAC_CTX* mac,
                   int sealing) {
    auto& keys = keys_of_the_process();
    const auto now = steady_now();
    ticket_keys::opener found{};
    if (sealing == 1) {
        const auto key = keys.current(now);
        if (!key || RAND_bytes(vector, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) {
            return 0;
        }
        std::copy(key->name.begin(), key->name.end(), name);
        found.with = *key;
    } else {
        const auto one = keys.find(
            std::span<const unsigned char, ticket_keys::name_bytes>{name, ticket_keys::name_bytes},
            now);
        if (!one) {
            return 0;
        }
        found = *one;
    }
    char digest[] = "SHA256";
    const OSSL_PARAM with[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY,
                                                                 found.with.mac.data(),
                                                                 found.with.mac.size()),
                               OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};
    const bool set =
        EVP_MAC_CTX_set_params(mac, with) == 1 &&
        EVP_CipherInit_ex(
            cipher, EVP_aes_256_cbc(), nullptr, found.with.cipher.data(), vector, sealing) == 1;
    OPENSSL_cleanse(&found.with, sizeof found.with);
    return !set ? 0 : found.is_current ? 1 : 2;
}

// Sessions are resumed by ticket alone: nothing is kept here for clients that never return.
void issue_tickets(SSL_CTX* context) {
    const auto lifetime = std::chrono::seconds{ticket_keys::period}.count();
    if (SSL_CTX_set_num_tickets(context, 1) != 1 ||
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context, use_ticket_key) != 1) {
        throw std::runtime_error{"TLS: cannot set session tickets up: " + openssl_reason()};
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_timeout(context, static_cast<long>(lifetime));
}

// Whose tickets are taken: those that were issued under the same certificate.
void bind_tickets_to_certificate(SSL_CTX* context) {
    unsigned char of[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (X509_digest(SSL_CTX_get0_certificate(context), EVP_sha256(), of, &size) != 1 ||
        SSL_CTX_set_session_id_context(context, of, size) != 1) {
        throw std::runtime_error{"TLS: cannot set session tickets up: " + openssl_reason()};
    }
}

// As browsers prefer them (OpenSSL has 256 bits first): what the key schedule's SHA-384 and the
// further rounds cost is a twentieth of a new connection.
void prefer_ciphers(SSL_CTX* context) {
    if (SSL_CTX_set_ciphersuites(context,
                                 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                 "TLS_CHACHA20_POLY1305_SHA256") != 1) {
        throw std::runtime_error{"TLS: cannot set the ciphers' order: " + openssl_reason()};
    }
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
}

ssl_ctx_ptr make_server_context() {
    auto made = detail::make_tls_context(TLS_server_method());
    prefer_ciphers(made.get());
    SSL_CTX_set_alpn_select_cb(made.get(), choose_protocol, nullptr);
    issue_tickets(made.get());
    return made;
}

}  // namespace

tls_identity_ptr tls_identity::read(const config::tls_options& files, const std::string& setting) {
    auto context = make_server_context();
    read_certificates(context.get(), setting + ".certificate", files.certificate);
    read_key(context.get(), setting, files, setting + ".key");
    bind_tickets_to_certificate(context.get());
    return tls_identity_ptr{new tls_identity{std::move(context)}};
}

ssl_ptr tls_identity::begin() const noexcept {
    ssl_ptr made{SSL_new(context_.get())};
    if (made && own_ &&
        (SSL_use_certificate(made.get(), own_.get()) != 1 ||
         SSL_set_session_id_context(
             made.get(), tickets_of_.data(), static_cast<unsigned>(tickets_of_.size())) != 1)) {
        return nullptr;
    }
    if (made) {
        SSL_set_accept_state(made.get());
    }
    return made;
}

tls_identity_family::tls_identity_family(evp_pkey_st* key, std::span<const certificate_ptr> above)
    : context_{make_server_context()} {
    if (SSL_CTX_use_PrivateKey(context_.get(), key) != 1) {
        throw std::runtime_error{"TLS: cannot use a key: " + openssl_reason()};
    }
    for (const auto& one : above) {
        if (SSL_CTX_add1_chain_cert(context_.get(), one.get()) != 1) {
            throw std::runtime_error{"TLS: cannot use a chain: " + openssl_reason()};
        }
    }
}

tls_identity_ptr tls_identity_family::with(certificate_ptr own,
                                           const tls_identity::ticket_group& tickets) const {
    SSL_CTX_up_ref(context_.get());
    ssl_ctx_ptr shared{context_.get()};
    const std::shared_ptr<tls_identity> made{new tls_identity{std::move(shared)}};
    made->own_ = std::move(own);
    made->tickets_of_ = tickets;
    return made;
}

}  // namespace reprise::proxy::net
