#include "proxy/net/pem_file.hpp"

#include "proxy/net/secret_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <optional>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::net {

void detail::pem_free::operator()(x509_st* certificate) const noexcept {
    X509_free(certificate);
}
void detail::pem_free::operator()(X509_crl_st* list) const noexcept {
    X509_CRL_free(list);
}
void detail::pem_free::operator()(evp_pkey_st* key) const noexcept {
    EVP_PKEY_free(key);
}
void detail::pem_free::operator()(bio_st* bio) const noexcept {
    BIO_free(bio);
}

namespace {

/// In place of OpenSSL's own, which asks at the terminal.
int no_passphrase(char*, int, int, void*) {
    return -1;
}

// An access list as the kernel gives it (linux/posix_acl_xattr.h): a version, then entries of 8 bytes.
struct acl_entry {
    std::uint16_t tag, allowed;
    std::uint32_t id;
};
constexpr std::size_t acl_version_bytes = 4, acl_most = 32;
enum acl_tag : std::uint16_t { acl_user = 0x02, acl_group_of_file = 0x04, acl_group = 0x08 };

/// Where a file has an access list, the group's bits of its mode are the list's mask and say nothing of
/// the group: systemd gives a service its credentials as 0440 with a list that names its user
/// alone. None: there is no list that can be read.
std::optional<bool> acl_lets_others_in(int file) {
    std::array<char, acl_version_bytes + acl_most * sizeof(acl_entry)> bytes{};
    const auto size = ::fgetxattr(file, "system.posix_acl_access", bytes.data(), bytes.size());
    if (size < static_cast<::ssize_t>(acl_version_bytes)) {
        return std::nullopt;
    }
    for (auto at = acl_version_bytes; at + sizeof(acl_entry) <= static_cast<std::size_t>(size);
         at += sizeof(acl_entry)) {
        acl_entry entry{};
        std::memcpy(&entry, bytes.data() + at, sizeof entry);
        const bool is_others = (entry.tag == acl_user && entry.id != ::geteuid()) ||
                               entry.tag == acl_group_of_file || entry.tag == acl_group;
        if (is_others && entry.allowed != 0) {
            return true;
        }
    }
    return false;
}

bool may_be_used_by_others(int file) {
    struct ::stat found {};
    if (::fstat(file, &found) != 0 || (found.st_mode & S_IRWXO) != 0) {
        return true;
    }
    return (found.st_mode & S_IRWXG) != 0 && acl_lets_others_in(file).value_or(true);
}

/// The last reading found the end of the file. Its error is gone then.
bool is_end_of_file() {
    const auto code = ERR_peek_last_error();
    if (ERR_GET_LIB(code) != ERR_LIB_PEM || ERR_GET_REASON(code) != PEM_R_NO_START_LINE) {
        return false;
    }
    ERR_clear_error();
    return true;
}

}  // namespace

std::string openssl_reason() {
    const auto code = ERR_peek_last_error();
    const auto* reason = ERR_reason_error_string(code);
    ERR_clear_error();
    return reason != nullptr ? reason : "OpenSSL gives no reason";
}

pem_file::pem_file(std::string setting, std::string path, std::size_t limit)
    : setting_{std::move(setting)},
      path_{std::move(path)} {
    const auto cannot = [this](const std::string& why) {
        return std::runtime_error{setting_ + ": cannot read " + path_ + ": " + why};
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in{std::fopen(path_.c_str(), "rbe"),
                                                             &std::fclose};
    if (!in) {
        throw cannot(std::strerror(errno));
    }
    open_to_others_ = may_be_used_by_others(::fileno(in.get()));
    struct ::stat found {};
    const bool known = ::fstat(::fileno(in.get()), &found) == 0;
    std::setvbuf(in.get(), nullptr, _IONBF, 0);  // no copy that nobody wipes
    // One block, since one that grew would leave parts behind.
    const auto stated = known && S_ISREG(found.st_mode) ? static_cast<std::size_t>(found.st_size)
                                                        : limit;
    bytes_.resize(std::clamp(stated, usual_limit, limit) + 1);
    const auto size = std::fread(bytes_.data(), 1, bytes_.size(), in.get());
    if (std::ferror(in.get()) != 0) {
        throw cannot(std::strerror(errno));
    }
    if (size > limit) {
        throw cannot("larger than " + std::to_string(limit >> 20) + " MiB");
    }
    if (size == bytes_.size()) {
        throw cannot("it grew while it was read");
    }
    bio_.reset(BIO_new_mem_buf(bytes_.data(), static_cast<int>(size)));
    if (!bio_) {
        throw std::bad_alloc{};
    }
}

pem_file::~pem_file() {
    OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

std::vector<certificate_ptr> pem_file::certificates() {
    ERR_clear_error();
    std::vector<certificate_ptr> all;
    all.emplace_back(PEM_read_bio_X509_AUX(bio_.get(), nullptr, no_passphrase, nullptr));
    if (!all.front()) {
        throw std::runtime_error{setting_ + ": no PEM certificate in " + path_ + ": " +
                                 openssl_reason()};
    }
    for (;;) {
        certificate_ptr next{PEM_read_bio_X509(bio_.get(), nullptr, no_passphrase, nullptr)};
        if (!next) {
            if (is_end_of_file()) {
                return all;
            }
            throw std::runtime_error{setting_ + ": a further certificate in " + path_ +
                                     " is not PEM: " + openssl_reason()};
        }
        all.push_back(std::move(next));
    }
}

std::vector<revocation_list_ptr> pem_file::revocation_lists() {
    ERR_clear_error();
    std::vector<revocation_list_ptr> all;
    for (;;) {
        revocation_list_ptr next{
            PEM_read_bio_X509_CRL(bio_.get(), nullptr, no_passphrase, nullptr)};
        if (!next) {
            if (!all.empty() && is_end_of_file()) {
                return all;
            }
            throw std::runtime_error{setting_ + ": " + (all.empty() ? "no" : "a further") +
                                     " PEM revocation list in " + path_ + ": " + openssl_reason()};
        }
        all.push_back(std::move(next));
    }
}

private_key_ptr pem_file::key() {
    const wiping_what_is_freed secrets;
    private_key_ptr found{PEM_read_bio_PrivateKey(bio_.get(), nullptr, no_passphrase, nullptr)};
    if (!found) {
        ERR_clear_error();  // what is there depends on which decoder was tried last
        throw std::runtime_error{setting_ + ": no PEM private key without a passphrase in " +
                                 path_};
    }
    return found;
}

}  // namespace reprise::proxy::net
