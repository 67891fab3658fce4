#pragma once
// Certificates and keys made on the spot, so that no key is ever in the repository.

#include <chrono>
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

/// An authority nobody knows but the test. P-256 keys.
class test_authority {
public:
    /// @throws std::runtime_error, like all of this
    test_authority();
    ~test_authority();
    test_authority(const test_authority&) = delete;
    test_authority& operator=(const test_authority&) = delete;

    /// Its own certificate: what a client must trust.
    [[nodiscard]] const std::string& certificate() const noexcept { return pem_; }

    /// @param names  "DNS:b.example", "IP:127.0.0.1", or several with commas
    [[nodiscard]] made_certificate issue(const std::string& names, validity when = {}) const;

private:
    evp_pkey_st* key_;
    x509_st* own_;
    std::string pem_;
};

[[nodiscard]] made_certificate self_signed(const std::string& names);

}  // namespace reprise::tests
