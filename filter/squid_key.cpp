// See squid_key.hpp.

#include "filter/squid_key.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <memory>
#include <new>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

namespace reprise::filter {

namespace {

struct scheme_port {
    std::string_view scheme;
    std::string_view port;
};
constexpr std::array default_ports{
    scheme_port{"http", "80"}, scheme_port{"https", "443"}, scheme_port{"ftp", "21"}};

void append_lower(std::string& out, std::string_view text) {
    std::transform(text.begin(), text.end(), std::back_inserter(out), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
}

/// Where the port's colon is, or the end of the text. An IPv6 literal has colons in its brackets.
std::size_t end_of_host(std::string_view host_and_port) noexcept {
    const auto bracket = host_and_port.rfind(']');
    const auto from = bracket == std::string_view::npos ? 0 : bracket;
    return std::min(host_and_port.find(':', from), host_and_port.size());
}

bool is_default_port(std::string_view scheme, std::string_view port) noexcept {
    port.remove_prefix(std::min(port.find_first_not_of('0'), port.size()));
    return std::any_of(default_ports.begin(), default_ports.end(), [&](const scheme_port& known) {
        return known.scheme == scheme && known.port == port;
    });
}

// Where OpenSSL's configuration activates the FIPS provider alone, the program's own library
// context has no MD5. Here it names things and protects nothing, so a context of its own, which no
// configuration reaches, has the default provider; it lives as long as the program.
const EVP_MD* fetch_md5() {
    auto* const context = OSSL_LIB_CTX_new();
    const bool has_provider = context != nullptr &&
                              OSSL_PROVIDER_load(context, "default") != nullptr;
    const auto* const found = has_provider ? EVP_MD_fetch(context, "MD5", nullptr) : nullptr;
    if (found == nullptr) {
        throw std::bad_alloc{};
    }
    return found;
}

struct free_context {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

}  // namespace

std::string squid_url(std::string_view url) {
    const auto scheme_end = url.find("://");
    if (scheme_end == std::string_view::npos ||
        url.find_first_of("/?#") < scheme_end) {  // "://" of a query is no scheme's
        return std::string{url};
    }
    std::string out;
    out.reserve(url.size() + 1);
    append_lower(out, url.substr(0, scheme_end));
    const std::string scheme = out;
    out += "://";

    auto rest = url.substr(scheme_end + 3);
    const auto authority = rest.substr(0, rest.find_first_of("/?#"));
    rest.remove_prefix(authority.size());
    const auto user_end = authority.rfind('@');
    const auto host_begin = user_end == std::string_view::npos ? 0 : user_end + 1;
    out += authority.substr(0, host_begin);
    const auto host_and_port = authority.substr(host_begin);

    const auto host_end = end_of_host(host_and_port);
    auto host = host_and_port.substr(0, host_end);
    while (host.ends_with('.')) {
        host.remove_suffix(1);
    }
    append_lower(out, host);
    const auto port = host_and_port.substr(host_end);  // with its colon, or empty
    if (port.size() > 1 && !is_default_port(scheme, port.substr(1))) {
        out += port;
    }
    if (!rest.starts_with('/')) {
        out += '/';
    }
    return out += rest;
}

squid_key squid_raw_key(std::string_view url, squid_method method, std::string_view vary_mark) {
    static const EVP_MD* const md5 = fetch_md5();
    const std::unique_ptr<EVP_MD_CTX, free_context> sum{EVP_MD_CTX_new()};
    squid_key key{};
    const auto method_byte = static_cast<unsigned char>(method);
    if (!sum || EVP_DigestInit_ex2(sum.get(), md5, nullptr) != 1 ||
        EVP_DigestUpdate(sum.get(), &method_byte, 1) != 1 ||
        EVP_DigestUpdate(sum.get(), url.data(), url.size()) != 1 ||
        EVP_DigestUpdate(sum.get(), vary_mark.data(), vary_mark.size()) != 1 ||
        EVP_DigestFinal_ex(sum.get(), reinterpret_cast<unsigned char*>(key.data()), nullptr) != 1) {
        throw std::bad_alloc{};  // nothing else can fail in it
    }
    return key;
}

squid_key squid_key_of(std::string_view url) {
    return squid_raw_key(squid_url(url));
}

std::array<std::uint64_t, 4> squid_places(const squid_key& key, std::uint64_t bits) noexcept {
    assert(bits > 0);
    std::array<std::uint64_t, 4> places{};
    for (std::size_t i = 0; i < places.size(); ++i) {
        std::uint64_t word = 0;
        for (std::size_t byte = 0; byte < 4; ++byte) {
            word = word << 8 | std::to_integer<std::uint64_t>(key[4 * i + byte]);
        }
        places[i] = word % bits;
    }
    return places;
}

}  // namespace reprise::filter
