#include "proxy/net/guard.hpp"

#include <algorithm>
#include <cerrno>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdexcept>

// check() asks for what the settings deny, then for what they allow, then for the kind of address.
// An address is judged in every form that it may stand for (forms_of), and one form that is refused
// is enough.

namespace reprise::proxy::net {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_host(std::string_view rule, std::string_view named) {
    return std::equal(rule.begin(), rule.end(), named.begin(), named.end(), [](char a, char b) {
        return lower(a) == lower(b);
    });
}

bool host_matches(std::string_view rule, std::string_view named) {
    if (rule.substr(0, 2) != "*.") {
        return !rule.empty() && same_host(rule, named);
    }
    const auto suffix = rule.substr(1);  // ".example.org"
    return named.size() > suffix.size() &&
           same_host(suffix, named.substr(named.size() - suffix.size()));
}

std::string_view without_final_dot(std::string_view host) {
    return !host.empty() && host.back() == '.' ? host.substr(0, host.size() - 1) : host;
}

bool port_matches(const config::destination& rule, std::uint16_t port) {
    return !rule.port || *rule.port == port;
}

bool names_host(const std::vector<config::destination>& rules,
                std::string_view named,
                std::uint16_t port) {
    return std::any_of(rules.begin(), rules.end(), [&](const config::destination& each) {
        return !each.net && port_matches(each, port) && host_matches(each.host, named);
    });
}

bool names_address(const std::vector<config::destination>& rules,
                   const address_bytes& bytes,
                   std::uint16_t port) {
    return std::any_of(rules.begin(), rules.end(), [&](const config::destination& each) {
        return each.net && port_matches(each, port) && contains(*each.net, bytes);
    });
}

destination_verdict verdict_of(address_kind kind) {
    switch (kind) {
    case address_kind::ordinary: return destination_verdict::allowed;
    case address_kind::unspecified: return destination_verdict::unspecified;
    case address_kind::loopback: return destination_verdict::loopback;
    case address_kind::link_local: return destination_verdict::link_local;
    case address_kind::multicast: return destination_verdict::multicast;
    case address_kind::broadcast: return destination_verdict::broadcast;
    case address_kind::metadata: return destination_verdict::metadata;
    case address_kind::reserved: return destination_verdict::reserved;
    }
    return destination_verdict::denied;
}

void add_address(std::vector<asio::ip::address>& addresses, const sockaddr* from) {
    if (from == nullptr) {
        return;
    }
    if (from->sa_family == AF_INET) {
        const auto& four = *reinterpret_cast<const sockaddr_in*>(from);
        addresses.emplace_back(asio::ip::address_v4{ntohl(four.sin_addr.s_addr)});
    } else if (from->sa_family == AF_INET6) {
        const auto& six = *reinterpret_cast<const sockaddr_in6*>(from);
        asio::ip::address_v6::bytes_type bytes;
        std::copy(
            std::begin(six.sin6_addr.s6_addr), std::end(six.sin6_addr.s6_addr), bytes.begin());
        addresses.emplace_back(asio::ip::address_v6{bytes});
    }
}

}  // namespace

std::string_view to_string(destination_verdict verdict) noexcept {
    switch (verdict) {
    case destination_verdict::allowed: return "allowed";
    case destination_verdict::unspecified: return to_string(address_kind::unspecified);
    case destination_verdict::loopback: return to_string(address_kind::loopback);
    case destination_verdict::link_local: return to_string(address_kind::link_local);
    case destination_verdict::multicast: return to_string(address_kind::multicast);
    case destination_verdict::broadcast: return to_string(address_kind::broadcast);
    case destination_verdict::metadata: return to_string(address_kind::metadata);
    case destination_verdict::reserved: return to_string(address_kind::reserved);
    case destination_verdict::own_address: return "an address of this machine";
    case destination_verdict::denied: return "denied";
    }
    return "?";
}

destination_guard::destination_guard(const config::access_options& access,
                                     std::span<const asio::ip::address> own_addresses)
    : allow_(access.allow_destinations),
      deny_(access.deny_destinations) {
    own_.reserve(own_addresses.size());
    for (const auto& each : own_addresses) {
        own_.push_back(canonical(each));
    }
    std::sort(own_.begin(), own_.end());
}

destination_verdict destination_guard::check(std::string_view host_as_named,
                                             const asio::ip::address& address,
                                             std::uint16_t port,
                                             bool exempt) const noexcept {
    if (exempt) {
        return destination_verdict::allowed;
    }
    const auto named = without_final_dot(host_as_named);
    const auto bytes = canonical(address);
    const auto forms = forms_of(bytes);
    if (names_host(deny_, named, port) ||
        std::any_of(forms.begin(), forms.end(), [&](const address_bytes& form) {
            return names_address(deny_, form, port);
        })) {
        return destination_verdict::denied;
    }
    if (names_host(allow_, named, port) || names_address(allow_, bytes, port)) {
        return destination_verdict::allowed;
    }
    for (const auto& form : forms) {
        auto verdict = verdict_of(kind_of(form));
        if (verdict == destination_verdict::allowed &&
            std::binary_search(own_.begin(), own_.end(), form)) {
            verdict = destination_verdict::own_address;
        }
        if (verdict != destination_verdict::allowed && !names_address(allow_, form, port)) {
            return verdict;
        }
    }
    return destination_verdict::allowed;
}

bool destination_guard::is_here(const asio::ip::address& address) const noexcept {
    const auto bytes = canonical(address);
    const auto kind = kind_of(bytes);
    return kind == address_kind::loopback || kind == address_kind::unspecified ||
           std::binary_search(own_.begin(), own_.end(), bytes);
}

failure refusal_of(const tcp::endpoint& target, destination_verdict verdict) {
    auto why = endpoint_text(target.address(), target.port());
    if (verdict == destination_verdict::denied) {
        why += " is refused by access.deny_destinations";
    } else {
        why.append(" is ").append(to_string(verdict));
        why += "; access.allow_destinations can make an exception";
    }
    return {failure_code::destination_refused, std::move(why)};
}

std::optional<failure> judge_literal(const destination_guard& guard,
                                     std::string_view host,
                                     std::uint16_t port) {
    const auto literal = read_numeric_host(host);
    if (!literal) {
        return std::nullopt;
    }
    const auto verdict = guard.check(host, *literal, port);
    if (verdict == destination_verdict::allowed) {
        return std::nullopt;
    }
    return refusal_of({*literal, port}, verdict);
}

std::optional<std::vector<asio::ip::address>> local_addresses() {
    std::vector<asio::ip::address> addresses;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) {
        return std::nullopt;
    }
    for (const auto* each = first; each != nullptr; each = each->ifa_next) {
        add_address(addresses, each->ifa_addr);
        if ((each->ifa_flags & IFF_BROADCAST) != 0) {
            add_address(addresses, each->ifa_broadaddr);
        }
    }
    ::freeifaddrs(first);
    return addresses;
}

std::shared_ptr<const destination_guard> make_guard(const config::access_options& access) {
    const auto own = local_addresses();
    if (!own) {
        throw std::runtime_error{
            "the addresses of this machine, which no client may reach through the proxy, can't be "
            "read (getifaddrs): " +
            error_code{errno, boost::system::system_category()}.message()};
    }
    return std::make_shared<const destination_guard>(access, *own);
}

bool port_allowed(std::span<const config::port_range> allowed, std::uint16_t port) noexcept {
    return std::any_of(allowed.begin(), allowed.end(), [=](const config::port_range& each) {
        return each.first <= port && port <= each.last;
    });
}

}  // namespace reprise::proxy::net
