#include "tests/support/certificates.hpp"

#include <atomic>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <utility>

namespace reprise::tests {

namespace {

struct freed {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
    void operator()(X509_CRL* list) const noexcept { X509_CRL_free(list); }
    void operator()(X509_REVOKED* entry) const noexcept { X509_REVOKED_free(entry); }
    void operator()(ASN1_TIME* time) const noexcept { ASN1_TIME_free(time); }
    void operator()(OCSP_BASICRESP* said) const noexcept { OCSP_BASICRESP_free(said); }
    void operator()(OCSP_RESPONSE* whole) const noexcept { OCSP_RESPONSE_free(whole); }
    void operator()(OCSP_CERTID* named) const noexcept { OCSP_CERTID_free(named); }
    void operator()(X509_EXTENSION* extension) const noexcept { X509_EXTENSION_free(extension); }
};
template <class T>
using owned = std::unique_ptr<T, freed>;

void must(bool done) {
    if (!done) {
        throw std::runtime_error("OpenSSL could not make a certificate");
    }
}

template <class Write>
std::string pem_of(Write&& write) {
    const owned<BIO> out{BIO_new(BIO_s_mem())};
    must(out && write(out.get()) == 1);
    char* at = nullptr;
    const auto size = BIO_get_mem_data(out.get(), &at);
    return {at, static_cast<std::size_t>(size)};
}
std::string pem_of(X509* certificate) {
    return pem_of([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}
std::string pem_of(EVP_PKEY* key) {
    return pem_of([&](BIO* out) {
        return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
}

owned<X509> certificate_in(const std::string& pem) {
    const owned<BIO> in{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
    owned<X509> read{in ? PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr) : nullptr};
    must(read != nullptr);
    return read;
}

owned<ASN1_TIME> from_now(std::chrono::seconds time) {
    owned<ASN1_TIME> made{X509_gmtime_adj(nullptr, time.count())};
    must(made != nullptr);
    return made;
}

owned<EVP_PKEY> new_key() {
    owned<EVP_PKEY> key{EVP_EC_gen("P-256")};
    must(key != nullptr);
    return key;
}

void add(X509* to, X509* issuer, int what, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
    const owned<X509_EXTENSION> made{X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str())};
    must(made && X509_add_ext(to, made.get(), -1) == 1);
}

void add(X509_CRL* to, X509* issuer, int what, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, nullptr, nullptr, to, 0);
    const owned<X509_EXTENSION> made{X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str())};
    must(made && X509_CRL_add_ext(to, made.get(), -1) == 1);
}

/// All but its extensions and its signature. `issuer` null: by itself.
owned<X509> begin_certificate(EVP_PKEY* key,
                              const std::string& called,
                              validity when,
                              X509* issuer) {
    owned<X509> made{X509_new()};
    must(made != nullptr);
    auto* it = made.get();
    std::uint32_t serial = 0;
    must(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
    must(X509_set_version(it, 2) == 1);
    must(ASN1_INTEGER_set_uint64(X509_get_serialNumber(it), serial | 1u) == 1);
    must(X509_gmtime_adj(X509_getm_notBefore(it), when.from.count()) != nullptr);
    must(X509_gmtime_adj(X509_getm_notAfter(it), when.until.count()) != nullptr);
    must(X509_set_pubkey(it, key) == 1);
    const auto* text = reinterpret_cast<const unsigned char*>(called.c_str());
    must(X509_NAME_add_entry_by_txt(
             X509_get_subject_name(it), "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1);
    must(X509_set_issuer_name(it, X509_get_subject_name(issuer != nullptr ? issuer : it)) == 1);
    return made;
}

/// `issuer` null: by itself.
owned<X509> new_certificate(EVP_PKEY* key,
                            const std::string& called,
                            const std::string& names,
                            bool authority,
                            validity when,
                            X509* issuer,
                            EVP_PKEY* by) {
    auto made = begin_certificate(key, called, when, issuer);
    auto* it = made.get();
    auto* issued_by = issuer != nullptr ? issuer : it;
    add(it, issued_by, NID_basic_constraints, authority ? "critical,CA:TRUE" : "CA:FALSE");
    add(it, issued_by, NID_subject_key_identifier, "hash");
    if (authority) {
        add(it, issued_by, NID_key_usage, "critical,keyCertSign,cRLSign");
    }
    if (issuer != nullptr) {
        add(it, issuer, NID_authority_key_identifier, "keyid");
    }
    if (!names.empty()) {
        add(it, issued_by, NID_subject_alt_name, names);
    }
    must(X509_sign(it, by, EVP_sha256()) > 0);
    return made;
}

owned<EVP_PKEY> key_as_wished(const authority_wishes& wanted) {
    owned<EVP_PKEY> key;
    if (wanted.rsa_bits != 0) {
        key.reset(EVP_RSA_gen(static_cast<unsigned>(wanted.rsa_bits)));
    } else if (!wanted.curve.empty()) {
        key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, wanted.curve.c_str()));
    } else {
        key = new_key();
    }
    must(key != nullptr);
    return key;
}

/// `issuer` null: by itself.
made_certificate new_authority(const authority_wishes& wanted, X509* issuer, EVP_PKEY* by) {
    static std::atomic<unsigned> all{0};  // each has a name of its own, or it would be self-issued
    const auto key = key_as_wished(wanted);
    const auto name = "intermediate " + std::to_string(++all) + " of this test";
    const auto made = begin_certificate(key.get(), name, wanted.when, issuer);
    auto* it = made.get();
    add(it, it, NID_subject_key_identifier, "hash");
    add(it, issuer != nullptr ? issuer : it, NID_authority_key_identifier, "keyid");
    const std::pair<int, std::string> extensions[] = {{NID_basic_constraints, wanted.basic},
                                                      {NID_key_usage, wanted.usage},
                                                      {NID_ext_key_usage, wanted.extended_usage},
                                                      {NID_name_constraints, wanted.constraints}};
    for (const auto& [what, value] : extensions) {
        if (!value.empty()) {
            add(it, it, what, value);
        }
    }
    must(X509_sign(it, by != nullptr ? by : key.get(), EVP_sha256()) > 0);
    return {pem_of(it), pem_of(key.get())};
}

std::string next_name() {
    static std::atomic<unsigned> made{0};
    return "authority " + std::to_string(++made) + " of this test";
}

}  // namespace

test_authority::test_authority() : test_authority{next_name()} {}

test_authority::test_authority(const std::string& called) {
    auto key = new_key();
    auto own = new_certificate(key.get(), called, "", true, {}, nullptr, key.get());
    pem_ = pem_of(own.get());
    key_ = key.release();
    own_ = own.release();
}

test_authority::~test_authority() {
    EVP_PKEY_free(key_);
    X509_free(own_);
}

made_certificate test_authority::issue(const std::string& names, validity when) const {
    const auto key = new_key();
    const auto made = new_certificate(key.get(), "a test", names, false, when, own_, key_);
    return {pem_of(made.get()), pem_of(key.get())};
}

made_certificate test_authority::issue_as(const std::string& names,
                                          const certificate_wishes& wanted) const {
    authority_wishes keys;
    keys.rsa_bits = wanted.rsa_bits;
    const auto key = key_as_wished(keys);
    const auto made = begin_certificate(key.get(), wanted.called, wanted.when, own_);
    auto* it = made.get();
    add(it, own_, NID_basic_constraints, "CA:FALSE");
    if (!names.empty()) {
        add(it, own_, NID_subject_alt_name, names);
    }
    if (wanted.must_staple) {
        add(it, own_, NID_tlsfeature, "status_request");
    }
    if (wanted.comment_bytes > 0) {
        add(it, own_, NID_netscape_comment, std::string(wanted.comment_bytes, 'x'));
    }
    must(X509_sign(it, key_, wanted.sha1 ? EVP_sha1() : EVP_sha256()) > 0);
    return {pem_of(it), pem_of(key.get())};
}

std::string test_authority::revoke(const std::string& certificate,
                                   const list_wishes& wanted) const {
    const auto& when = wanted.when;
    const owned<X509_CRL> list{X509_CRL_new()};
    must(list && X509_CRL_set_version(list.get(), 1) == 1 &&
         X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(own_)) == 1 &&
         X509_CRL_set1_lastUpdate(list.get(), from_now(when.from).get()) == 1 &&
         X509_CRL_set1_nextUpdate(list.get(), from_now(when.until).get()) == 1);
    if (!certificate.empty()) {
        const auto named = certificate_in(certificate);
        owned<X509_REVOKED> entry{X509_REVOKED_new()};
        must(entry &&
             X509_REVOKED_set_serialNumber(entry.get(), X509_get_serialNumber(named.get())) == 1 &&
             X509_REVOKED_set_revocationDate(entry.get(), from_now(when.from).get()) == 1 &&
             X509_CRL_add0_revoked(list.get(), entry.get()) == 1);
        static_cast<void>(entry.release());  // the list's now
    }
    add(list.get(), own_, NID_authority_key_identifier, "keyid");
    if (!wanted.scope.empty()) {
        add(list.get(), own_, NID_issuing_distribution_point, wanted.scope);
    }
    must(X509_CRL_sign(list.get(), key_, EVP_sha256()) > 0);
    return pem_of([&](BIO* out) { return PEM_write_bio_X509_CRL(out, list.get()); });
}

std::string test_authority::status_of(const std::string& certificate,
                                      const status_wishes& wanted) const {
    using word = status_wishes::word;
    const auto* issuer = wanted.issued_by != nullptr ? wanted.issued_by : this;
    const owned<OCSP_BASICRESP> said{OCSP_BASICRESP_new()};
    must(said != nullptr);
    const auto from = from_now(wanted.when.from);
    const auto until = from_now(wanted.when.until);
    const auto say = [&](const std::string& of, int status) {
        const auto about = certificate_in(of);
        const owned<OCSP_CERTID> named{
            OCSP_cert_to_id(wanted.sha256 ? EVP_sha256() : EVP_sha1(), about.get(), issuer->own_)};
        must(named && OCSP_basic_add1_status(said.get(),
                                             named.get(),
                                             status,
                                             OCSP_REVOKED_STATUS_KEYCOMPROMISE,
                                             from.get(),
                                             from.get(),
                                             wanted.endless ? nullptr : until.get()) != nullptr);
    };
    if (!wanted.before.empty()) {
        say(wanted.before, V_OCSP_CERTSTATUS_GOOD);
    }
    say(certificate,
        wanted.says == word::good      ? V_OCSP_CERTSTATUS_GOOD
        : wanted.says == word::revoked ? V_OCSP_CERTSTATUS_REVOKED
                                       : V_OCSP_CERTSTATUS_UNKNOWN);
    must(OCSP_basic_sign(said.get(), own_, key_, EVP_sha256(), nullptr, 0) == 1);
    const owned<OCSP_RESPONSE> whole{
        OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, said.get())};
    unsigned char* der = nullptr;
    const int size = i2d_OCSP_RESPONSE(whole.get(), &der);
    must(size > 0);
    std::string bytes{reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)};
    OPENSSL_free(der);
    return bytes;
}

made_certificate test_authority::issue_authority(const authority_wishes& wanted) const {
    return new_authority(wanted, own_, key_);
}

made_certificate test_authority::issue_authority_below(const made_certificate& above,
                                                       const authority_wishes& wanted) {
    const owned<BIO> in{BIO_new_mem_buf(above.key.data(), static_cast<int>(above.key.size()))};
    const owned<EVP_PKEY> key{in ? PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr)
                                 : nullptr};
    must(key != nullptr);
    const auto issuer = certificate_in(above.certificate);
    return new_authority(wanted, issuer.get(), key.get());
}

made_certificate test_authority::issue_root(const authority_wishes& wanted) {
    return new_authority(wanted, nullptr, nullptr);
}

made_certificate self_signed(const std::string& names) {
    const auto key = new_key();
    const auto made = new_certificate(key.get(), "a test", names, false, {}, nullptr, key.get());
    return {pem_of(made.get()), pem_of(key.get())};
}

}  // namespace reprise::tests
