#include "config/url.hpp"

#include "config/address.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

// An upstream and a pattern are kept in the form that keys have: lower case, no port that goes
// without saying. So a pattern matches however it was spelt; and one that no URL can match is a
// mistake, and not a rule that is never applied.

namespace reprise::config {
namespace {

constexpr std::size_t most_pattern = 2048;

std::string lower(std::string_view text) {
    std::string out{text};
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    return out;
}

constexpr std::uint16_t usual_port(bool secure) noexcept {
    return secure ? 443 : 80;
}

std::optional<std::string> host_of(std::string_view text) {
    if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
        const auto inner = text.substr(1, text.size() - 2);
        const auto address = parse_ip(inner);
        if (!address || inner.find(':') == inner.npos) {
            return std::nullopt;
        }
        const auto shortest = ip_to_string(*address);
        // A mapped address reaches the IPv4 host that it stands for.
        return shortest.find(':') == shortest.npos ? shortest : '[' + shortest + ']';
    }
    const auto host = parse_host(text);
    const auto* found = value_of(host);
    return found ? std::optional{*found} : std::nullopt;
}

struct server {
    std::string scheme, host;  // both in lower case
    std::optional<std::uint16_t> port;
};

// scheme://host[:port][/]; `form` says what would be right.
parsed<server> parse_server(std::string_view text, std::string_view what, std::string_view form) {
    const auto refuse = [form](std::string_view wrong) {
        return refusal{std::string{wrong} + std::string{form}};
    };
    server out;
    const auto scheme_end = text.find("://");
    out.scheme = lower(text.substr(0, scheme_end == text.npos ? 0 : scheme_end));
    if (out.scheme != "http" && out.scheme != "https") {
        return refuse("the scheme must be http or https");
    }
    auto authority = text.substr(scheme_end + 3);
    if (const auto end = authority.find_first_of("/?#"); end != authority.npos) {
        if (authority.substr(end) != "/") {
            return refuse(std::string{what} + " has no path, query or fragment");
        }
        authority = authority.substr(0, end);
    }
    if (authority.find('@') != authority.npos) {
        return refuse(std::string{what} + " has no user information");
    }
    // The last colon outside brackets stands before the port.
    const auto bracket = authority.rfind(']');
    const auto colon = authority.rfind(':');
    const bool has_port = colon != authority.npos && (bracket == authority.npos || colon > bracket);
    auto host = host_of(authority.substr(0, has_port ? colon : authority.npos));
    if (!host) {
        return refuse("the host is not a name or an address (IPv6 stands in brackets)");
    }
    out.host = std::move(*host);
    if (has_port) {
        out.port = parse_port(authority.substr(colon + 1));
        if (!out.port || *out.port == 0) {
            return refuse("the port must be 1 to 65535");
        }
    }
    return out;
}

// Why no URL can have this authority of a pattern, a * wherever one may stand; empty: some can.
std::string_view why_no_authority(std::string_view authority) {
    const auto bracket = authority.rfind(']');
    const auto colon = authority.rfind(':');
    const bool has_port = colon != authority.npos && (bracket == authority.npos || colon > bracket);
    const auto host = authority.substr(0, has_port ? colon : authority.npos);
    if (has_port) {
        const auto port = authority.substr(colon + 1);
        const bool open = port.find('*') != port.npos;
        const auto digits = [](char c) { return c == '*' || (c >= '0' && c <= '9'); };
        const auto number = open ? std::nullopt : parse_port(port);
        if (!std::all_of(port.begin(), port.end(), digits) ||
            (!open && (!number || *number == 0 || port.front() == '0'))) {
            return "the port must be 1 to 65535, or have a *";
        }
    }
    if (host.empty()) {
        return "the host is missing";
    }
    if (host.starts_with('[')) {
        const bool open = host.find('*') != host.npos;
        return open || (host.ends_with(']') && parse_ip(host.substr(1, host.size() - 2)))
                   ? ""
                   : "the host in brackets is no IPv6 address";
    }
    const bool plain = std::all_of(host.begin(), host.end(), [](unsigned char c) {
        return c < 0x80 &&
               (std::isalnum(c) != 0 ||
                std::string_view{"-._~*"}.find(static_cast<char>(c)) != std::string_view::npos);
    });
    return plain ? "" : "no host has such a character (IPv6 stands in brackets, names in ASCII)";
}

// "*.example.org": a * and then nothing but names, the last of which can be a top-level domain. As
// "*.tar.gz" or "*.min.js" it would mean the ends of paths.
bool reads_as_hosts(std::string_view text) {
    constexpr std::string_view of_files[]{
        "gz",  "xz",   "zst", "lzma", "sig",  "asc",  "js",   "css", "map", "htm",  "html", "json",
        "xml", "yaml", "yml", "txt",  "deb",  "udeb", "dsc",  "rpm", "apk", "iso",  "img",  "exe",
        "msi", "dmg",  "jar", "whl",  "tar",  "tgz",  "conf", "pdf", "png", "jpg",  "jpeg", "gif",
        "svg", "webp", "ttf", "woff", "wasm", "cab",  "psf",  "msu", "md",  "diff", "patch"};
    const auto names = text.substr(text.starts_with("*.") ? 2 : 1);
    const auto last_dot = names.rfind('.');
    if (last_dot == names.npos || last_dot == 0) {
        return false;
    }
    const auto letter = [](unsigned char c) { return c < 0x80 && std::isalpha(c) != 0; };
    const auto last = names.substr(last_dot + 1);
    return last.size() >= 2 && std::all_of(last.begin(), last.end(), letter) &&
           std::all_of(names.begin(),
                       names.end(),
                       [](unsigned char c) {
                           return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '.');
                       }) &&
           std::find(std::begin(of_files), std::end(of_files), lower(last)) == std::end(of_files);
}

}  // namespace

