#include "proxy/net/proxy_protocol.hpp"

#include <algorithm>
#include <cstdint>

// The header's fields, each at its place; numbers are in network order.

namespace reprise::proxy::net {

namespace {

constexpr std::string_view signature{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::size_t ipv4_addresses = 12, ipv6_addresses = 36;

std::uint8_t octet_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint8_t>(text[at]);
}

std::uint16_t number_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint16_t>(octet_at(text, at) << 8 | octet_at(text, at + 1));
}

template <class Address>
asio::ip::address address_in(std::string_view rest) noexcept {
    typename Address::bytes_type bytes;
    std::copy_n(rest.begin(), bytes.size(), bytes.begin());
    return Address{bytes};
}

}  // namespace

std::optional<std::size_t> proxy_rest(std::string_view head) noexcept {
    if (head.size() < proxy_head_bytes || !head.starts_with(signature) ||
        octet_at(head, 12) >> 4 != 2) {
        return std::nullopt;
    }
    const std::size_t rest = number_at(head, 14);
    return rest <= most_proxy_rest ? std::optional{rest} : std::nullopt;
}

std::optional<fronted> read_proxy_header(std::string_view whole) noexcept {
    const auto size = proxy_rest(whole);
    if (!size || whole.size() != proxy_head_bytes + *size) {
        return std::nullopt;
    }
    const auto rest = whole.substr(proxy_head_bytes);
    const unsigned command = octet_at(whole, 12) & 0xf, family = octet_at(whole, 13) >> 4,
                   transport = octet_at(whole, 13) & 0xf;
    constexpr unsigned local = 0, proxied = 1, stream = 1;
    constexpr unsigned unspecified = 0, ipv4 = 1, ipv6 = 2, local_socket = 3;
    if (command == local) {
        return fronted{};
    }
    if (command != proxied) {
        return std::nullopt;
    }
    if (family == unspecified || (family == local_socket && transport == stream)) {
        return fronted{};
    }
    if (transport != stream) {
        return std::nullopt;
    }
    if (family == ipv4 && rest.size() >= ipv4_addresses) {
        return fronted{tcp::endpoint{address_in<asio::ip::address_v4>(rest), number_at(rest, 8)}};
    }
    if (family == ipv6 && rest.size() >= ipv6_addresses) {
        return fronted{tcp::endpoint{address_in<asio::ip::address_v6>(rest), number_at(rest, 32)}};
    }
    return std::nullopt;
}

}  // namespace reprise::proxy::net
