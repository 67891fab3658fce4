#include "tests/support/tls_peer.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

namespace reprise::tests {

namespace {

void must_set_up(bool done) {
    if (!done) {
        throw std::runtime_error("OpenSSL could not set a peer up");
    }
}

template <class T, class Read>
T* from_pem(const std::string& text, Read&& read) {
    const std::unique_ptr<BIO, int (*)(BIO*)> bio{
        BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
    must_set_up(bio != nullptr);
    T* made = read(bio.get());
    must_set_up(made != nullptr);
    return made;
}

std::string reason() {
    const auto code = ERR_peek_last_error();
    const auto* text = code != 0 ? ERR_reason_error_string(code) : nullptr;
    ERR_clear_error();
    return text != nullptr ? text : "the connection ended";
}

void allow(SSL_CTX* context, int newest, bool weak) {
    if (weak) {
        SSL_CTX_set_security_level(context, 0);
        SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    }
    if (newest != 0) {
        SSL_CTX_set_max_proto_version(context, newest);
    }
}

void use_certificates(SSL_CTX* context, const std::string& pem) {
    const std::unique_ptr<BIO, int (*)(BIO*)> in{
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free};
    must_set_up(in != nullptr);
    for (bool own = true;; own = false) {
        auto* one = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr);
        if (one == nullptr) {
            ERR_clear_error();
            must_set_up(!own);
            return;
        }
        must_set_up((own ? SSL_CTX_use_certificate(context, one)
                         : SSL_CTX_add1_chain_cert(context, one)) == 1);
        X509_free(one);
    }
}

int staple(SSL*, void*) {
    return SSL_TLSEXT_ERR_OK;  // what the connection has
}

}  // namespace

std::string_view to_string(tls_end end) noexcept {
    switch (end) {
    case tls_end::data: return "data";
    case tls_end::closed: return "closed";
    case tls_end::truncated: return "truncated";
    case tls_end::timed_out: return "timed out";
    }
    return "";
}

tls_peer::tls_peer(ssl_ctx_st* context, int socket)
    : context_{context},
      ssl_{nullptr},
      socket_{socket} {
    must_set_up(context_ != nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    const auto flags = ::fcntl(socket_, F_GETFL);
    ::fcntl(socket_, F_SETFL, flags & ~O_NONBLOCK);
    read_for(patience);
    timeval limit{};
    limit.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(patience).count();
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

tls_peer tls_peer::client(int socket) {
    return client(socket, wishes{});
}

tls_peer tls_peer::client(int socket, const wishes& wanted) {
    tls_peer made{SSL_CTX_new(TLS_client_method()), socket};
    auto* context = made.context_;
    if (!wanted.trusted.empty()) {
        auto* trusted = from_pem<X509>(wanted.trusted, [](BIO* in) {
            return PEM_read_bio_X509(in, nullptr, nullptr, nullptr);
        });
        must_set_up(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), trusted) == 1);
        X509_free(trusted);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    }
    allow(context, wanted.newest, wanted.weak);
    made.ssl_ = SSL_new(context);
    must_set_up(made.ssl_ != nullptr && SSL_set_fd(made.ssl_, socket) == 1);
    made.read_for(wanted.limit);
    if (!wanted.host.empty()) {
        must_set_up(SSL_set_tlsext_host_name(made.ssl_, wanted.host.c_str()) == 1 &&
                    SSL_set1_host(made.ssl_, wanted.host.c_str()) == 1);
    }
    if (!wanted.alpn.empty()) {
        must_set_up(SSL_set_alpn_protos(made.ssl_,
                                        reinterpret_cast<const unsigned char*>(wanted.alpn.data()),
                                        static_cast<unsigned>(wanted.alpn.size())) == 0);
    }
    SSL_set_connect_state(made.ssl_);
    return made;
}

tls_peer tls_peer::server(int socket, const made_certificate& identity) {
    return server(socket, identity, server_wishes{});
}

tls_peer tls_peer::server(int socket,
                          const made_certificate& identity,
                          const server_wishes& wanted) {
    tls_peer made{SSL_CTX_new(TLS_server_method()), socket};
    auto* context = made.context_;
    allow(context, wanted.newest, wanted.weak);
    use_certificates(context, identity.certificate);
    auto* key = from_pem<EVP_PKEY>(identity.key, [](BIO* in) {
        return PEM_read_bio_PrivateKey(in, nullptr, nullptr, nullptr);
    });
    must_set_up(SSL_CTX_use_PrivateKey(context, key) == 1);
    EVP_PKEY_free(key);
    if (wanted.client != server_wishes::asking::no) {
        const bool insists = wanted.client == server_wishes::asking::insists;
        SSL_CTX_set_verify(
            context, SSL_VERIFY_PEER | (insists ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
    }
    if (!wanted.ticket_keys.empty()) {
        auto keys = wanted.ticket_keys;
        must_set_up(SSL_CTX_set_tlsext_ticket_keys(context, keys.data(), keys.size()) == 1);
    }
    made.ssl_ = SSL_new(context);
    must_set_up(made.ssl_ != nullptr && SSL_set_fd(made.ssl_, socket) == 1);
    if (!wanted.stapled.empty()) {
        const auto size = wanted.stapled.size();
        auto* copy = static_cast<char*>(OPENSSL_memdup(wanted.stapled.data(), size));
        must_set_up(copy != nullptr);
        SSL_set_tlsext_status_ocsp_resp(made.ssl_, copy, static_cast<long>(size));  // its own now
        SSL_CTX_set_tlsext_status_cb(context, staple);
    }
    SSL_set_accept_state(made.ssl_);
    return made;
}

tls_peer::tls_peer(tls_peer&& other) noexcept
    : context_{std::exchange(other.context_, nullptr)},
      ssl_{std::exchange(other.ssl_, nullptr)},
      socket_{std::exchange(other.socket_, -1)},
      why_{std::move(other.why_)} {}

tls_peer::~tls_peer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    if (socket_ >= 0) {
        ::close(socket_);
    }
}

bool tls_peer::shake_hands() {
    ERR_clear_error();
    errno = 0;
    const int result = SSL_do_handshake(ssl_);
    if (result == 1) {
        return true;
    }
    const bool late = SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ;
    why_ = late ? "nothing came in time" : reason();
    return false;
}

void tls_peer::read_for(std::chrono::microseconds limit) {
    timeval time{};
    time.tv_sec = limit.count() / 1'000'000;
    time.tv_usec = limit.count() % 1'000'000;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

bool tls_peer::send(std::string_view bytes) {
    while (!bytes.empty()) {
        std::size_t sent = 0;
        ERR_clear_error();
        if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &sent) != 1) {
            why_ = reason();
            return false;
        }
        bytes.remove_prefix(sent);
    }
    return true;
}

tls_end tls_peer::read_some(std::string& into, std::size_t most) {
    const auto before = into.size();
    into.resize(before + most);
    std::size_t got = 0;
    ERR_clear_error();
    errno = 0;
    const int result = SSL_read_ex(ssl_, into.data() + before, most, &got);
    into.resize(before + got);
    if (result == 1) {
        return tls_end::data;
    }
    switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_ZERO_RETURN: return tls_end::closed;
    case SSL_ERROR_WANT_READ: return tls_end::timed_out;
    default: why_ = reason(); return tls_end::truncated;
    }
}

