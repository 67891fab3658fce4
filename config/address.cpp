#include "config/address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <charconv>

// Addresses are read by inet_pton. What only looser readers would take for one (127.1, 0x7f.1) is
// refused rather than taken for a name.

namespace reprise::config {
namespace {

using ip_bytes = std::array<std::uint8_t, 16>;

constexpr std::string_view endpoint_form = "write a numeric address and a port, such as "
                                           "127.0.0.1:3128 or [::1]:3128";
constexpr std::string_view network_form = "write a network such as 10.0.0.0/8 or fc00::/7, "
                                          "or one address";
constexpr std::string_view host_form = "write a host name such as deb.example.org";

bool is_mapped(const ip_bytes& address) {
    constexpr ip_bytes prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(prefix.begin(), prefix.begin() + 12, address.begin());
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::optional<unsigned> parse_decimal(std::string_view text, unsigned most) {
    unsigned number = 0;
    const auto* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (text.empty() || error != std::errc{} || stop != end || number > most ||
        (text.size() > 1 && text.front() == '0')) {
        return std::nullopt;
    }
    return number;
}

void clear_host_bits(ip_bytes& address, unsigned prefix_bits) {
    for (unsigned bit = prefix_bits; bit < 128; ++bit) {
        address[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
    }
}

/// "host:port", "[address]:port" cut in two; `port` is absent when nothing follows the host.
struct host_and_port {
    std::string_view host;
    std::optional<std::string_view> port;
    bool bracketed = false;
};
std::optional<host_and_port> split_port(std::string_view text) {
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == text.npos) {
            return std::nullopt;
        }
        const auto host = text.substr(1, end - 1);
        const auto rest = text.substr(end + 1);
        if (rest.empty()) {
            return host_and_port{host, std::nullopt, true};
        }
        if (rest.front() != ':') {
            return std::nullopt;
        }
        return host_and_port{host, rest.substr(1), true};
    }
    const auto colon = text.find(':');
    if (colon == text.npos || text.find(':', colon + 1) != text.npos) {
        return host_and_port{text, std::nullopt, false};  // no port, or IPv6 without brackets
    }
    return host_and_port{text.substr(0, colon), text.substr(colon + 1), false};
}

// What a resolver or another proxy would read as an IPv4 address though inet_pton does not:
// "127.1", "0x7f.0.0.1", "2130706433". WHATWG's URL standard calls it a host that ends in a number.
bool ends_in_a_number(std::string_view host) {
    const auto last = host.substr(host.rfind('.') + 1);
    const bool digits = std::all_of(last.begin(), last.end(), is_digit);
    const bool hexadecimal = last.starts_with("0x") &&
                             last.substr(2).find_first_not_of("0123456789abcdef") == last.npos;
    return digits || hexadecimal;
}

}  // namespace

std::optional<ip_bytes> parse_ip(std::string_view text) {
    std::array<char, INET6_ADDRSTRLEN> terminated{};
    if (text.size() >= terminated.size() || text.find('\0') != text.npos) {
        return std::nullopt;
    }
    std::copy(text.begin(), text.end(), terminated.begin());
    ip_bytes address{};
    if (inet_pton(AF_INET, terminated.data(), address.data() + 12) == 1) {
        address[10] = address[11] = 0xff;
        return address;
    }
    if (inet_pton(AF_INET6, terminated.data(), address.data()) == 1) {
        return address;
    }
    return std::nullopt;
}

std::string ip_to_string(const ip_bytes& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const bool mapped = is_mapped(address);
    inet_ntop(mapped ? AF_INET : AF_INET6,
              address.data() + (mapped ? 12 : 0),
              text.data(),
              text.size());  // cannot fail: the family is known and the room is enough
    return text.data();
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    const auto number = parse_decimal(text, 65535);
    return number ? std::optional{static_cast<std::uint16_t>(*number)} : std::nullopt;
}

parsed<endpoint> parse_endpoint(std::string_view text, std::optional<std::uint16_t> default_port) {
    const auto parts = split_port(text);
    const auto address = parts ? parse_ip(parts->host) : std::nullopt;
    if (!address) {
        // What has letters beyond those of hexadecimal is a name, and a name has many addresses.
        const bool name = parts && std::any_of(parts->host.begin(), parts->host.end(), [](char c) {
                              return (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z');
                          });
        return refusal{(name ? "the address must be numeric: " : "") + std::string{endpoint_form}};
    }
    if (parts->bracketed == (parts->host.find(':') == parts->host.npos)) {
        return refusal{parts->bracketed ? "only an IPv6 address stands in brackets"
                                        : "an IPv6 address stands in brackets before its port, "
                                          "such as [::1]:3128"};
    }
    if (!parts->port && !default_port) {
        return refusal{"the port is missing: " + std::string{endpoint_form}};
    }
    const auto port = parts->port ? parse_port(*parts->port) : default_port;
    if (!port) {
        return refusal{"the port must be 0 to 65535"};
    }
    return endpoint{ip_to_string(*address), *port};
}

parsed<network> parse_network(std::string_view text) {
    const auto slash = text.find('/');
    const auto address = parse_ip(text.substr(0, slash));
    if (!address) {
        return refusal{std::string{network_form}};
    }
    const bool four = text.substr(0, slash).find(':') == text.npos;
    network net{*address, 128};
    if (slash != text.npos) {
        const auto bits = parse_decimal(text.substr(slash + 1), four ? 32 : 128);
        if (!bits) {
            return refusal{"the prefix must be 0 to " + std::string{four ? "32" : "128"}};
        }
        net.prefix_bits = *bits + (four ? 96 : 0);
    }
    clear_host_bits(net.address, net.prefix_bits);
    if (net.address != *address) {
        return refusal{"has bits beyond its prefix: write " + to_string(net) + " or " +
                       ip_to_string(*address)};
    }
    return net;
}

parsed<std::string> parse_host(std::string_view text) {
    if (text.size() > 1 && text.back() == '.') {
        text.remove_suffix(1);
    }
    if (text.empty() || text.size() > 253) {
        return refusal{std::string{host_form}};
    }
    std::string host{text};
    std::size_t label = 0;
    for (char& c : host) {
        if (c == '.') {
            if (label == 0) {
                return refusal{"has an empty label: " + std::string{host_form}};
            }
            label = 0;
            continue;
        }
        if (static_cast<unsigned char>(c) >= 0x80) {
            return refusal{"write the name in its ASCII form, xn--..."};
        }
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') {
            return refusal{std::string{host_form}};
        }
        if (++label > 63) {
            return refusal{"has a label longer than 63 characters"};
        }
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    if (label == 0) {
        return refusal{"has an empty label: " + std::string{host_form}};
    }
    if (ends_in_a_number(host) && !parse_ip(host)) {
        return refusal{"ends in a number but is no IPv4 address a.b.c.d"};
    }
    return host;
}

parsed<destination> parse_destination(std::string_view text) {
    if (text.find("://") != text.npos) {
        return refusal{"is a URL: write its host alone, and perhaps :port"};
    }
    const auto parts = split_port(text);
    if (!parts) {
        return refusal{"write host, *.host, a network or an address, and perhaps :port; "
                       "IPv6 before a port in brackets"};
    }
    destination where;
    if (parts->port) {
        where.port = parse_port(*parts->port);
        if (!where.port || *where.port == 0) {
            return refusal{"the port must be 1 to 65535"};
        }
    }
    const auto host = parts->host;
    if (host.find('/') != host.npos || host.find(':') != host.npos || parse_ip(host)) {
        auto net = parse_network(host);
        if (const auto* found = value_of(net)) {
            where.net = *found;
            return where;
        }
        return std::get<refusal>(net);
    }
    if (parts->bracketed) {
        return refusal{"only an IPv6 address or network stands in brackets"};
    }
    if (host == "*") {
        return refusal{"write 0.0.0.0/0 and ::/0 for every address"};
    }
    const bool subdomains = host.starts_with("*.");
    auto name = parse_host(subdomains ? host.substr(2) : host);
    if (const auto* found = value_of(name)) {
        where.host = (subdomains ? "*." : "") + *found;
        return where;
    }
    return std::get<refusal>(name);
}

parsed<port_range> parse_port_range(std::string_view text) {
    const auto dash = text.find('-');
    const auto first = parse_port(text.substr(0, dash));
    const auto last = dash == text.npos ? first : parse_port(text.substr(dash + 1));
    if (!first || !last || *first == 0) {
        return refusal{"write a port from 1 to 65535, or a range such as \"1024-65535\""};
    }
    if (*first > *last) {
        return refusal{"the range runs backwards: write \"" + std::to_string(*last) + '-' +
                       std::to_string(*first) + '"'};
    }
    return port_range{*first, *last};
}

std::string to_string(const endpoint& address) {
    const bool six = address.host.find(':') != std::string::npos;
    return (six ? '[' + address.host + ']' : address.host) + ':' + std::to_string(address.port);
}

std::string to_string(const network& net) {
    const bool four = is_mapped(net.address) && net.prefix_bits >= 96;
    if (net.prefix_bits == 128) {
        return ip_to_string(net.address);
    }
    return ip_to_string(net.address) + '/' +
           std::to_string(four ? net.prefix_bits - 96 : net.prefix_bits);
}

std::string to_string(const destination& where) {
    std::string text = where.net ? to_string(*where.net) : where.host;
    if (where.port) {
        const bool six = text.find(':') != std::string::npos;
        text = (six ? '[' + text + ']' : text) + ':' + std::to_string(*where.port);
    }
    return text;
}

std::string to_string(const port_range& ports) {
    const auto first = std::to_string(ports.first);
    return ports.first == ports.last ? first : first + '-' + std::to_string(ports.last);
}

}  // namespace reprise::config
