#include "tools/from_squid/networks.hpp"

#include "config/address.hpp"

#include <algorithm>
#include <bit>
#include <optional>

namespace reprise::from_squid {

namespace {

using address = std::array<std::uint8_t, 16>;
using config::network;

bool is_mapped(const address& a) {
    return std::all_of(a.begin(), a.begin() + 10, [](auto byte) { return byte == 0; }) &&
           a[10] == 0xff && a[11] == 0xff;
}

bool is_ipv4(const network& one) {
    return one.prefix_bits >= 96 && is_mapped(one.address);
}

bool bit(const address& a, unsigned index) {
    return (a[index / 8] >> (7 - index % 8) & 1) != 0;
}

address masked(address a, unsigned bits) {
    for (unsigned i = bits; i < 128; ++i) {
        a[i / 8] &= static_cast<std::uint8_t>(~(1u << (7 - i % 8)));
    }
    return a;
}

// Whether all of `inner` is in `outer`.
bool holds(const network& outer, const network& inner) {
    return is_ipv4(outer) == is_ipv4(inner) && outer.prefix_bits <= inner.prefix_bits &&
           masked(inner.address, outer.prefix_bits) == outer.address;
}

// All of `outer` but `hole`, which lies within it: the other half at each bit on the way there.
void append_around(network_set& out, const network& outer, const network& hole) {
    for (unsigned bits = outer.prefix_bits; bits < hole.prefix_bits; ++bits) {
        auto other = masked(hole.address, bits + 1);
        other[bits / 8] ^= static_cast<std::uint8_t>(1u << (7 - bits % 8));
        out.push_back({other, bits + 1});
    }
}

std::optional<unsigned> bits_of_mask(const address& mask, bool ipv4) {
    unsigned bits = ipv4 ? 96 : 0;
    while (bits < 128 && bit(mask, bits)) {
        ++bits;
    }
    for (unsigned rest = bits; rest < 128; ++rest) {
        if (bit(mask, rest)) {
            return std::nullopt;
        }
    }
    return bits;
}

// Adds 2^exponent; false when that goes beyond the last address.
bool add_power(address& a, unsigned exponent) {
    unsigned carry = 1u << (exponent % 8);
    for (int i = static_cast<int>(15 - exponent / 8); i >= 0 && carry != 0; --i) {
        const auto sum = a[static_cast<std::size_t>(i)] + carry;
        a[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(sum);
        carry = sum >> 8;
    }
    return carry == 0;
}

address last_of(const network& one) {
    auto out = one.address;
    for (unsigned i = one.prefix_bits; i < 128; ++i) {
        out[i / 8] |= static_cast<std::uint8_t>(1u << (7 - i % 8));
    }
    return out;
}

network_set of_range(address first, const address& last) {
    network_set out;
    if (is_mapped(first) != is_mapped(last) || last < first) {
        return {};
    }
    const unsigned least = is_mapped(first) ? 96 : 0;
    for (;;) {
        unsigned bits = 128;
        // The largest network that begins here and does not reach beyond the last.
        while (bits > least && masked(first, bits - 1) == first &&
               last_of({first, bits - 1}) <= last) {
            --bits;
        }
        out.push_back({first, bits});
        if (last_of(out.back()) == last || !add_power(first, 128 - bits)) {
            return out;
        }
    }
}

std::optional<unsigned> prefix_of(std::string_view text, bool ipv4) {
    if (const auto number = config::parse_port(text)) {
        const unsigned most = ipv4 ? 32 : 128;
        return *number <= most ? std::optional{*number + (128 - most)} : std::nullopt;
    }
    const auto mask = config::parse_ip(text);
    if (!mask || is_mapped(*mask) != ipv4) {
        return std::nullopt;
    }
    // An IPv4 mask is read into the mapped form, whose first bits are not its own.
    return bits_of_mask(*mask, ipv4);
}

}  // namespace

network_set everybody() {
    address four{};
    four[10] = four[11] = 0xff;
    return {{four, 96}, {address{}, 0}};
}

network_set parse_addresses(std::string_view text) {
    const auto slash = text.find('/');
    const auto mask = slash == std::string_view::npos ? std::string_view{} : text.substr(slash + 1);
    text = text.substr(0, slash);
    const auto dash = text.find('-');
    const auto first = config::parse_ip(text.substr(0, dash));
    if (!first) {
        return {};
    }
    const bool ipv4 = is_mapped(*first);
    auto bits = 128u;
    if (slash != std::string_view::npos) {
        const auto read = prefix_of(mask, ipv4);
        if (!read) {
            return {};
        }
        bits = *read;
    }
    if (dash == std::string_view::npos) {
        return {{masked(*first, bits), bits}};
    }
    const auto last = config::parse_ip(text.substr(dash + 1));
    if (!last) {
        return {};
    }
    return of_range(masked(*first, bits), last_of({masked(*last, bits), bits}));
}

bool reaches_over_ipv4(const network& one) {
    return !is_ipv4(one) && masked(everybody().front().address, one.prefix_bits) == one.address;
}

network_set intersection(const network_set& a, const network_set& b) {
    network_set out;
    for (const auto& one : a) {
        for (const auto& other : b) {
            if (holds(one, other)) {
                out.push_back(other);
            } else if (holds(other, one)) {
                out.push_back(one);
            }
        }
    }
    return tidied(out);
}

network_set difference(const network_set& a, const network_set& b) {
    auto left = a;
    for (const auto& hole : b) {
        network_set next;
        for (const auto& one : left) {
            if (holds(hole, one)) {
                continue;
            }
            if (holds(one, hole)) {
                append_around(next, one, hole);
            } else {
                next.push_back(one);
            }
        }
        left = std::move(next);
    }
    return left;
}

network_set tidied(const network_set& all) {
    network_set out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        bool covered = false;
        for (std::size_t j = 0; j < all.size() && !covered; ++j) {
            covered = j != i && holds(all[j], all[i]) && (all[j] != all[i] || j < i);
        }
        if (!covered) {
            out.push_back(all[i]);
        }
    }
    return out;
}

std::vector<std::string> as_settings(const network_set& all) {
    const auto four = everybody().front();
    const bool all_of_four = std::find(all.begin(), all.end(), four) != all.end();
    // Global, unique local and link-local addresses, and this machine.
    network_set of_clients;
    for (const auto* each : {"2000::/3", "fc00::/7", "fe80::/10", "::1"}) {
        of_clients.push_back(parse_addresses(each).front());
    }
    std::vector<std::string> out;
    for (const auto& one : all) {
        const auto parts = reaches_over_ipv4(one) && !all_of_four ? intersection(of_clients, {one})
                                                                  : network_set{one};
        for (const auto& part : parts) {
            out.push_back(config::to_string(part));
        }
    }
    return out;
}

}  // namespace reprise::from_squid
