#include "proxy/peer/credentials.hpp"

#include "proxy/base/file_content.hpp"

#include <algorithm>
#include <array>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdexcept>
#include <utility>

namespace reprise::proxy::peer {

credentials_reading read_credentials(std::string_view content) {
    if (content.ends_with('\n')) {
        content.remove_suffix(1);
        if (content.ends_with('\r')) {
            content.remove_suffix(1);
        }
    }
    if (content.size() > most_credentials) {
        return {.wrong = "holds more than 1024 bytes"};
    }
    if (content.find(':') == content.npos) {
        return {.wrong = "does not hold user:password"};
    }
    const bool one_line = std::none_of(
        content.begin(), content.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (!one_line) {
        return {.wrong = "holds more than one line, or control characters"};
    }
    std::array<unsigned char, (most_credentials + 2) / 3 * 4 + 1> text;  // and its NUL
    const auto size = EVP_EncodeBlock(text.data(),
                                      reinterpret_cast<const unsigned char*>(content.data()),
                                      static_cast<int>(content.size()));
    credentials_reading out{.value = "Basic "};
    out.value.append(text.begin(), text.begin() + size);
    OPENSSL_cleanse(text.data(), text.size());
    return out;
}

credentials_reading load_credentials(const std::string& path) {
    auto file = read_regular_file(path,
                                  4 * most_credentials);  // whose content says how much it may be
    auto out = file.wrong.empty() ? read_credentials(file.bytes)
                                  : credentials_reading{.wrong = std::move(file.wrong)};
    OPENSSL_cleanse(file.bytes.data(), file.bytes.size());
    return out;
}

parent_credentials load_all_credentials(std::span<const config::peer_options> peers) {
    parent_credentials out;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const auto& path = peers[i].credentials_file;
        if (path.empty()) {
            continue;
        }
        auto read = load_credentials(path);
        if (!read.wrong.empty()) {
            throw std::runtime_error{"peers[" + std::to_string(i) + "].credentials_file: " + path +
                                     " " + read.wrong};
        }
        out.emplace(peers[i].name, std::move(read.value));
    }
    return out;
}

}  // namespace reprise::proxy::peer
