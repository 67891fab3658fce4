#include "proxy/net/address.hpp"

#include <algorithm>
#include <charconv>
#include <string>

// The tables and the arithmetic of addresses: what is special about which, IPv4 in IPv6, and the
// spellings of a numeric host.

namespace reprise::proxy::net {
namespace {

constexpr address_bytes mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr address_bytes translated_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr address_bytes nat64_prefix{0x00, 0x64, 0xff, 0x9b};
constexpr address_bytes local_nat64_prefix{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01};
constexpr address_bytes teredo_prefix{0x20, 0x01, 0x00, 0x00};
constexpr address_bytes discard_prefix{0x01, 0x00};
constexpr address_bytes dummy_prefix{0x01, 0x00, 0, 0, 0, 0, 0x00, 0x01};
constexpr std::array metadata_v6{
    address_bytes{0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54},  // AWS
    address_bytes{0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x23},  // its EKS
    address_bytes{0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54},  // Google
    address_bytes{0xfd, 0x00, 0x00, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x42},  // Scaleway
};

bool starts_with(const address_bytes& bytes, const address_bytes& prefix, std::size_t length) {
    return std::equal(
        prefix.begin(), prefix.begin() + static_cast<std::ptrdiff_t>(length), bytes.begin());
}

address_bytes mapped(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    auto bytes = mapped_prefix;
    bytes[12] = a;
    bytes[13] = b;
    bytes[14] = c;
    bytes[15] = d;
    return bytes;
}

bool is_ipv4(const address_bytes& bytes) {
    return starts_with(bytes, mapped_prefix, 12);
}

void add(address_forms& forms, const address_bytes& form) {
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) {
        forms.bytes[forms.count++] = form;
    }
}

address_kind kind_of_ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    const auto is = [=](unsigned w, unsigned x, unsigned y, unsigned z) {
        return a == w && b == x && c == y && d == z;
    };
    // Metadata before the networks that some of them lie in: they deserve their own name. In order:
    // nearly all clouds, AWS's containers and its EKS, Scaleway, Tencent, Alibaba, Azure, Oracle.
    if (is(169, 254, 169, 254) || is(169, 254, 170, 2) || is(169, 254, 170, 23) ||
        is(169, 254, 42, 42) || is(169, 254, 0, 23) || is(100, 100, 100, 200) ||
        is(168, 63, 129, 16) || is(192, 0, 0, 192)) {
        return address_kind::metadata;
    }
    if (a == 0) {
        return address_kind::unspecified;
    }
    if (a == 127) {
        return address_kind::loopback;
    }
    if (a == 169 && b == 254) {
        return address_kind::link_local;
    }
    if (a >= 224 && a < 240) {
        return address_kind::multicast;
    }
    if (is(255, 255, 255, 255)) {
        return address_kind::broadcast;
    }
    if (a >= 240 || (a == 192 && b == 0 && c == 0)) {
        return address_kind::reserved;
    }
    return address_kind::ordinary;
}

// One part of an IPv4 address as inet_aton(3) reads it: decimal, 0x hexadecimal, 0 octal.
std::optional<std::uint64_t> read_part(std::string_view text) {
    int base = 10;
    if (text.size() > 1 && text[0] == '0') {
        const bool is_hex = text[1] == 'x' || text[1] == 'X';
        base = is_hex ? 16 : 8;
        text.remove_prefix(is_hex ? 2 : 1);
        if (text.empty()) {
            return 0;  // "0x"
        }
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value}
                                                                    : std::nullopt;
}

}  // namespace

address_bytes canonical(const asio::ip::address& address) noexcept {
    if (address.is_v4()) {
        const auto four = address.to_v4().to_bytes();
        return mapped(four[0], four[1], four[2], four[3]);
    }
    return address.to_v6().to_bytes();
}

address_bytes place_of_client(address_bytes at) noexcept {
    if (!to_address(at).is_v4()) {
        std::fill(at.begin() + at.size() / 2, at.end(), std::uint8_t{0});
    }
    return at;
}

asio::ip::address to_address(const address_bytes& bytes) noexcept {
    if (is_ipv4(bytes)) {
        return asio::ip::address_v4{
            asio::ip::address_v4::bytes_type{{bytes[12], bytes[13], bytes[14], bytes[15]}}};
    }
    return asio::ip::address_v6{bytes};
}

