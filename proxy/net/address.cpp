#include "proxy/net/address.hpp"

#include <algorithm>
#include <string>

namespace reprise::proxy {
namespace {

constexpr address_bytes mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr address_bytes translated_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr address_bytes nat64_prefix{0x00, 0x64, 0xff, 0x9b};
constexpr address_bytes local_nat64_prefix{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01};
constexpr address_bytes aws_metadata_v6{
    0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54};

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
    // Metadata before link-local: two of them lie in 169.254.0.0/16 and deserve their own name.
    if (is(169, 254, 169, 254) || is(169, 254, 170, 2) || is(100, 100, 100, 200)) {
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
    return address_kind::ordinary;
}

}  // namespace

address_bytes canonical(const net::ip::address& address) noexcept {
    if (address.is_v4()) {
        const auto four = address.to_v4().to_bytes();
        return mapped(four[0], four[1], four[2], four[3]);
    }
    return address.to_v6().to_bytes();
}

net::ip::address to_address(const address_bytes& bytes) noexcept {
    if (is_ipv4(bytes)) {
        return net::ip::address_v4{
            net::ip::address_v4::bytes_type{{bytes[12], bytes[13], bytes[14], bytes[15]}}};
    }
    return net::ip::address_v6{bytes};
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
    }
    return "?";
}

address_kind kind_of(const address_bytes& bytes) noexcept {
    if (is_ipv4(bytes)) {
        return kind_of_ipv4(bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    if (bytes == aws_metadata_v6) {
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
    return address_kind::ordinary;
}

std::optional<net::ip::address> parse_numeric_host(std::string_view host) {
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
    const auto address = net::ip::make_address(host, error);
    if (error) {
        return std::nullopt;
    }
    return to_address(canonical(address));
}

}  // namespace reprise::proxy
