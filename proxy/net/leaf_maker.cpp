#include "proxy/net/leaf_maker.hpp"

#include <algorithm>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <utility>

namespace reprise::proxy::net {
namespace {

using namespace std::chrono_literals;

// Where clients take no certificate that is valid for longer than so many days, its beginning counts.
constexpr std::chrono::hours counted_whole{24 * 300};

constexpr int serial_bytes = 16;

/// Frees what OpenSSL made by its own function for it.
template <auto Free>
struct freed_by {
    template <class T>
    void operator()(T* one) const noexcept {
        Free(one);
    }
};
template <class T, auto Free>
using made_by_openssl = std::unique_ptr<T, freed_by<Free>>;

void must_make(bool made) {
    if (!made) {
        throw std::runtime_error{"OpenSSL cannot make a certificate: " + openssl_reason()};
    }
}

X509_EXTENSION* new_extension(int what, bool critical, const char* value) {
    const std::string text = (critical ? "critical," : "") + std::string{value};
    auto* made = X509V3_EXT_conf_nid(nullptr, nullptr, what, text.c_str());
    must_make(made != nullptr);
    return made;
}

// By its key's identifier alone (RFC 5280 4.2.1.1); where it has none, by the one it would have
// (4.2.1.2, method 1).
X509_EXTENSION* new_issuer_key(const X509* issuer) {
    made_by_openssl<AUTHORITY_KEYID, &AUTHORITY_KEYID_free> names{AUTHORITY_KEYID_new()};
    must_make(names != nullptr);
    const auto* own = X509_get0_subject_key_id(const_cast<X509*>(issuer));
    if (own != nullptr) {
        names->keyid = ASN1_OCTET_STRING_dup(own);
        must_make(names->keyid != nullptr);
    } else {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned size = 0;
        names->keyid = ASN1_OCTET_STRING_new();
        must_make(names->keyid != nullptr &&
                  X509_pubkey_digest(issuer, EVP_sha1(), digest, &size) == 1 &&
                  ASN1_OCTET_STRING_set(names->keyid, digest, static_cast<int>(size)) == 1);
    }
    auto* made = X509V3_EXT_i2d(NID_authority_key_identifier, 0, names.get());
    must_make(made != nullptr);
    return made;
}

bool add_host(X509* to, const std::string& host) {
    const made_by_openssl<GENERAL_NAMES, &GENERAL_NAMES_free> names{GENERAL_NAMES_new()};
    made_by_openssl<GENERAL_NAME, &GENERAL_NAME_free> name{GENERAL_NAME_new()};
    made_by_openssl<ASN1_IA5STRING, &ASN1_IA5STRING_free> text{ASN1_IA5STRING_new()};
    if (!names || !name || !text ||
        ASN1_STRING_set(text.get(), host.data(), static_cast<int>(host.size())) != 1) {
        return false;
    }
    GENERAL_NAME_set0_value(name.get(), GEN_DNS, text.release());
    if (sk_GENERAL_NAME_push(names.get(), name.get()) == 0) {
        return false;
    }
    static_cast<void>(name.release());  // the list's now
    return X509_add1_ext_i2d(to, NID_subject_alt_name, names.get(), 1, 0) == 1;
}

bool set_random_serial(X509* of) {
    unsigned char bytes[serial_bytes];
    const made_by_openssl<BIGNUM, &BN_free> number{
        RAND_bytes(bytes, sizeof bytes) == 1 ? BN_bin2bn(bytes, sizeof bytes, nullptr) : nullptr};
    return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(of)) != nullptr;
}

bool set_time(ASN1_TIME* to, wall_time at) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
    return ASN1_TIME_set(to, static_cast<std::time_t>(seconds)) != nullptr;
}

}  // namespace

// A key in OpenSSL's older form: X509_set_pubkey writes it in 6 microseconds. One of a provider
// (EVP_EC_gen) goes through OSSL_ENCODER, which takes 300, eight times the signature.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
std::shared_ptr<evp_pkey_st> make_leaf_key() {
    private_key_ptr made{EVP_PKEY_new()};
    auto* pair = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    const bool well = made && pair != nullptr && EC_KEY_generate_key(pair) == 1 &&
                      EVP_PKEY_assign_EC_KEY(made.get(), pair) == 1;  // the key's from here on
    ERR_clear_error();
    if (!well) {
        EC_KEY_free(pair);
        return nullptr;
    }
    return made;
}
#pragma GCC diagnostic pop

void leaf_maker::free_extension::operator()(X509_extension_st* one) const noexcept {
    X509_EXTENSION_free(one);
}

leaf_maker::leaf_maker(leaf_authority_ptr by,
                       std::shared_ptr<evp_pkey_st> key,
                       std::chrono::seconds lifetime)
    : by_{std::move(by)},
      key_{std::move(key)},
      lifetime_{lifetime},
      family_{key_.get(), by_->sent()} {
    ERR_clear_error();
    const auto keep = [this](X509_EXTENSION* made) { same_in_all_.emplace_back(made); };
    keep(new_extension(NID_key_usage, true, "digitalSignature"));
    keep(new_extension(NID_ext_key_usage, false, "serverAuth"));
    keep(new_issuer_key(by_->certificate()));
}

certificate_ptr leaf_maker::sign(const std::string& host, wall_time from, wall_time until) const {
    certificate_ptr made{X509_new()};
    auto* it = made.get();
    const bool filled =
        it != nullptr && X509_set_version(it, X509_VERSION_3) == 1 && set_random_serial(it) &&
        set_time(X509_getm_notBefore(it), from) && set_time(X509_getm_notAfter(it), until) &&
        X509_set_issuer_name(it, X509_get_subject_name(by_->certificate())) == 1 &&
        X509_set_pubkey(it, key_.get()) == 1 && add_host(it, host) &&
        std::all_of(same_in_all_.begin(), same_in_all_.end(), [it](const auto& one) {
            return X509_add_ext(it, one.get(), -1) == 1;
        });
    if (!filled || X509_sign(it, by_->key(), signature_digest(by_->key())) <= 0) {
        made.reset();
    }
    ERR_clear_error();
    return made;
}

// A client resumes under any leaf of its host that the same CA has signed, so that neither the
// next leaf nor one that was made twice costs it a handshake; and under no other host's.
tls_identity::ticket_group leaf_maker::tickets_for(const std::string& host) const {
    unsigned char of_authority[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    tls_identity::ticket_group group{};
    static_cast<void>(X509_digest(by_->certificate(), EVP_sha256(), of_authority, &size));
    std::string both{reinterpret_cast<const char*>(of_authority), size};
    both += host;
    static_cast<void>(
        EVP_Digest(both.data(), both.size(), group.data(), nullptr, EVP_sha256(), nullptr));
    return group;
}

std::optional<made_leaf> leaf_maker::make(const std::string& host, wall_time now) const {
    const auto before = lifetime_ >= counted_whole ? back_dated : 0h;
    const auto until = std::min<wall_time>(now + lifetime_ - before, by_->until());
    if (until <= now) {
        return std::nullopt;
    }
    const auto from = now - back_dated;
    auto own = sign(host, from, until);
    if (!own) {
        return std::nullopt;
    }
    return made_leaf{
        family_.with(std::move(own), tickets_for(host)), from, now + (until - now) / 2};
}

}  // namespace reprise::proxy::net
