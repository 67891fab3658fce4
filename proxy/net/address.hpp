#pragma once
// What an IP address means: pure functions, no socket.
// One address can be reached under several spellings: IPv4 inside IPv6 in its mapped, compatible,
// translated, 6to4 and NAT64 forms. Whoever decides by address must decide for all of them.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

enum class ip_family : std::uint8_t { v4, v6 };

/// 16 bytes, IPv4 in its mapped form (::ffff:a.b.c.d), as config::network holds them.
using address_bytes = std::array<std::uint8_t, 16>;

/// For tables by address.
struct address_hash {
    [[nodiscard]] std::size_t operator()(const address_bytes& address) const noexcept {
        return std::hash<std::string_view>{}(
            {reinterpret_cast<const char*>(address.data()), address.size()});
    }
};

[[nodiscard]] address_bytes canonical(const asio::ip::address& address) noexcept;

/// What one client has: an IPv4 address, or an IPv6 network of 64 bits (RFC 6177), any address of which it can
/// take for its next connection. Whatever is bounded for a client is bounded for that.
[[nodiscard]] address_bytes place_of_client(address_bytes at) noexcept;

/// Whose share of what is scarce something is taken from (connections to an origin, questions to name
/// servers): a client's place. None: nobody's, since whoever asks speaks for many (peers,
/// access.fronts) or for the proxy itself.
using share_holder = std::optional<address_bytes>;

/// The other way: a mapped form becomes an IPv4 address. No scope.
[[nodiscard]] asio::ip::address to_address(const address_bytes& bytes) noexcept;

/// "192.0.2.1:80", "[2001:db8::1]:80"; mapped forms as IPv4, without a scope: one text for each.
[[nodiscard]] std::string endpoint_text(const asio::ip::address& address, std::uint16_t port);

[[nodiscard]] bool contains(const config::network& network, const address_bytes& bytes) noexcept;

/// The address and every IPv4 address that may be meant by it, in canonical form, without repeats.
struct address_forms {
    std::array<address_bytes, 6> bytes{};
    std::size_t count = 0;

    [[nodiscard]] const address_bytes* begin() const noexcept { return bytes.data(); }
    [[nodiscard]] const address_bytes* end() const noexcept { return bytes.data() + count; }
};

/// First the address itself (mapped forms as IPv4), then what is embedded in it:
/// IPv4-compatible ::a.b.c.d (RFC 4291 2.5.5.1), IPv4-translated ::ffff:0:a.b.c.d (RFC 2765), 6to4
/// 2002::/16 (RFC 3056), NAT64 64:ff9b::/96 (RFC 6052) and 64:ff9b:1::/48 (RFC 8215), Teredo
/// 2001::/32 (RFC 4380: server and client), ISATAP's ::0:5efe:a.b.c.d under any prefix (RFC 5214).
/// The operator of 64:ff9b:1::/48 picks the prefix length, so each place that RFC 6052 2.2 allows
/// is read. A prefix that a network picked for itself (NAT64, 6rd) can't be told from the address.
[[nodiscard]] address_forms forms_of(const address_bytes& bytes) noexcept;

/// What an address is for. `ordinary` has the private networks too.
enum class address_kind : std::uint8_t {
    ordinary,
    unspecified,  ///< 0.0.0.0/8 and ::, which connect to this machine
    loopback,     ///< 127.0.0.0/8 and ::1
    link_local,   ///< 169.254.0.0/16 and fe80::/10
    multicast,    ///< 224.0.0.0/4 and ff00::/8
    broadcast,    ///< 255.255.255.255
    metadata,     ///< where clouds hand out credentials
    /// In IANA's special-purpose registries, and no host's: 192.0.0.0/24, 240.0.0.0/4, 100::/64,
    /// 100:0:0:1::/64, 5f00::/16. Networks for documentation and benchmarks, which laboratories
    /// use, are ordinary.
    reserved,
};
[[nodiscard]] std::string_view to_string(address_kind kind) noexcept;

/// Judges this form only; see forms_of for the others.
[[nodiscard]] address_kind kind_of(const address_bytes& bytes) noexcept;

/// A numeric host as it stands in a URL: IPv4 as four decimal numbers, IPv6 with or without
/// brackets; no scope. Anything else (also 127.1, 0x7f000001, 017700000001) is none.
[[nodiscard]] std::optional<asio::ip::address> parse_numeric_host(std::string_view host);

/// The same, and what recipients less strict than we would make of a name: a final dot, and IPv4 as
/// inet_aton(3) reads it (127.1, 0x7f000001, 017700000001). For judging what others will resolve.
[[nodiscard]] std::optional<asio::ip::address> read_numeric_host(std::string_view host);

}  // namespace reprise::proxy::net
