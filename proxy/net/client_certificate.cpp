#include "proxy/net/client_certificate.hpp"

#include <openssl/ssl.h>

namespace reprise::proxy::net {

namespace {

int place_of_note() noexcept {
    static const int mine = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return mine;
}

// As SSL_CTX_set_client_cert_cb wants it: 0 is none.
int show_none(SSL* connection, X509**, EVP_PKEY**) noexcept {
    static char asked;
    SSL_set_ex_data(connection, place_of_note(), &asked);
    return 0;
}

}  // namespace

void note_certificate_requests(ssl_ctx_st* context) noexcept {
    SSL_CTX_set_client_cert_cb(context, show_none);
}

bool was_asked_for_certificate(const ssl_st* connection) noexcept {
    return SSL_get_ex_data(connection, place_of_note()) != nullptr;
}

}  // namespace reprise::proxy::net
