#pragma once
// Certificates and keys made on the spot, so that no key is ever in the repository.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace reprise::tests {

/// PEM texts.
struct made_certificate {
    std::string certificate, key;
};

/// When a certificate is valid, from now.
struct validity {
    std::chrono::seconds from = -std::chrono::hours{24};
    std::chrono::seconds until = std::chrono::hours{24};
};

/// What a certificate may be like that has more to it than its names.
struct certificate_wishes {
    validity when{};
    int rsa_bits = 0;               ///< 0: P-256
    bool sha1 = false;              ///< its signature, in place of SHA-256's
    bool must_staple = false;       ///< RFC 7633: it always comes with its status
    std::size_t comment_bytes = 0;  ///< an extension that nobody reads, of this size
    std::string called = "a test";  ///< its subject's CN
};

/// A response of OCSP about a certificate.
struct status_wishes {
    enum class word { good, revoked, unknown };
    word says = word::good;
    validity when{std::chrono::hours{-1}, std::chrono::hours{24}};
    const class test_authority* issued_by = nullptr;  ///< whom it names; null: who signs it
    bool sha256 = false;   ///< certificates are named by SHA-256, in place of SHA-1
    bool endless = false;  ///< it doesn't say until when
    std::string before{};  ///< another certificate, PEM, named good in front of it; empty: none
};

/// A list of revoked certificates.
struct list_wishes {
    validity when{};
    std::string scope{};  ///< issuingDistributionPoint, as OpenSSL's configuration writes it
};

/// An intermediate's extensions, as OpenSSL's configuration writes them; empty: there is none.
struct authority_wishes {
    std::string basic = "critical,CA:TRUE,pathlen:0";
    std::string usage = "critical,keyCertSign,cRLSign";
    std::string extended_usage{};
    std::string constraints = "critical,permitted;DNS:a.test,permitted;DNS:b.test,"
                              "excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::";
    validity when{-std::chrono::hours{24}, std::chrono::hours{24 * 365}};
    int rsa_bits = 0;     ///< 0: P-256
    std::string curve{};  ///< "ED25519": in place of P-256
};

/// An authority nobody knows but the test. P-256 keys.
class test_authority {
public:
    /// @throws std::runtime_error, like all of this
    test_authority();
    /// Of this name, which another may have too.
    explicit test_authority(const std::string& called);
    ~test_authority();
    test_authority(const test_authority&) = delete;
    test_authority& operator=(const test_authority&) = delete;

    /// Its own certificate: what a client must trust.
    [[nodiscard]] const std::string& certificate() const noexcept { return pem_; }

    /// @param names  "DNS:b.example", "IP:127.0.0.1", or several with commas; empty: none
    [[nodiscard]] made_certificate issue(const std::string& names, validity when = {}) const;
    [[nodiscard]] made_certificate issue_as(const std::string& names,
                                            const certificate_wishes& wanted) const;
    /// A revocation list of its own, PEM, that names one certificate, or with an empty text none.
    [[nodiscard]] std::string revoke(const std::string& certificate,
                                     const list_wishes& wanted = {}) const;
    /// What a server staples: a response about the certificate, DER, that this authority signs.
    [[nodiscard]] std::string status_of(const std::string& certificate,
                                        const status_wishes& wanted = {}) const;
    /// An intermediate, which may issue in its turn.
    [[nodiscard]] made_certificate issue_authority(const authority_wishes& wanted = {}) const;
    /// The same, signed by one that was issued.
    [[nodiscard]] static made_certificate issue_authority_below(
        const made_certificate& above, const authority_wishes& wanted = {});
    /// The same, signed by itself.
    [[nodiscard]] static made_certificate issue_root(const authority_wishes& wanted);

private:
    evp_pkey_st* key_;
    x509_st* own_;
    std::string pem_;
};

[[nodiscard]] made_certificate self_signed(const std::string& names);

}  // namespace reprise::tests
