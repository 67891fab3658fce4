#include "tests/support/certificates.hpp"

#include <atomic>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>

namespace reprise::tests {

namespace {

struct freed {
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
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

/// `issuer` null: by itself.
owned<X509> new_certificate(EVP_PKEY* key,
                            const std::string& called,
                            const std::string& names,
                            bool authority,
                            validity when,
                            X509* issuer,
                            EVP_PKEY* by) {
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
    auto* issued_by = issuer != nullptr ? issuer : it;
    must(X509_set_issuer_name(it, X509_get_subject_name(issued_by)) == 1);
    add(it, issued_by, NID_basic_constraints, authority ? "critical,CA:TRUE" : "CA:FALSE");
    add(it, issued_by, NID_subject_key_identifier, "hash");
    if (!names.empty()) {
        add(it, issued_by, NID_subject_alt_name, names);
    }
    must(X509_sign(it, by, EVP_sha256()) > 0);
    return made;
}

}  // namespace

test_authority::test_authority() {
    static std::atomic<unsigned> made{0};  // each has a name of its own
    const auto name = "authority " + std::to_string(++made) + " of this test";
    auto key = new_key();
    auto own = new_certificate(key.get(), name, "", true, {}, nullptr, key.get());
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

made_certificate self_signed(const std::string& names) {
    const auto key = new_key();
    const auto made = new_certificate(key.get(), "a test", names, false, {}, nullptr, key.get());
    return {pem_of(made.get()), pem_of(key.get())};
}

}  // namespace reprise::tests
