#include "filter/plugins/trafficserver/fleet_words.hpp"

#include "filter/plugins/trafficserver/words.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <reprise/digest.h>
#include <stdexcept>
#include <unistd.h>

// Each word is judged by itself, and the first that is wrong is thrown as a sentence (refuse_word).
// The endpoints of siblings and clients are here as well: an IPv4 address in IPv6's clothes is
// taken for the IPv4 address, so that one host has one form.

namespace reprise::trafficserver {

namespace {

/// Digits, and k, M, G or T behind them: of 1,000, or of 1,024 for bytes.
bool read_amount(std::string_view text, std::uint64_t thousand, std::uint64_t& out) noexcept {
    constexpr std::string_view letters = "kMGT";
    std::uint64_t by = 1;
    const auto letter = text.empty() ? letters.npos : letters.find(text.back());
    if (letter != letters.npos) {
        text.remove_suffix(1);
        for (std::size_t i = 0; i <= letter; ++i) {
            by *= thousand;
        }
    }
    if (!read_number(text, out) || out == 0 || out > (std::uint64_t{1} << 60) / by) {
        return false;
    }
    out *= by;
    return true;
}

/// "500ms", "60s", "5m", "1h".
bool read_duration(std::string_view text, std::chrono::milliseconds& out) noexcept {
    const auto unit = text.find_first_not_of("0123456789");
    std::int64_t number = 0;
    if (unit == text.npos || !read_number(text.substr(0, unit), number) || number > 1'000'000'000) {
        return false;
    }
    const auto word = text.substr(unit);
    const std::int64_t scale = word == "ms"  ? 1
                               : word == "s" ? 1000
                               : word == "m" ? 60'000
                               : word == "h" ? 3'600'000
                                             : 0;
    out = std::chrono::milliseconds{number * scale};
    return scale != 0;
}

std::string path_below(std::string_view folder, std::string_view path) {
    return path.starts_with('/') ? std::string{path}
                                 : std::string{folder} + "/" + std::string{path};
}

sibling_words sibling_in(std::string_view word, std::string_view value) {
    constexpr std::string_view right =
        "must be NAME@ADDRESS:PORT, the address in numbers: sibling=b@192.0.2.7:8080, or "
        "b@[2001:db8::7]:8080";
    const auto sign = value.find('@');
    const auto colon = value.rfind(':');
    std::uint16_t port = 0;
    if (sign == value.npos || colon == value.npos || colon < sign ||
        !is_name(value.substr(0, sign)) || value.substr(0, sign) == "own" ||
        !read_number(value.substr(colon + 1), port) || port == 0) {
        refuse_word(word, right);
    }
    std::string host{value.substr(sign + 1, colon - sign - 1)};
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    sibling_words out;
    out.name = value.substr(0, sign);
    sockaddr_in four{};
    sockaddr_in6 six{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    const bool is_known = (inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1 &&
                           take_endpoint(reinterpret_cast<const sockaddr*>(&four), out.at)) ||
                          (inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1 &&
                           take_endpoint(reinterpret_cast<const sockaddr*>(&six), out.at));
    if (!is_known) {
        refuse_word(word, right);
    }
    return out;
}

std::string own_name() {
    std::array<char, 256> name{};
    (void)gethostname(name.data(), name.size() - 1);
    std::string out{name.data()};
    out = out.substr(0, out.find('.'));
    return is_name(out) ? out : "trafficserver";
}

}  // namespace

// ---- endpoints ----

bool take_endpoint(const sockaddr* from, endpoint& to) noexcept {
    if (from == nullptr) {
        return false;
    }
    to = {};
    if (from->sa_family == AF_INET) {
        to.length = sizeof(sockaddr_in);
    } else if (from->sa_family == AF_INET6) {
        const auto* const six = reinterpret_cast<const sockaddr_in6*>(from);
        if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
            sockaddr_in four{};
            four.sin_family = AF_INET;
            four.sin_port = six->sin6_port;
            std::memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof four.sin_addr);
            return take_endpoint(reinterpret_cast<const sockaddr*>(&four), to);
        }
        to.length = sizeof(sockaddr_in6);
    } else {
        return false;
    }
    std::memcpy(&to.address, from, to.length);
    return true;
}