std::string tls_peer::read(std::size_t bytes) {
    std::string all;
    while (all.size() < bytes && read_some(all) == tls_end::data) {
    }
    return all;
}

tls_peer::rest tls_peer::read_to_end() {
    std::string all;
    for (;;) {
        const auto end = read_some(all);
        if (end != tls_end::data) {
            return {std::move(all), end};
        }
    }
}

bool tls_peer::renegotiate() {
    ERR_clear_error();
    return SSL_renegotiate(ssl_) == 1 && SSL_do_handshake(ssl_) == 1;
}

bool tls_peer::change_key() {
    ERR_clear_error();
    return SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl_) == 1;
}

void tls_peer::finish_sending() {
    ERR_clear_error();
    SSL_shutdown(ssl_);
}

void tls_peer::truncate() {
    ::shutdown(socket_, SHUT_WR);
}

void tls_peer::reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(socket_, -1));
}

std::string tls_peer::chosen_protocol() const {
    const unsigned char* at = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &at, &size);
    return {reinterpret_cast<const char*>(at), size};
}

std::string tls_peer::asked_for() const {
    const auto* name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
    return name != nullptr ? name : "";
}

std::string tls_peer::certificate_serial() const {
    const auto* shown = SSL_get0_peer_certificate(ssl_);
    if (shown == nullptr) {
        return {};
    }
    std::uint64_t serial = 0;
    ASN1_INTEGER_get_uint64(&serial, X509_get0_serialNumber(shown));
    return std::to_string(serial);
}

bool tls_peer::resumed() const noexcept {
    return SSL_session_reused(ssl_) == 1;
}

bool tls_peer::has_decrypted() const noexcept {
    return SSL_pending(ssl_) > 0;
}

}  // namespace reprise::tests
