#include "proxy/net/stapled_status.hpp"

#include <algorithm>
#include <memory>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdexcept>

namespace reprise::proxy::net {

namespace {

constexpr long most_skew = 300;     // seconds that clocks may differ by
constexpr long status_request = 5;  // RFC 7633 4: the extension that is promised

struct free_ocsp {
    void operator()(OCSP_RESPONSE* one) const noexcept { OCSP_RESPONSE_free(one); }
    void operator()(OCSP_BASICRESP* one) const noexcept { OCSP_BASICRESP_free(one); }
    void operator()(OCSP_CERTID* one) const noexcept { OCSP_CERTID_free(one); }
    void operator()(TLS_FEATURE* one) const noexcept { TLS_FEATURE_free(one); }
};
template <class T>
using owned = std::unique_ptr<T, free_ocsp>;

enum class status { none, good, revoked };  // the worse the later

// Whoever issued `of`, as the chain that was verified has it.
X509* issuer_in(STACK_OF(X509) * chain) {
    return sk_X509_num(chain) > 1 ? sk_X509_value(chain, 1) : sk_X509_value(chain, 0);
}

// Whether a part of a response is about this certificate, whichever digest it names its issuer by.
bool is_about(OCSP_SINGLERESP* part, X509* of, X509* issuer) {
    auto* const named = const_cast<OCSP_CERTID*>(OCSP_SINGLERESP_get0_id(part));  // only looked at
    ASN1_OBJECT* digest_name = nullptr;
    ASN1_INTEGER* serial = nullptr;
    if (OCSP_id_get0_info(nullptr, &digest_name, nullptr, &serial, named) != 1 ||
        ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(of)) != 0) {
        return false;
    }
    const auto* digest = EVP_get_digestbyobj(digest_name);
    const owned<OCSP_CERTID> own{digest != nullptr ? OCSP_cert_to_id(digest, of, issuer) : nullptr};
    return own && OCSP_id_cmp(own.get(), named) == 0;
}

status read_part(OCSP_SINGLERESP* part) {
    ASN1_GENERALIZEDTIME* from = nullptr;
    ASN1_GENERALIZEDTIME* until = nullptr;
    const int said = OCSP_single_get0_status(part, nullptr, nullptr, &from, &until);
    // A good one that doesn't say until when would hold for ever (RFC 6960 3.2: sufficiently recent).
    constexpr long a_day = 86'400;
    const bool is_endless = said == V_OCSP_CERTSTATUS_GOOD && until == nullptr;
    if (OCSP_check_validity(from, until, most_skew, is_endless ? a_day : -1) != 1) {
        return status::none;
    }
    return said == V_OCSP_CERTSTATUS_REVOKED ? status::revoked
           : said == V_OCSP_CERTSTATUS_GOOD  ? status::good
                                             : status::none;
}

// What of a response is signed, current, and about this certificate; of several words the worst.
status read_status(SSL* tls, const unsigned char* bytes, long size, X509* of) {
    const owned<OCSP_RESPONSE> response{d2i_OCSP_RESPONSE(nullptr, &bytes, size)};
    if (!response || OCSP_response_status(response.get()) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
        return status::none;
    }
    const owned<OCSP_BASICRESP> basic{OCSP_response_get1_basic(response.get())};
    auto* const chain = SSL_get0_verified_chain(tls);
    auto* const store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(tls));
    if (!basic || chain == nullptr || OCSP_basic_verify(basic.get(), chain, store, 0) != 1) {
        return status::none;
    }
    auto said = status::none;
    for (int i = 0; i < OCSP_resp_count(basic.get()); ++i) {
        auto* const part = OCSP_resp_get0(basic.get(), i);
        if (is_about(part, of, issuer_in(chain))) {
            said = std::max(said, read_part(part));
        }
    }
    return said;
}

bool promises_status(const X509* of) {
    const owned<TLS_FEATURE> promised{
        static_cast<TLS_FEATURE*>(X509_get_ext_d2i(of, NID_tlsfeature, nullptr, nullptr))};
    for (int i = 0; promised && i < sk_ASN1_INTEGER_num(promised.get()); ++i) {
        if (ASN1_INTEGER_get(sk_ASN1_INTEGER_value(promised.get(), i)) == status_request) {
            return true;
        }
    }
    return false;
}

// As SSL_CTX_set_tlsext_status_cb wants it: 0 ends the handshake.
int judge(SSL* tls, void*) {
    auto* const own = SSL_get0_peer_certificate(tls);
    if (own == nullptr || SSL_session_reused(tls) == 1) {
        return 1;  // it was judged when the session began
    }
    const unsigned char* bytes = nullptr;
    const auto size = SSL_get_tlsext_status_ocsp_resp(tls, &bytes);
    const auto said = bytes != nullptr && size > 0 ? read_status(tls, bytes, size, own)
                                                   : status::none;
    ERR_clear_error();
    if (said == status::revoked) {
        SSL_set_verify_result(tls, X509_V_ERR_CERT_REVOKED);
        return 0;
    }
    if (said == status::none && promises_status(own)) {
        SSL_set_verify_result(tls, X509_V_ERR_OCSP_VERIFY_NEEDED);
        return 0;
    }
    return 1;
}

}  // namespace

void heed_stapled_status(ssl_ctx_st* context) {
    if (SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp) != 1 ||
        SSL_CTX_set_tlsext_status_cb(context, judge) != 1) {
        throw std::runtime_error{"TLS: cannot ask for stapled status"};
    }
}

}  // namespace reprise::proxy::net
