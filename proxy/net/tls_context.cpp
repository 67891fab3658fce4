#include "proxy/net/tls_context.hpp"

#include "proxy/net/ticket_keys.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <span>
#include <stdexcept>
#include <vector>

// Reads certificates and keys, and sets up OpenSSL's contexts with them: a listener's with session
// tickets under keys of our own, a client's with the system's trust store.

namespace reprise::proxy::net {

void detail::tls_free::operator()(ssl_ctx_st* context) const noexcept {
    SSL_CTX_free(context);
}
void detail::tls_free::operator()(ssl_st* connection) const noexcept {
    SSL_free(connection);
}

namespace {

constexpr std::size_t largest_file = 1u << 20;  // a chain takes some kilobytes
// What we speak, in the order in which we like it.
constexpr unsigned char protocols[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

/// Why the last call of OpenSSL failed, in its own words; these never quote what was read.
std::string last_reason() {
    const auto code = ERR_peek_last_error();
    const auto* reason = ERR_reason_error_string(code);
    ERR_clear_error();
    return reason != nullptr ? reason : "OpenSSL gives no reason";
}

/// A whole small file; what it held is wiped when this goes.
class file_content {
public:
    file_content(const std::string& member, const std::string& path) {
        const auto cannot = [&](const std::string& why) {
            return std::runtime_error{member + ": cannot read " + path + ": " + why};
        };
        const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in{std::fopen(path.c_str(), "rbe"),
                                                                 &std::fclose};
        if (!in) {
            throw cannot(std::strerror(errno));
        }
        std::setvbuf(in.get(), nullptr, _IONBF, 0);  // no copy that nobody wipes
        bytes_.resize(largest_file + 1);
        const auto size = std::fread(bytes_.data(), 1, bytes_.size(), in.get());
        if (std::ferror(in.get()) != 0) {
            throw cannot(std::strerror(errno));
        }
        if (size > largest_file) {
            throw cannot("larger than 1 MiB");
        }
        bio_.reset(BIO_new_mem_buf(bytes_.data(), static_cast<int>(size)));
        if (!bio_) {
            throw std::bad_alloc{};
        }
    }
    ~file_content() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }
    file_content(const file_content&) = delete;
    file_content& operator=(const file_content&) = delete;

    [[nodiscard]] BIO* bio() const noexcept { return bio_.get(); }

private:
    struct free_bio {
        void operator()(BIO* bio) const noexcept { BIO_free(bio); }
    };
    std::vector<char> bytes_;
    std::unique_ptr<BIO, free_bio> bio_;
};

struct free_certificate {
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};
using certificate_ptr = std::unique_ptr<X509, free_certificate>;
struct free_key {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};

/// In place of OpenSSL's own, which asks at the terminal.
int no_passphrase(char*, int, int, void*) {
    return -1;
}

void read_certificates(SSL_CTX* context, const std::string& member, const std::string& path) {
    const file_content file{member, path};
    const certificate_ptr own{PEM_read_bio_X509_AUX(file.bio(), nullptr, no_passphrase, nullptr)};
    if (!own) {
        throw std::runtime_error{member + ": no PEM certificate in " + path + ": " + last_reason()};
    }
    if (SSL_CTX_use_certificate(context, own.get()) != 1) {
        throw std::runtime_error{member + ": cannot use " + path + ": " + last_reason()};
    }
    for (;;) {
        certificate_ptr above{PEM_read_bio_X509(file.bio(), nullptr, no_passphrase, nullptr)};
        if (!above) {
            const auto code = ERR_peek_last_error();
            if (ERR_GET_LIB(code) == ERR_LIB_PEM &&
                ERR_GET_REASON(code) == PEM_R_NO_START_LINE) {  // the end of the file
                ERR_clear_error();
                return;
            }
            throw std::runtime_error{member + ": a further certificate in " + path +
                                     " is not PEM: " + last_reason()};
        }
        if (SSL_CTX_add0_chain_cert(context, above.get()) != 1) {
            throw std::runtime_error{member + ": cannot use the chain in " + path + ": " +
                                     last_reason()};
        }
        static_cast<void>(above.release());  // the context's now
    }
}

void read_key(SSL_CTX* context,
              const std::string& setting,
              const config::tls_options& files,
              const std::string& member) {
    const file_content file{member, files.key};
    const std::unique_ptr<EVP_PKEY, free_key> key{
        PEM_read_bio_PrivateKey(file.bio(), nullptr, no_passphrase, nullptr)};
    if (!key) {
        ERR_clear_error();  // what is there depends on which decoder was tried last
        throw std::runtime_error{member + ": no PEM private key without a passphrase in " +
                                 files.key};
    }
    const auto* own = SSL_CTX_get0_certificate(context);
    if (X509_check_private_key(own, key.get()) != 1) {
        ERR_clear_error();
        throw std::runtime_error{member + ": " + files.key + " is not the key of " + setting +
                                 ".certificate, " + files.certificate};
    }
    if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
        throw std::runtime_error{member + ": cannot use " + files.key + ": " + last_reason()};
    }
}

ssl_ctx_ptr make_context(const SSL_METHOD* method) {
    ERR_clear_error();
    ssl_ctx_ptr made{SSL_CTX_new(method)};
    if (!made || SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION) != 1) {
        throw std::runtime_error{"TLS: cannot set OpenSSL up: " + last_reason()};
    }
    SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    // An idle connection holds no buffers; a chain is what the file says, and looked for nowhere.
    SSL_CTX_set_mode(made.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                         SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_read_ahead(made.get(), 1);
    return made;
}

int choose_protocol(SSL*,
                    const unsigned char** chosen,
                    unsigned char* chosen_length,
                    const unsigned char* offered,
                    unsigned offered_length,
                    void*) {
    unsigned char* found = nullptr;
    if (SSL_select_next_proto(
            &found, chosen_length, protocols, sizeof protocols, offered, offered_length) !=
        OPENSSL_NPN_NEGOTIATED) {
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
    unsigned char of[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    const auto lifetime = std::chrono::seconds{ticket_keys::period}.count();
    if (X509_digest(SSL_CTX_get0_certificate(context), EVP_sha256(), of, &size) != 1 ||
        SSL_CTX_set_session_id_context(context, of, size) != 1 ||
        SSL_CTX_set_num_tickets(context, 1) != 1 ||
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context, use_ticket_key) != 1) {
        throw std::runtime_error{"TLS: cannot set session tickets up: " + last_reason()};
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_timeout(context, static_cast<long>(lifetime));
}

// As browsers prefer them (OpenSSL has 256 bits first): what the key schedule's SHA-384 and the
// further rounds cost is a twentieth of a new connection.
void prefer_ciphers(SSL_CTX* context) {
    if (SSL_CTX_set_ciphersuites(context,
                                 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                 "TLS_CHACHA20_POLY1305_SHA256") != 1) {
        throw std::runtime_error{"TLS: cannot set the ciphers' order: " + last_reason()};
    }
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
}

bool is_address(const std::string& host) {
    boost::system::error_code not_one;
    static_cast<void>(boost::asio::ip::make_address(host, not_one));
    return !not_one;
}

}  // namespace

tls_identity_ptr tls_identity::read(const config::tls_options& files, const std::string& setting) {
    auto context = make_context(TLS_server_method());
    prefer_ciphers(context.get());
    SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
    read_certificates(context.get(), setting + ".certificate", files.certificate);
    read_key(context.get(), setting, files, setting + ".key");
    issue_tickets(context.get());
    return tls_identity_ptr{new tls_identity{std::move(context)}};
}

ssl_ptr tls_identity::begin() const noexcept {
    ssl_ptr made{SSL_new(context_.get())};
    if (made) {
        SSL_set_accept_state(made.get());
    }
    return made;
}

tls_trust_ptr tls_trust::of_the_system() {
    auto context = make_context(TLS_client_method());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    if (SSL_CTX_set_default_verify_paths(context.get()) != 1 ||
        SSL_CTX_set_alpn_protos(context.get(), protocols, sizeof protocols) != 0) {
        throw std::runtime_error{"TLS: cannot use the system's trust store: " + last_reason()};
    }
    ERR_clear_error();
    return tls_trust_ptr{new tls_trust{std::move(context)}};
}

ssl_ptr tls_trust::begin(const std::string& host) const noexcept {
    ssl_ptr made{SSL_new(context_.get())};
    if (!made || host.empty()) {
        return nullptr;
    }
    auto* rules = SSL_get0_param(made.get());
    if (is_address(host)) {
        if (X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) != 1) {
            return nullptr;
        }
    } else {
        X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size()) != 1 ||
            SSL_set_tlsext_host_name(made.get(), host.c_str()) != 1) {
            return nullptr;
        }
    }
    SSL_set_connect_state(made.get());
    return made;
}

}  // namespace reprise::proxy::net
