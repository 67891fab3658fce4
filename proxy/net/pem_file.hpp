#pragma once
// Certificates and keys in PEM files: read with no copy of a key left behind, and with sentences that
// name the setting and the file where something is wrong, never a byte of what the file holds.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct bio_st;
struct X509_crl_st;
struct evp_pkey_st;
struct x509_st;

namespace reprise::proxy::net {

namespace detail {
struct pem_free {
    void operator()(x509_st* certificate) const noexcept;
    void operator()(X509_crl_st* list) const noexcept;
    void operator()(evp_pkey_st* key) const noexcept;
    void operator()(bio_st* bio) const noexcept;
};
}  // namespace detail
using certificate_ptr = std::unique_ptr<x509_st, detail::pem_free>;
using revocation_list_ptr = std::unique_ptr<X509_crl_st, detail::pem_free>;
using private_key_ptr = std::unique_ptr<evp_pkey_st, detail::pem_free>;

/// Why the last call of OpenSSL on this thread failed, in its own words, which never quote what was
/// read; forgotten with this.
[[nodiscard]] std::string openssl_reason();

/// A whole file of bounded size; what it held is wiped when this goes.
/// Waits   for the file system.
/// Errors  std::runtime_error, "SETTING: cannot read PATH: why"
class pem_file {
public:
    static constexpr std::size_t usual_limit = 1u << 20;  ///< a chain takes some kilobytes,
    static constexpr std::size_t list_limit = 64u << 20;  ///< a large authority's list 10 MiB

    /// @param limit  bytes, at least usual_limit
    pem_file(std::string setting, std::string path, std::size_t limit = usual_limit);
    ~pem_file();
    pem_file(const pem_file&) = delete;
    pem_file& operator=(const pem_file&) = delete;

    /// Every certificate in it, at least one, in the file's order.
    /// @throws std::runtime_error  there is none, or one is cut short
    [[nodiscard]] std::vector<certificate_ptr> certificates();
    /// Every revocation list in it, at least one. @throws std::runtime_error as certificates()
    [[nodiscard]] std::vector<revocation_list_ptr> revocation_lists();
    /// Nobody is asked for a passphrase: a key that wants one is none.
    /// @throws std::runtime_error
    [[nodiscard]] private_key_ptr key();

    /// By the permissions and the access list that it had when it was opened.
    [[nodiscard]] bool may_be_read_by_others() const noexcept { return open_to_others_; }

private:
    std::string setting_, path_;
    std::vector<char> bytes_;
    std::unique_ptr<bio_st, detail::pem_free> bio_;
    bool open_to_others_ = false;
};

}  // namespace reprise::proxy::net
