#include "tools/from_squid/networks.hpp"

#include "config/address.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

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

// The networks of a set that lie in no other of it. Two networks overlap only where one holds the other, so
// these are ranges apart, in one order by their first address. IPv4 ones have addresses of their own
// (is_mapped), but an IPv6 one may reach over those without holding them: the families are apart here.
class sorted_networks {
public:
    /// O(n log n). `of` outlives it.
    explicit sorted_networks(const network_set& of) : of_{of} {
        for (const bool four : {false, true}) {
            auto& own = outer_[four ? 1 : 0];
            for (std::size_t i = 0; i < of.size(); ++i) {
                if (is_ipv4(of[i]) == four) {
                    own.push_back(i);
                }
            }
            // One that holds others stands before them, and of equal ones the first.
            std::stable_sort(own.begin(), own.end(), [&](std::size_t x, std::size_t y) {
                return std::tie(of[x].address, of[x].prefix_bits) <
                       std::tie(of[y].address, of[y].prefix_bits);
            });
            std::size_t last = 0, kept = 0;
            for (const auto each : own) {
                if (kept == 0 || !holds(of[last], of[each])) {
                    own[kept++] = last = each;
                }
            }
            own.resize(kept);
        }
    }

    /// Which of them holds `one`: its place in the set. O(log n).
    [[nodiscard]] std::optional<std::size_t> cover(const network& one) const {
        const auto& own = family_of(one);
        const auto behind = first_behind(own, one.address);
        if (behind == own.begin() || !holds(of_[*std::prev(behind)], one)) {
            return std::nullopt;
        }
        return *std::prev(behind);
    }

    /// The places of those that `one` holds, in the set's order. O(log n) and those.
    [[nodiscard]] std::vector<std::size_t> within(const network& one) const {
        const auto found = range_in(one);
        std::vector<std::size_t> out(found.first, found.second);
        std::sort(out.begin(), out.end());
        return out;
    }

    /// All of `one` but what these hold of it, where none of them holds it whole: each half that none of
    /// them lies in as a network, the others halved again. O(bits) for each hole.
    void append_around(network_set& out, const network& one) const {
        const auto holes = range_in(one);
        if (holes.first == holes.second) {
            out.push_back(one);
            return;
        }
        const auto bits = one.prefix_bits + 1;
        auto upper = one.address;
        upper[one.prefix_bits / 8] |= static_cast<std::uint8_t>(1u << (7 - one.prefix_bits % 8));
        network halves[2]{{one.address, bits}, {upper, bits}};
        // The one that is whole first.
        if (holds(halves[0], of_[*holes.first]) &&
            holds(halves[0], of_[*std::prev(holes.second)])) {
            std::swap(halves[0], halves[1]);
        }
        for (const auto& half : halves) {
            if (!cover(half)) {
                append_around(out, half);
            }
        }
    }

private:
    using places = std::vector<std::size_t>;

    [[nodiscard]] const places& family_of(const network& one) const {
        return outer_[is_ipv4(one) ? 1 : 0];
    }
    [[nodiscard]] places::const_iterator first_behind(const places& own, const address& at) const {
        return std::upper_bound(
            own.begin(), own.end(), at, [&](const address& value, std::size_t each) {
                return value < of_[each].address;
            });
    }
    [[nodiscard]] std::pair<places::const_iterator, places::const_iterator> range_in(
        const network& one) const {
        const auto& own = family_of(one);
        const auto first = std::lower_bound(
            own.begin(), own.end(), one.address, [&](std::size_t each, const address& value) {
                return of_[each].address < value;
            });
        return {first, std::max(first, first_behind(own, last_of(one)))};
    }

    const network_set& of_;
    places outer_[2];  // IPv6, IPv4
};

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
    const sorted_networks of_a{a}, of_b{b};
    network_set out;
    for (const auto& one : a) {
        if (of_b.cover(one)) {
            out.push_back(one);
        } else {
            for (const auto at : of_b.within(one)) {
                out.push_back(b[at]);
            }
        }
    }
    return tidied(out);
}

network_set difference(const network_set& a, const network_set& b) {
    const sorted_networks holes{b};
    network_set out;
    for (const auto& one : a) {
        if (!holes.cover(one)) {
            holes.append_around(out, one);
        }
    }
    return out;
}

network_set tidied(const network_set& all) {
    const sorted_networks those{all};
    network_set out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (those.cover(all[i]) == i) {
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