std::string endpoint_text(const asio::ip::address& address, std::uint16_t port) {
    const auto plain = to_address(canonical(address));
    const auto host = plain.to_string();
    return (plain.is_v6() ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

bool contains(const config::network& network, const address_bytes& bytes) noexcept {
    const auto bits = std::min(network.prefix_bits, 128u);
    const auto whole = bits / 8;
    if (!starts_with(bytes, network.address, whole)) {
        return false;
    }
    const auto rest = bits % 8;
    if (rest == 0) {
        return true;
    }
    const auto mask = static_cast<std::uint8_t>(0xff00u >> rest);
    return (bytes[whole] & mask) == (network.address[whole] & mask);
}

address_forms forms_of(const address_bytes& bytes) noexcept {
    address_forms forms;
    add(forms, bytes);
    if (is_ipv4(bytes)) {
        return forms;
    }
    const auto embedded_at = [&](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
        add(forms, mapped(bytes[a], bytes[b], bytes[c], bytes[d]));
    };
    constexpr address_bytes zeros{};
    if (starts_with(bytes, zeros, 12)) {
        // :: and ::1 have meanings of their own; the rest of ::/96 is IPv4-compatible.
        if (bytes[12] != 0 || bytes[13] != 0 || bytes[14] != 0 || bytes[15] > 1) {
            embedded_at(12, 13, 14, 15);
        }
    } else if (starts_with(bytes, translated_prefix, 12) || starts_with(bytes, nat64_prefix, 12)) {
        embedded_at(12, 13, 14, 15);
    } else if (bytes[0] == 0x20 && bytes[1] == 0x02) {
        embedded_at(2, 3, 4, 5);
    } else if (starts_with(bytes, local_nat64_prefix, 6)) {
        // RFC 6052 2.2: byte 8 is always skipped.
        embedded_at(6, 7, 9, 10);     // a /48
        embedded_at(7, 9, 10, 11);    // a /56
        embedded_at(9, 10, 11, 12);   // a /64
        embedded_at(12, 13, 14, 15);  // a /96
    } else if (starts_with(bytes, teredo_prefix, 4)) {
        embedded_at(4, 5, 6, 7);  // its server
        const auto inverted = [&](std::size_t at) { return static_cast<std::uint8_t>(~bytes[at]); };
        add(forms, mapped(inverted(12), inverted(13), inverted(14), inverted(15)));
    }
    if ((bytes[8] & 0xfd) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe) {
        embedded_at(12, 13, 14, 15);  // ISATAP, whatever the prefix
    }
    return forms;
}

std::string_view to_string(address_kind kind) noexcept {
    switch (kind) {
    case address_kind::ordinary: return "an ordinary address";
    case address_kind::unspecified: return "the unspecified address";
    case address_kind::loopback: return "a loopback address";
    case address_kind::link_local: return "a link-local address";
    case address_kind::multicast: return "a multicast address";
    case address_kind::broadcast: return "the broadcast address";
    case address_kind::metadata: return "a cloud metadata address";
    case address_kind::reserved: return "a reserved address";
    }
    return "?";
}

address_kind kind_of(const address_bytes& bytes) noexcept {
    if (is_ipv4(bytes)) {
        return kind_of_ipv4(bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    if (std::find(metadata_v6.begin(), metadata_v6.end(), bytes) != metadata_v6.end()) {
        return address_kind::metadata;
    }
    constexpr address_bytes zeros{};
    if (starts_with(bytes, zeros, 15)) {
        if (bytes[15] == 0) {
            return address_kind::unspecified;
        }
        if (bytes[15] == 1) {
            return address_kind::loopback;
        }
    }
    if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) {
        return address_kind::link_local;
    }
    if (bytes[0] == 0xff) {
        return address_kind::multicast;
    }
    if (starts_with(bytes, discard_prefix, 8) || starts_with(bytes, dummy_prefix, 8) ||
        (bytes[0] == 0x5f && bytes[1] == 0)) {
        return address_kind::reserved;
    }
    return address_kind::ordinary;
}

std::optional<asio::ip::address> parse_numeric_host(std::string_view host) {
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
        if (host.find(':') == std::string_view::npos) {
            return std::nullopt;
        }
    }
    // Longer than any address, and no more than its digits, dots and colons: neither a scope nor
    // the many other spellings that system calls would read as an address.
    constexpr std::size_t longest = 45;
    if (host.empty() || host.size() > longest ||
        host.find_first_not_of("0123456789abcdefABCDEF.:") != std::string_view::npos) {
        return std::nullopt;
    }
    error_code error;
    const auto address = asio::ip::make_address(host, error);
    if (error) {
        return std::nullopt;
    }
    return to_address(canonical(address));
}

std::optional<asio::ip::address> read_numeric_host(std::string_view host) {
    if (host.ends_with('.')) {
        host.remove_suffix(1);
    }
    if (const auto plain = parse_numeric_host(host)) {
        return plain;
    }
    if (host.empty() || host.front() < '0' || host.front() > '9') {
        return std::nullopt;
    }
    // One to four parts, the last of which fills what the others leave of 32 bits.
    std::uint64_t address = 0;
    for (unsigned left = 32;;) {
        const auto dot = host.find('.');
        const auto part = read_part(host.substr(0, dot));
        const bool is_last = dot == std::string_view::npos;
        if (!part || *part >> (is_last ? left : 8u) != 0) {
            return std::nullopt;
        }
        left -= is_last ? left : 8u;
        address |= *part << left;
        if (is_last) {
            return asio::ip::address_v4{static_cast<std::uint32_t>(address)};
        }
        if (left == 0) {
            return std::nullopt;
        }
        host.remove_prefix(dot + 1);
    }
}

}  // namespace reprise::proxy::net
