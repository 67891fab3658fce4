#include "proxy/peer/secret.hpp"

#include "proxy/base/file_content.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <optional>
#include <utility>

// A key for hashing is made of whatever content there is, of none too; keys for signing only of a
// file's. What has held a key for signing, or the file's content, is overwritten before its memory
// goes.

namespace reprise::proxy::peer {
namespace {

// Each use of the secret has a label of its own; a new version of one gets a new one.
constexpr std::string_view hashing_label{"reprise digest hash seed, version 1"};
constexpr std::string_view old_signing_label{"reprise request signature, version 1"};
constexpr std::string_view message_signing_label{"reprise http message signature, version 1"};

// HMAC-SHA256 as one thread makes it. To look the two up and to take their memory for each code would
// cost several times what the code does. A key is two blocks that are hashed first, a third of a code
// that is short: where it is the one of before, its state is gone back to.
struct hmac_state {
    EVP_MAC* mac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
    EVP_MAC_CTX* state = mac != nullptr ? EVP_MAC_CTX_new(mac) : nullptr;

    hmac_state() {
        std::array<char, 7> digest{"SHA256"};
        const OSSL_PARAM by[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
            OSSL_PARAM_construct_end()};
        if (state != nullptr && EVP_MAC_CTX_set_params(state, by) != 1) {
            EVP_MAC_CTX_free(std::exchange(state, nullptr));
        }
    }
    ~hmac_state() {
        OPENSSL_cleanse(key.data(), key.size());
        EVP_MAC_CTX_free(state);
        EVP_MAC_free(mac);
    }
    hmac_state(const hmac_state&) = delete;
    hmac_state& operator=(const hmac_state&) = delete;

    [[nodiscard]] bool begin(std::span<const std::byte> with) noexcept {
        // Before 3.0.3 that says it has done so, and has not.
        static const bool goes_back = OpenSSL_version_num() >= 0x30000030L;
        if (goes_back && has_key && std::equal(with.begin(), with.end(), key.begin(), key.end())) {
            return EVP_MAC_init(state, nullptr, 0, nullptr) == 1;
        }
        const auto* const bytes = reinterpret_cast<const unsigned char*>(with.data());
        const bool begun = EVP_MAC_init(state, bytes, with.size(), nullptr) == 1;
        has_key = begun && with.size() == key.size();
        if (has_key) {
            std::copy(with.begin(), with.end(), key.begin());
        }
        return begun;
    }

    std::array<std::byte, 32> key{};
    bool has_key = false;
};

// Boost's category has a protected destructor that is not virtual: nobody deletes one by its base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class secret_category_type final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "reprise.secret"; }
    [[nodiscard]] std::string message(int code) const override {
        switch (static_cast<secret_errc>(code)) {
        case secret_errc::unreadable: return "the secret file can't be read";
        case secret_errc::too_short: return "the secret file has fewer than 32 bytes";
        case secret_errc::too_long: return "the secret file has more than 4096 bytes";
        }
        return "unknown error";
    }
};
#pragma GCC diagnostic pop

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text.data(), text.size()});
}

// libcrypto takes what it only reads by a pointer to void that is not const.
OSSL_PARAM octets(const char* name, std::span<const std::byte> bytes) {
    static std::byte none{};
    auto* const data = bytes.empty() ? &none : const_cast<std::byte*>(bytes.data());  // NOLINT
    return OSSL_PARAM_construct_octet_string(name, data, bytes.size());
}

}  // namespace

const boost::system::error_category& secret_category() noexcept {
    static const secret_category_type category;
    return category;
}

boost::system::error_code make_error_code(secret_errc code) noexcept {
    return {static_cast<int>(code), secret_category()};
}

void hkdf_sha256(std::span<const std::byte> secret,
                 std::span<const std::byte> salt,
                 std::span<const std::byte> info,
                 std::span<std::byte> out) {
    const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf{
        EVP_KDF_fetch(nullptr, "HKDF", nullptr), &EVP_KDF_free};
    const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context{
        kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr, &EVP_KDF_CTX_free};
    char hash[] = "SHA256";
    const std::array parameters{
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, hash, 0),
        octets(OSSL_KDF_PARAM_KEY, secret),
        octets(OSSL_KDF_PARAM_SALT, salt),
        octets(OSSL_KDF_PARAM_INFO, info),
        OSSL_PARAM_construct_end(),
    };
    auto* const to = reinterpret_cast<unsigned char*>(out.data());
    // Every provider of libcrypto has HKDF and SHA-256: what fails here is memory.
    if (!context || EVP_KDF_derive(context.get(), to, out.size(), parameters.data()) != 1) {
        throw std::bad_alloc{};
    }
}

std::array<std::byte, 32> hmac_sha256(std::span<const std::byte> key,
                                      std::span<const std::byte> text) {
    thread_local std::optional<hmac_state> made;
    if (!made || made->state == nullptr) {
        made.emplace();  // again, where there was no memory for it
    }
    auto& by = *made;
    std::array<std::byte, 32> out{};
    std::size_t size = 0;
    if (by.state == nullptr || key.empty() || !by.begin(key) ||
        EVP_MAC_update(
            by.state, reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1 ||
        EVP_MAC_final(by.state, reinterpret_cast<unsigned char*>(out.data()), &size, out.size()) !=
            1 ||
        size != out.size()) {
        throw std::bad_alloc{};
    }
    return out;
}

fleet_secret::fleet_secret(std::span<const std::byte> content, bool has_file)
    : hashing_{[content] {
          filter::hash_seed seed{};
          hkdf_sha256(content, {}, bytes_of(hashing_label), seed);
          return filter::hash_secret::from_seed(seed);
      }()},
      id_{filter::identify(hashing_.seed())},
      has_file_{has_file} {
    if (has_file) {
        hkdf_sha256(content, {}, bytes_of(old_signing_label), old_signing_);
        hkdf_sha256(content, {}, bytes_of(message_signing_label), message_signing_);
    }
}

fleet_secret::~fleet_secret() {
    OPENSSL_cleanse(old_signing_.data(), old_signing_.size());
    OPENSSL_cleanse(message_signing_.data(), message_signing_.size());
}

boost::system::result<fleet_secret> fleet_secret::from_content(std::string_view content) {
    if (content.ends_with('\n')) {
        content.remove_suffix(1);
        if (content.ends_with('\r')) {
            content.remove_suffix(1);
        }
    }
    if (content.size() < least_secret) {
        return make_error_code(secret_errc::too_short);
    }
    if (content.size() > most_secret) {
        return make_error_code(secret_errc::too_long);
    }
    return fleet_secret{bytes_of(content), true};
}

fleet_secret fleet_secret::none() {
    return fleet_secret{{}, false};
}

boost::system::result<fleet_secret> load_secret(const std::string& path) {
    auto file = read_regular_file(path, most_secret + 2);  // a line end more
    if (!file.wrong.empty()) {
        return make_error_code(file.is_too_long ? secret_errc::too_long : secret_errc::unreadable);
    }
    auto made = fleet_secret::from_content(file.bytes);
    OPENSSL_cleanse(file.bytes.data(), file.bytes.size());
    return made;
}

url_name name_of(std::string_view url, const fleet_secret& secret) noexcept {
    return filter::hash_of(url, secret.hashing()).low;
}

filter::key_hash key_of(url_name name, const fleet_secret& secret) noexcept {
    std::array<char, sizeof name> text;
    for (std::size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<char>(name >> (8 * i));  // little-endian, on every machine
    }
    return filter::hash_of({text.data(), text.size()}, secret.hashing());
}

}  // namespace reprise::proxy::peer
