#include "tools/make_ca/authority_files.hpp"

#include "tools/make_ca/authorities.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <stdexcept>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace reprise::make_ca {
namespace {

namespace fs = std::filesystem;
using proxy::net::pem_file;

constexpr ::mode_t for_all = 0644;
constexpr ::mode_t for_owner = 0600;

std::runtime_error cannot(const std::string& path, const char* why) {
    return std::runtime_error{path + ": " + why};
}

/// A new file, gone again unless it is kept. In place of another it stands beside that until then, and has its
/// owner and mode: whoever could read that one, a service's user say, can read this one.
class new_file {
public:
    new_file(const std::string& path, ::mode_t mode, bool renews)
        : final_{path},
          path_{renews ? path + ".new" : path} {
        if (renews) {
            ::unlink(path_.c_str());  // what an earlier try that was killed has left
        }
        descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (descriptor_ < 0 && errno == EEXIST) {
            throw cannot(path_, "is there already, and nothing is written over: move it away");
        }
        if (descriptor_ < 0) {
            throw cannot(path_, std::strerror(errno));
        }
        struct ::stat other {};
        if (renews && ::stat(final_.c_str(), &other) == 0 && S_ISREG(other.st_mode)) {
            if (const auto why = take_after(other); !why.empty()) {
                drop();
                throw cannot(final_, why.c_str());
            }
        }
    }
    ~new_file() { drop(); }
    new_file(const new_file&) = delete;
    new_file& operator=(const new_file&) = delete;

    void write(std::string_view text) {
        while (!text.empty()) {
            const auto count = ::write(descriptor_, text.data(), text.size());
            if (count < 0 && errno != EINTR) {
                throw cannot(path_, std::strerror(errno));
            }
            text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
        }
        if (::fsync(descriptor_) != 0) {
            throw cannot(path_, std::strerror(errno));
        }
    }
    void keep() {
        const bool renews = path_ != final_;
        if (renews) {
            // Under a second name, so that there is a way back, where the file system has such.
            ::unlink(before().c_str());
            had_one_ = ::link(final_.c_str(), before().c_str()) == 0;
            had_none_ = !had_one_ && errno == ENOENT;
        }
        if (renews && ::rename(path_.c_str(), final_.c_str()) != 0) {
            const auto why = errno;
            forget_before();
            throw cannot(final_, std::strerror(why));
        }
        ::close(descriptor_);
        descriptor_ = -1;
    }
    /// What was there before it was kept is there again.
    void take_back() noexcept {
        if (had_one_) {
            ::rename(before().c_str(), final_.c_str());
        } else if (had_none_) {
            ::unlink(final_.c_str());
        }
    }
    void forget_before() noexcept {
        if (had_one_) {
            ::unlink(before().c_str());
        }
    }

private:
    [[nodiscard]] std::string before() const { return final_ + ".before-renewal"; }

    /// The owner first: giving a file away takes bits of its mode. Nothing is written so far. Empty: well.
    [[nodiscard]] std::string take_after(const struct ::stat& other) const {
        struct ::stat mine {};
        if (::fstat(descriptor_, &mine) != 0) {
            return std::strerror(errno);
        }
        const bool is_theirs = mine.st_uid == other.st_uid && mine.st_gid == other.st_gid;
        if (!is_theirs && ::fchown(descriptor_, other.st_uid, other.st_gid) != 0) {
            return std::string{"its owner and group can't be kept: "} + std::strerror(errno);
        }
        if (::fchmod(descriptor_, other.st_mode & 0777u) != 0) {
            return std::string{"its mode can't be kept: "} + std::strerror(errno);
        }
        return {};
    }
    void drop() noexcept {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
            ::unlink(path_.c_str());
            descriptor_ = -1;
        }
    }

    std::string final_, path_;
    int descriptor_ = -1;
    bool had_one_ = false, had_none_ = false;
};

bool is_one_file(const written& both) {
    std::error_code unknown, unknown_too;
    const auto certificate = fs::weakly_canonical(both.certificate, unknown);
    const auto key = fs::weakly_canonical(both.key, unknown_too);
    return (!unknown && !unknown_too && certificate == key) ||
           fs::equivalent(both.certificate, both.key, unknown);
}

/// In PEM; wiped when it goes.
class pem_text {
public:
    ~pem_text() { BIO_free(out_); }
    pem_text() = default;
    pem_text(const pem_text&) = delete;
    pem_text& operator=(const pem_text&) = delete;

    void add(X509* certificate) { must(PEM_write_bio_X509(out_, certificate)); }
    void add(EVP_PKEY* key) {
        must(PEM_write_bio_PKCS8PrivateKey(out_, key, nullptr, nullptr, 0, nullptr, nullptr));
    }
    [[nodiscard]] std::string_view text() const {
        char* at = nullptr;
        const auto size = BIO_get_mem_data(out_, &at);
        return {at, static_cast<std::size_t>(size)};
    }

private:
    static void must(int well) {
        if (well != 1) {
            throw std::runtime_error{"OpenSSL cannot write PEM: " + proxy::net::openssl_reason()};
        }
    }
    BIO* out_ = BIO_new(BIO_s_secmem());  // of a kind that wipes what it frees
};

/// @param above  its certificate goes behind; null: none does
void write(const written& to, const authority& made, X509* above, bool renews) {
    if (is_one_file(to)) {
        throw cannot(to.key, "is to be the certificate's file and the key's: write two");
    }
    new_file certificate{to.certificate, for_all, renews};
    new_file key{to.key, for_owner, renews};
    pem_text chain;
    chain.add(made.certificate.get());
    if (above != nullptr) {
        chain.add(above);
    }
    certificate.write(chain.text());
    pem_text secret;
    secret.add(made.key.get());
    key.write(secret.text());
    key.keep();
    try {
        certificate.keep();
    } catch (...) {
        key.take_back();
        throw;
    }
    key.forget_before();
    certificate.forget_before();
}

void make_directory(const std::string& path) {
    std::error_code error;
    const auto parent = fs::path{path}.parent_path();
    if (!parent.empty()) {
        fs::create_directories(parent, error);
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        throw cannot(path, std::strerror(errno));
    }
}

authority read_root(const std::string& directory) {
    const auto path = [&](const char* name) { return (fs::path{directory} / name).string(); };
    authority root{std::move(pem_file{"--root", path("root.pem")}.certificates().front()),
                   pem_file{"--root", path("root.key")}.key()};
    if (X509_check_private_key(root.certificate.get(), root.key.get()) != 1) {
        throw cannot(path("root.key"), "is not the key of root.pem beside it");
    }
    return root;
}

}  // namespace

written write_root(const std::string& directory, proxy::wall_time now) {
    make_directory(directory);
    written to{(fs::path{directory} / "root.pem").string(),
               (fs::path{directory} / "root.key").string()};
    write(to, make_root(now), nullptr, false);
    return to;
}

written write_intermediate(const config::intercept_options& for_settings,
                           const wishes& wanted,
                           proxy::wall_time now) {
    const auto root = read_root(wanted.root);
    written to{for_settings.ca_certificate, for_settings.ca_key};
    if (!wanted.out.empty()) {
        make_directory(wanted.out);
        to = {(fs::path{wanted.out} / "ca.pem").string(),
              (fs::path{wanted.out} / "ca.key").string()};
    }
    const auto made = make_intermediate(root, for_settings.hosts, wanted.lifetime, now);
    write(to, made, root.certificate.get(), wanted.renews);
    return to;
}

}  // namespace reprise::make_ca
