#include "proxy/admin/admin_gate.hpp"

#include "proxy/base/file_content.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <utility>

namespace reprise::proxy::admin {

namespace {

constexpr std::size_t longest_token = 4096;

char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower_case(std::string_view text) {
    std::string out{text};
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

struct host_and_port {
    std::string host;
    std::string port;
    bool valid = false;
};

// "name", "name:port", "[literal]", "[literal]:port"; an IPv6 literal in its shortest form.
host_and_port split_authority(std::string_view authority) {
    host_and_port split;
    auto host = authority;
    if (authority.starts_with('[')) {
        const auto end = authority.find(']');
        if (end == std::string_view::npos) {
            return split;
        }
        host = authority.substr(1, end - 1);
        auto rest = authority.substr(end + 1);
        if (!rest.empty() && rest.front() != ':') {
            return split;
        }
        split.port = rest.empty() ? "" : std::string{rest.substr(1)};
    } else if (const auto colon = authority.find(':'); colon != std::string_view::npos) {
        host = authority.substr(0, colon);
        split.port = std::string{authority.substr(colon + 1)};
    }
    split.host = lower_case(host);
    boost::system::error_code no_literal;
    const auto literal = boost::asio::ip::make_address(split.host, no_literal);
    if (!no_literal) {
        split.host = literal.to_string();
    }
    split.valid = !split.host.empty();
    return split;
}

bool is_space(char c) noexcept {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && is_space(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_space(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

}  // namespace

admin_gate::admin_gate(const config::admin_options& options) {
    for (const auto& name : options.host_names) {
        auto split = split_authority(name);
        if (split.valid) {
            names_.push_back({std::move(split.host), std::move(split.port)});
        }
    }
    if (options.token_file.empty()) {
        token_problem_ =
            "no token is set: name a file that holds one in admin.token_file; or ask over the Unix "
            "socket, which needs none: name it in admin.socket (\"auto\" makes one only where a "
            "service manager gives the program a runtime directory)";
        return;
    }
    auto file = read_regular_file(options.token_file, longest_token);
    const auto token = trimmed(file.bytes);
    if (!file.wrong.empty()) {
        file_problem_ = std::move(file.wrong);
    } else if (token.empty()) {
        file_problem_ = "is empty";
    } else {
        token_ = digest_of(token);
    }
    if (!file_problem_.empty()) {
        token_problem_ = "admin.token_file: " + options.token_file + " " + file_problem_;
    }
    OPENSSL_cleanse(file.bytes.data(), file.bytes.size());
}

bool admin_gate::is_own_host(std::string_view authority,
                             const boost::asio::ip::tcp::endpoint& local) const {
    const auto asked = split_authority(authority);
    if (!asked.valid) {
        return false;
    }
    const auto named = [&](const own_name& name) {
        return name.host == asked.host && (name.port.empty() || name.port == asked.port);
    };
    if (std::any_of(names_.begin(), names_.end(), named)) {
        return true;
    }
    const auto port = std::to_string(local.port());
    if (asked.port != port && !(asked.port.empty() && local.port() == 80)) {
        return false;
    }
    auto address = local.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
        address = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
    }
    return asked.host == "localhost" || asked.host == "127.0.0.1" || asked.host == "::1" ||
           asked.host == address.to_string();
}

bool admin_gate::is_cross_site(std::string_view origin,
                               std::string_view sec_fetch_site,
                               const boost::asio::ip::tcp::endpoint& local) const {
    // "same-site" is another port or a sibling name: not us either. "none" is the address bar.
    if (!sec_fetch_site.empty() && sec_fetch_site != "same-origin" && sec_fetch_site != "none") {
        return true;
    }
    if (origin.empty()) {
        return false;
    }
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (origin.starts_with(scheme)) {
            return !is_own_host(origin.substr(scheme.size()), local);
        }
    }
    return true;  // "null": a sandboxed frame or a file
}

admin_gate::token_verdict admin_gate::check_token(std::string_view authorization) const {
    if (!token_problem_.empty()) {
        return token_verdict::none_set;
    }
    constexpr std::string_view scheme = "bearer ";
    if (lower_case(authorization.substr(0, scheme.size())) != scheme) {
        return token_verdict::wrong;
    }
    // Digests, so that neither the length nor a common beginning shows in the time.
    const auto given = digest_of(trimmed(authorization.substr(scheme.size())));
    return CRYPTO_memcmp(given.data(), token_.data(), given.size()) == 0 ? token_verdict::right
                                                                         : token_verdict::wrong;
}

admin_gate::digest admin_gate::digest_of(std::string_view text) {
    digest out{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
    return out;
}

}  // namespace reprise::proxy::admin
