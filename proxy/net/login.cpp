#include "proxy/net/login.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <utility>

namespace reprise::proxy::net {

namespace {

using hash_key = std::array<unsigned char, 16>;

// Null: there are no random numbers.
const hash_key* process_key() noexcept {
    static hash_key key{};
    static const bool is_random = RAND_bytes(key.data(), static_cast<int>(key.size())) == 1;
    return is_random ? &key : nullptr;
}

bool begins_with_scheme(std::string_view& value, std::string_view scheme) {
    const auto alike = [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    };
    if (value.size() <= scheme.size() || value[scheme.size()] != ' ' ||
        !std::equal(scheme.begin(), scheme.end(), value.begin(), [&](char of, char has) {
            return alike(has, of);
        })) {
        return false;
    }
    value.remove_prefix(scheme.size());
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return true;
}

bool is_base64(char c) noexcept {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

std::optional<std::string> decoded(std::string_view base64) {
    const auto padding = base64.size() - std::min(base64.find_last_not_of('=') + 1, base64.size());
    const auto digits = base64.substr(0, base64.size() - padding);
    if (base64.empty() || base64.size() % 4 != 0 || padding > 2 ||
        !std::all_of(digits.begin(), digits.end(), is_base64)) {
        return std::nullopt;
    }
    std::string out(base64.size() / 4 * 3, '\0');
    if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(base64.data()),
                        static_cast<int>(base64.size())) < 0) {
        return std::nullopt;
    }
    out.resize(out.size() - padding);
    return out;
}

// RFC 6750 2.1: b64token.
bool is_token_character(char c) noexcept {
    return is_base64(c) || c == '-' || c == '.' || c == '_' || c == '~' || c == '=';
}

}  // namespace

std::optional<login> read_login(std::string_view value) {
    if (value.size() > most_of_login) {
        return std::nullopt;
    }
    if (begins_with_scheme(value, "bearer")) {
        return !value.empty() && std::all_of(value.begin(), value.end(), is_token_character)
                   ? std::optional{login{true, {}, std::string{value}}}
                   : std::nullopt;
    }
    if (!begins_with_scheme(value, "basic")) {
        return std::nullopt;
    }
    auto text = decoded(value);
    const auto colon = text ? text->find(':') : std::string::npos;
    if (colon == std::string::npos || text->find('\0') != std::string::npos) {
        return std::nullopt;
    }
    login out{false, text->substr(0, colon), text->substr(colon + 1)};
    OPENSSL_cleanse(text->data(), text->size());
    return out;
}

struct login_hasher::context {
    EVP_MAC* mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
    EVP_MAC_CTX* state = mac != nullptr ? EVP_MAC_CTX_new(mac) : nullptr;
    context() = default;
    context(const context&) = delete;
    context& operator=(const context&) = delete;
    ~context() {
        EVP_MAC_CTX_free(state);
        EVP_MAC_free(mac);
    }
};

login_hasher::login_hasher() : context_{std::make_unique<context>()} {
    auto bytes = sizeof(login_hash);
    const OSSL_PARAM size[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &bytes),
                               OSSL_PARAM_construct_end()};
    if (context_->state != nullptr && EVP_MAC_CTX_set_params(context_->state, size) != 1) {
        EVP_MAC_CTX_free(std::exchange(context_->state, nullptr));
    }
}

login_hasher::~login_hasher() = default;

std::optional<login_hash> login_hasher::operator()(std::string_view value) noexcept {
    const auto* const key = process_key();
    std::array<unsigned char, sizeof(login_hash)> bytes{};
    std::size_t size = 0;
    if (key == nullptr || context_->state == nullptr ||
        EVP_MAC_init(context_->state, key->data(), key->size(), nullptr) != 1 ||
        EVP_MAC_update(context_->state,
                       reinterpret_cast<const unsigned char*>(value.data()),
                       value.size()) != 1 ||
        EVP_MAC_final(context_->state, bytes.data(), &size, bytes.size()) != 1 ||
        size != bytes.size()) {
        return std::nullopt;
    }
    login_hash out;
    std::memcpy(&out.low, bytes.data(), sizeof out.low);
    std::memcpy(&out.high, bytes.data() + sizeof out.low, sizeof out.high);
    return out;
}

}  // namespace reprise::proxy::net
