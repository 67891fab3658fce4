#include "proxy/net/forwarded_for.hpp"

#include "proxy/net/access.hpp"

#include <algorithm>
#include <charconv>

namespace reprise::proxy::net {

namespace {

std::string_view trimmed(std::string_view text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text.substr(0, text.find_last_not_of(" \t") + 1);
}

std::optional<std::uint16_t> read_port(std::string_view digits) noexcept {
    std::uint16_t port = 0;
    const auto end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, port);
    if (read.ec != std::errc{} || read.ptr != end) {
        return std::nullopt;
    }
    return port;
}

bool can_be_a_client(const address_bytes& at) noexcept {
    switch (kind_of(at)) {
    case address_kind::unspecified:
    case address_kind::loopback:
    case address_kind::multicast:
    case address_kind::broadcast: return false;
    case address_kind::ordinary:
    case address_kind::link_local:
    case address_kind::metadata:
    case address_kind::reserved: return true;
    }
    return false;
}

}  // namespace

std::optional<forwarded_client> read_forwarded_client(std::string_view member) {
    auto host = trimmed(member);
    std::uint16_t port = 0;
    const bool brackets = host.starts_with('[');
    const auto colon = host.rfind(':');
    const bool has_port = colon != std::string_view::npos &&
                          (brackets ? colon > host.rfind(']') : host.find(':') == colon);
    if (has_port) {
        const auto said = read_port(host.substr(colon + 1));
        if (!said) {
            return std::nullopt;
        }
        port = *said;
        host = host.substr(0, colon);
    }
    const auto address = parse_numeric_host(host);
    if (!address) {
        return std::nullopt;
    }
    return forwarded_client{canonical(*address), port};
}

// True: whoever wrote what stands to the left of it is trusted.
bool forwarded_path::step(std::string_view member) {
    if (++members_ > most_forwards) {
        return false;
    }
    const auto said = read_forwarded_client(member);
    if (!said) {
        return false;
    }
    if (can_be_a_client(said->at)) {
        client_ = *said;
    }
    return is_in(trusted_, said->at);
}

bool forwarded_path::follow(std::string_view value) {
    while (!ended_) {
        const auto comma = value.rfind(',');
        const bool is_last = comma == std::string_view::npos;
        const auto member = trimmed(is_last ? value : value.substr(comma + 1));
        ended_ = !member.empty() && !step(member);  // RFC 9110 5.6.1: a list may have empty members
        if (is_last) {
            break;
        }
        value = value.substr(0, comma);
    }
    return !ended_;
}

}  // namespace reprise::proxy::net