bool have_one_host(const endpoint& a, const endpoint& b) noexcept {
    if (a.address.ss_family != b.address.ss_family) {
        return false;
    }
    if (a.address.ss_family == AF_INET) {
        return reinterpret_cast<const sockaddr_in&>(a.address).sin_addr.s_addr ==
               reinterpret_cast<const sockaddr_in&>(b.address).sin_addr.s_addr;
    }
    return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a.address).sin6_addr,
                       &reinterpret_cast<const sockaddr_in6&>(b.address).sin6_addr,
                       sizeof(in6_addr)) == 0;
}

namespace {
std::uint16_t port_of(const endpoint& of) noexcept {
    return ntohs(of.address.ss_family == AF_INET
                     ? reinterpret_cast<const sockaddr_in&>(of.address).sin_port
                     : reinterpret_cast<const sockaddr_in6&>(of.address).sin6_port);
}
}  // namespace

bool are_one(const endpoint& a, const endpoint& b) noexcept {
    return have_one_host(a, b) && port_of(a) == port_of(b);
}

std::string endpoint::host() const {
    std::array<char, INET6_ADDRSTRLEN> out{};
    const void* const from = address.ss_family == AF_INET
                                 ? static_cast<const void*>(
                                       &reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                                 : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return inet_ntop(address.ss_family, from, out.data(), out.size()) == nullptr ? "" : out.data();
}

std::string endpoint::text() const {
    const auto name = host();
    return (address.ss_family == AF_INET6 ? "[" + name + "]" : name) + ":" +
           std::to_string(port_of(*this));
}

// ---- words ----

fleet_options parse_fleet(std::span<const char* const> words,
                          std::string_view secrets,
                          std::string_view runtime) {
    fleet_options out;
    bool says_secret = false;
    for (const std::string_view word : words) {
        const auto equals = word.find('=');
        const auto key = word.substr(0, equals);
        const auto value = equals == word.npos ? std::string_view{} : word.substr(equals + 1);
        if (value.empty()) {
            refuse_word(word, "must be option=value, as in secret=/etc/trafficserver/fleet");
        }
        std::chrono::milliseconds duration{0};
        if (key == "secret") {
            says_secret = true;
            out.secret = value == "none" ? "" : path_below(secrets, value);
        } else if (key == "node") {
            if (!is_name(value)) {
                refuse_word(word, "must be 1 to 40 of letters, digits, _ and -");
            }
            out.node = value;
        } else if (key == "state") {
            out.state = path_below(runtime, value);
        } else if (key == "save") {
            if (!read_duration(value, duration) || duration < std::chrono::seconds{1} ||
                duration > std::chrono::hours{24}) {
                refuse_word(word, "must be 1s to 24h, as in save=1m");
            }
            out.save = std::chrono::duration_cast<std::chrono::seconds>(duration);
        } else if (key == "timeout") {
            if (!read_duration(value, duration) || duration < std::chrono::milliseconds{10} ||
                duration > std::chrono::seconds{60}) {
                refuse_word(word, "must be 10ms to 60s, as in timeout=500ms");
            }
            out.timeout = duration;
        } else if (key == "room") {
            if (!read_amount(value, 1024, out.room) || out.room < 1 << 20) {
                refuse_word(word, "must be how many bytes the cache keeps, 1M or more: room=400G");
            }
        } else if (key == "objects") {
            if (!read_amount(value, 1000, out.objects) || out.objects > most_objects) {
                refuse_word(word, "must be 1 to 50M, as in objects=10M");
            }
        } else if (key == "stripes") {
            if (!read_number(value, out.stripes) || out.stripes < 1 || out.stripes > 10'000) {
                refuse_word(word, "must be 1 to 10000: the cache's spans times its volumes");
            }
        } else if (key == "sibling") {
            out.siblings.push_back(sibling_in(word, value));
            const auto& last = out.siblings.back();
            const auto same = std::ranges::count_if(out.siblings, [&](const auto& one) {
                return one.name == last.name || are_one(one.at, last.at);
            });
            if (same > 1 || out.siblings.size() > REPRISE_MOST_SIBLINGS) {
                refuse_word(
                    word,
                    "there are 64 siblings at most, each of a name and an address of its own");
            }
        } else {
            refuse_word(
                word,
                "no such option; there are secret, sibling, node, state, save, room, objects, "
                "stripes and timeout");
        }
    }
    if (!says_secret) {
        throw std::invalid_argument{
            "secret= is missing: the file that all nodes of the fleet share (32 random bytes or "
            "more), or "
            "secret=none, and then whoever reads a digest can test URLs against it"};
    }
    if (out.node.empty()) {
        out.node = own_name();
    }
    return out;
}

}  // namespace reprise::trafficserver
