#include "proxy/net/tls_trust.hpp"

#include "proxy/net/client_certificate.hpp"
#include "proxy/net/pem_file.hpp"
#include "proxy/net/stapled_status.hpp"
#include "proxy/net/tls_resumption.hpp"

#include <boost/asio/ip/address.hpp>

#include <memory>
#include <new>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdexcept>

// The system's trust store, with what the settings add to it and take from it.

namespace reprise::proxy::net {

namespace {

constexpr int security_level = 2;         // 112 bits
constexpr long largest_chain = 64 << 10;  // bytes; a chain of four takes 4 to 8 KiB

void believe(SSL_CTX* context, const std::string& path) {
    const std::string setting = "origins.ca_file";
    auto* const store = SSL_CTX_get_cert_store(context);
    for (const auto& one : pem_file{setting, path}.certificates()) {
        if (X509_check_ca(one.get()) == 0) {
            throw std::runtime_error{setting + ": a certificate in " + path +
                                     " is no authority's (CA:FALSE)"};
        }
        if (X509_STORE_add_cert(store, one.get()) != 1) {
            throw std::runtime_error{setting + ": cannot use " + path + ": " + openssl_reason()};
        }
    }
}

struct free_lists {
    void operator()(STACK_OF(X509_CRL) * all) const noexcept {
        sk_X509_CRL_pop_free(all, X509_CRL_free);
    }
};

struct free_number {
    void operator()(ASN1_INTEGER* one) const noexcept { ASN1_INTEGER_free(one); }
};

// Whether there is a list in the name of whoever issued the certificate that is looked at.
bool has_list(const X509_STORE_CTX* of) {
    const auto* const looked_at = X509_STORE_CTX_get_current_cert(of);
    const std::unique_ptr<STACK_OF(X509_CRL), free_lists> found{
        X509_STORE_CTX_get1_crls(of, X509_get_issuer_name(looked_at))};
    return sk_X509_CRL_num(found.get()) > 0;
}

// OpenSSL asks for a list of every authority; one that the file has none of is not held against it.
// It says the same of one that has a list which can't be used: of another key, or for some reasons
// only. What that authority has revoked nobody knows.
int judge_chain(int good, X509_STORE_CTX* of) {
    if (good == 0 && X509_STORE_CTX_get_error(of) == X509_V_ERR_UNABLE_TO_GET_CRL &&
        !has_list(of)) {
        X509_STORE_CTX_set_error(of, X509_V_OK);
        return 1;
    }
    return good;
}

void heed_revocations(SSL_CTX* context, const std::string& path) {
    const std::string setting = "origins.crl_file";
    auto* const store = SSL_CTX_get_cert_store(context);
    const std::unique_ptr<ASN1_INTEGER, free_number> any_serial{ASN1_INTEGER_new()};
    if (!any_serial) {
        throw std::bad_alloc{};
    }
    for (const auto& one : pem_file{setting, path, pem_file::list_limit}.revocation_lists()) {
        if (X509_STORE_add_crl(store, one.get()) != 1) {
            throw std::runtime_error{setting + ": cannot use " + path + ": " + openssl_reason()};
        }
        // The first look-up sorts it, which takes a list of a million entries 0.7 s: not on a loop.
        X509_REVOKED* ignored = nullptr;
        X509_CRL_get0_by_serial(one.get(), &ignored, any_serial.get());
    }
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    // The callback is the store's and not the connection's: so whoever signs a stapled response is
    // judged as well.
    X509_STORE_set_verify_cb(store, judge_chain);
}

void heed_files(SSL_CTX* context, const config::origin_options& options) {
    if (!options.ca_file.empty()) {
        believe(context, options.ca_file);
    }
    if (!options.crl_file.empty()) {
        heed_revocations(context, options.crl_file);
    }
}

bool is_address(const std::string& host) {
    boost::system::error_code not_one;
    static_cast<void>(boost::asio::ip::make_address(host, not_one));
    return !not_one;
}

}  // namespace

void tls_trust::check(const config::origin_options& options) {
    heed_files(detail::make_tls_context(TLS_client_method()).get(), options);
    ERR_clear_error();
}

tls_trust_ptr tls_trust::read(const config::origin_options& options) {
    auto context = detail::make_tls_context(TLS_client_method());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_security_level(context.get(), security_level);
    SSL_CTX_set_max_cert_list(context.get(), largest_chain);
    if (SSL_CTX_set_default_verify_paths(context.get()) != 1 ||
        SSL_CTX_set_alpn_protos(context.get(), detail::protocols, sizeof detail::protocols) != 0) {
        throw std::runtime_error{"TLS: cannot use the system's trust store: " + openssl_reason()};
    }
    heed_files(context.get(), options);
    heed_stapled_status(context.get());
    note_certificate_requests(context.get());
    tls_resumption::enable(context.get());
    ERR_clear_error();
    return tls_trust_ptr{new tls_trust{std::move(context)}};
}

ssl_ptr tls_trust::begin(const std::string& host) const noexcept {
    ssl_ptr made{SSL_new(context_.get())};
    // OpenSSL takes ".b.test" for whatever ends so.
    if (!made || host.empty() || host.starts_with('.')) {
        return nullptr;
    }
    auto* rules = SSL_get0_param(made.get());
    if (is_address(host)) {
        if (X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) != 1) {
            return nullptr;
        }
    } else {
        // The subject's CN is no name of a host (RFC 9110 4.3.4).
        X509_VERIFY_PARAM_set_hostflags(
            rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
        if (X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size()) != 1 ||
            SSL_set_tlsext_host_name(made.get(), host.c_str()) != 1) {
            return nullptr;
        }
    }
    SSL_set_connect_state(made.get());
    return made;
}

}  // namespace reprise::proxy::net