bool matches_pattern(std::string_view pattern,
                     std::string_view first,
                     std::string_view second) noexcept {
    const auto size = first.size() + second.size();
    const auto at = [&](std::size_t i) {
        return i < first.size() ? first[i] : second[i - first.size()];
    };
    std::size_t p = 0;
    std::size_t u = 0;
    std::size_t star = std::string_view::npos;
    std::size_t resume = 0;
    while (u < size) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = u;
        } else if (p < pattern.size() && pattern[p] == at(u)) {
            ++p;
            ++u;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            u = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') {
        ++p;
    }
    return p == pattern.size();
}

std::optional<std::uint16_t> port_of_pattern(std::string_view pattern) noexcept {
    const bool secure = pattern.starts_with("https://");
    if (!secure && !pattern.starts_with("http://")) {
        return std::nullopt;
    }
    const auto rest = pattern.substr(pattern.find("//") + 2);
    const auto authority = rest.substr(0, std::min(rest.find('/'), rest.size()));
    const auto colon = authority.rfind(':');
    const auto bracket = authority.rfind(']');
    if (colon != authority.npos && (bracket == authority.npos || colon > bracket)) {
        return parse_port(authority.substr(colon + 1));
    }
    // Without a port a * at the end may stand for one.
    return authority.ends_with('*') ? std::nullopt
                                    : std::optional<std::uint16_t>{usual_port(secure)};
}

parsed<std::string> parse_upstream(std::string_view text) {
    constexpr std::string_view form = ": write http://host[:port] or https://host[:port]";
    const auto answer = parse_server(text, "an upstream", form);
    if (const auto* server = std::get_if<1>(&answer)) {
        return *server;
    }
    const auto& [scheme, host, port] = std::get<0>(answer);
    const bool written = port && *port != usual_port(scheme == "https");
    return scheme + "://" + host + (written ? ':' + std::to_string(*port) : "");
}

parsed<std::string> parse_peer_url(std::string_view text) {
    constexpr std::string_view form = ": write http://host:port or https://host:port";
    const auto answer = parse_server(text, "a peer's url", form);
    if (const auto* server = std::get_if<1>(&answer)) {
        return *server;
    }
    const auto& [scheme, host, port] = std::get<0>(answer);
    if (!port) {
        return refusal{"the port is missing" + std::string{form}};
    }
    return scheme + "://" + host + ':' + std::to_string(*port);
}

parsed<std::string> parse_url_pattern(std::string_view text) {
    if (text.empty() || text.size() > most_pattern) {
        return refusal{"a pattern has 1 to " + std::to_string(most_pattern) + " characters"};
    }
    const bool has_space = std::any_of(
        text.begin(), text.end(), [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
    if (has_space || text.find('#') != text.npos) {
        return refusal{"no requested URL has spaces, control characters or a #fragment"};
    }
    const auto scheme_end = text.find("://");
    if (scheme_end == text.npos) {
        // "*.iso" and "*" begin anywhere; "deb.example.org/*" would never match.
        if (text.front() != '*') {
            return refusal{"begin the pattern with http://, https:// or *"};
        }
        if (reads_as_hosts(text)) {
            const std::string written{text};
            return refusal{"a pattern is for the whole URL, and no URL ends in a host: write *://" +
                           written + "/* for the hosts, or */" + written +
                           " for paths that end so"};
        }
        return std::string{text};
    }
    const auto scheme = lower(text.substr(0, scheme_end));
    if (!matches_pattern(scheme, "http") && !matches_pattern(scheme, "https")) {
        return refusal{"the scheme must be http or https, or have a *"};
    }
    const auto rest = text.substr(scheme_end + 3);
    const auto path_begin = std::min(rest.find_first_of("/?"), rest.size());
    auto authority = lower(rest.substr(0, path_begin));
    auto path = std::string{rest.substr(path_begin)};
    if (authority.empty()) {
        return refusal{"the host is missing after " + scheme + "://"};
    }
    if (authority.find('@') != authority.npos) {
        return refusal{"no requested URL has user information"};
    }
    // As in keys: neither the default port nor the colon of none is there.
    const std::string_view default_port = scheme == "https" ? ":443" : ":80";
    for (const std::string_view none : {default_port, std::string_view{":"}}) {
        if (authority.ends_with(none) && authority.size() > none.size()) {
            authority.resize(authority.size() - none.size());
        }
    }
    if (const auto why = why_no_authority(authority); !why.empty()) {
        return refusal{std::string{why}};
    }
    if (path.empty() && !authority.ends_with('*')) {
        const std::string written = scheme + "://" + authority;
        return refusal{"a pattern is for the whole URL: write " + written +
                       "/* for all of the host, or " + written + "/ for its first page alone"};
    }
    if (path.starts_with('?')) {
        path.insert(path.begin(), '/');
    }
    return scheme + "://" + authority + path;
}

}  // namespace reprise::config
