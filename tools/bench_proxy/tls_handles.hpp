#pragma once
// OpenSSL's objects, freed with their owner.

#include <memory>
#include <openssl/ssl.h>

namespace reprise::bench {

struct tls_free {
    void operator()(SSL_CTX* one) const noexcept { SSL_CTX_free(one); }
    void operator()(SSL* one) const noexcept { SSL_free(one); }
    void operator()(SSL_SESSION* one) const noexcept { SSL_SESSION_free(one); }
};
using tls_context = std::unique_ptr<SSL_CTX, tls_free>;
using tls_connection = std::unique_ptr<SSL, tls_free>;
using tls_session = std::unique_ptr<SSL_SESSION, tls_free>;

}  // namespace reprise::bench
