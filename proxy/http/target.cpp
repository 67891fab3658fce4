#include "proxy/http/target.hpp"

#include "proxy/http/characters.hpp"
#include "proxy/http/fields.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

// parse_authority() is the one place where a host and a port are read, whatever form they come in.
// While a target is read it is noted whether its text is its own key already (`normal`): then no
// key need be written.

namespace reprise::proxy::http {

namespace {

constexpr std::size_t most_host_bytes = 255;  // a DNS name's own bound (RFC 1035 2.3.4)
constexpr std::string_view http_scheme = "http://";
constexpr std::string_view https_scheme = "https://";
constexpr std::string_view host_for_https = "https";
constexpr std::size_t most_slashes = 3;

enum class host_char : std::uint8_t { refused, plain, upper, dot };

// RFC 3986's reg-name without percent-encoding and sub-delims: no name that DNS resolves has them,
// and other software reads them in other ways. It does that with labels that are empty, too: to a
// Squid "denied.example.." is the host without the dots, to who compares names it is another.
constexpr std::array<host_char, 256> make_host_chars() {
    std::array<host_char, 256> table{};
    for (const char c : std::string_view{"abcdefghijklmnopqrstuvwxyz0123456789-_~"}) {
        table[static_cast<unsigned char>(c)] = host_char::plain;
    }
    table['.'] = host_char::dot;
    for (const char c : std::string_view{"ABCDEFGHIJKLMNOPQRSTUVWXYZ"}) {
        table[static_cast<unsigned char>(c)] = host_char::upper;
    }
    return table;
}
constexpr auto host_chars = make_host_chars();

void append_lower(std::string& out, std::string_view text) {
    const auto begin = out.size();
    out += text;
    std::transform(out.begin() + static_cast<std::ptrdiff_t>(begin),
                   out.end(),
                   out.begin() + static_cast<std::ptrdiff_t>(begin),
                   lower);
}

// host[":"[port]] taken apart. `why` is null when it is well-formed.
struct authority {
    std::string_view host;
    std::uint16_t port = 80;
    bool has_port = false;  // digits stand behind the colon
    bool lower_host = true;
    bool normal = true;  // lower case, and no port where the usual one is meant
    const char* why = nullptr;
};

authority refused(const char* why) noexcept {
    authority out;
    out.why = why;
    return out;
}

bool is_ipv6(std::string_view text) noexcept {
    std::array<char, INET6_ADDRSTRLEN> copy{};
    if (text.size() >= copy.size()) {
        return false;
    }
    std::copy(text.begin(), text.end(), copy.begin());
    std::array<unsigned char, 16> address{};
    return ::inet_pton(AF_INET6, copy.data(), address.data()) == 1;
}

const char* read_port(std::string_view text, std::uint16_t usual_port, authority& out) noexcept {
    constexpr const char* malformed = "a port that is not a number from 1 to 65535";
    if (text.empty()) {  // "host:" is allowed by RFC 3986 3.2.3 and means the default
        out.normal = false;
        return nullptr;
    }
    if (text.front() < '1' || text.front() > '9') {
        return text.front() == '0' ? "a port that begins with 0" : malformed;
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.port);
    if (error != std::errc{} || end != text.data() + text.size()) {
        return malformed;
    }
    out.has_port = true;
    out.normal = out.normal && out.port != usual_port;
    return nullptr;
}

authority parse_authority(std::string_view text, std::uint16_t usual_port = 80) noexcept {
    authority out;
    out.port = usual_port;
    std::size_t host_end = 0;
    bool has_empty_label = false;
    if (text.starts_with('[')) {
        const auto close = text.find(']');
        if (close == std::string_view::npos || !is_ipv6(text.substr(1, close - 1))) {
            return refused("a bracketed host that is no IPv6 address");
        }
        host_end = close + 1;
        out.lower_host = std::none_of(text.begin(),
                                      text.begin() + static_cast<std::ptrdiff_t>(host_end),
                                      [](char c) { return c >= 'A' && c <= 'F'; });
    } else {
        bool begins_label = true;
        for (; host_end < text.size(); ++host_end) {
            const auto kind = host_chars[static_cast<unsigned char>(text[host_end])];
            if (kind == host_char::refused) {
                break;
            }
            has_empty_label = has_empty_label || (begins_label && kind == host_char::dot);
            begins_label = kind == host_char::dot;
            out.lower_host = out.lower_host && kind != host_char::upper;
        }
    }
    if (host_end < text.size() && text[host_end] != ':') {
        return refused(text.find('@') != std::string_view::npos
                           ? "user information in front of the host"
                           : "a character that a host name cannot have");
    }
    if (host_end == 0) {
        return refused("an empty host");
    }
    if (host_end > most_host_bytes) {
        return refused("a host name of more than 255 bytes");
    }
    if (has_empty_label) {
        return refused("a host with two dots in a row, or one in front");
    }
    out.host = text.substr(0, host_end);
    out.normal = out.lower_host;
    if (host_end < text.size()) {
        const auto port = text.substr(host_end + 1);
        out.why = read_port(port, usual_port, out);
        if (out.why != nullptr && port.find('@') != std::string_view::npos) {
            out.why = "user information in front of the host";
        }
    }
    return out;
}

// The part of an absolute-form target between "//" and the path.
std::string_view authority_of(std::string_view behind_slashes) noexcept {
    const auto end = std::find_if(
        behind_slashes.begin(), behind_slashes.end(), [](char c) { return c == '/' || c == '?'; });
    return {behind_slashes.begin(), end};
}

failure bad(const char* why) {
    return {failure_code::bad_request, why};
}

// Letters, digits, "+-." and a colon in front of "//": what is refused by its name.
std::string_view scheme_of(std::string_view raw) noexcept {
    const auto colon = raw.find(':');
    if (colon == std::string_view::npos || !raw.substr(colon + 1).starts_with("//")) {
        return {};
    }
    const auto scheme = raw.substr(0, colon);
    const auto is_letter = [](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
    const auto is_scheme_char = [&](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
    };
    const bool well_formed = !scheme.empty() && is_letter(scheme.front()) &&
                             std::all_of(scheme.begin(), scheme.end(), is_scheme_char);
    return well_formed ? scheme : std::string_view{};
}

attempt<target> parse_absolute(std::string_view raw, target_forms allowed) {
    const auto scheme = raw.starts_with(http_scheme) ? http_scheme.substr(0, 4) : scheme_of(raw);
    if (scheme.empty()) {
        return bad("the request target is neither a URL (http://host/path) nor a path");
    }
    const bool secure = iequals(scheme, "https");
    if (secure && !allowed.has(target_form::secure)) {
        return failure{failure_code::https_absolute_form, "use CONNECT host:443, or ask over TLS"};
    }
    if (!secure && !iequals(scheme, "http")) {
        return failure{failure_code::unsupported_scheme,
                       "the URL's scheme is " + std::string{scheme.substr(0, 32)}};
    }
    const auto rest = raw.substr(secure ? https_scheme.size() : http_scheme.size());
    const auto host_and_port = authority_of(rest);
    const auto parts = parse_authority(host_and_port, secure ? 443 : 80);
    if (parts.why != nullptr) {
        return bad(parts.why);
    }
    target out;
    out.secure = secure;
    out.raw = raw;
    out.host = parts.host;
    out.port = parts.port;
    out.path_and_query = rest.substr(host_and_port.size());
    out.lower_host = parts.lower_host;
    out.normal = parts.normal && raw.starts_with(secure ? https_scheme : http_scheme) &&
                 out.path_and_query.starts_with('/');
    return out;
}

attempt<target> parse_connect(std::string_view raw) {
    const auto parts = parse_authority(raw);
    if (parts.why != nullptr) {
        return bad(parts.why);
    }
    if (!parts.has_port) {
        return bad("CONNECT wants host:port");
    }
    target out;
    out.form = target_form::authority;
    out.raw = raw;
    out.host = parts.host;
    out.port = parts.port;
    out.lower_host = parts.lower_host;
    return out;
}

const char* refused_character(std::string_view raw) noexcept {
    const char* const end = raw.data() + raw.size();
    if (skip_visible(raw.data(), end) != end) {
        return "a control character or space in the request target";
    }
    return raw.find('#') == std::string_view::npos ? nullptr
                                                   : "a fragment (#) in the request target";
}

}  // namespace

attempt<target> parse_target(boost::beast::http::verb method,
                             std::string_view raw,
                             target_forms allowed) {
    using boost::beast::http::verb;
    if (raw.empty()) {
        return bad("an empty request target");
    }
    if (const char* why = refused_character(raw)) {
        return bad(why);
    }
    if (method == verb::connect) {
        return allowed.has(target_form::authority)
                   ? parse_connect(raw)
                   : attempt<target>{bad("CONNECT is not served on this listener")};
    }
    if (raw == "*") {
        if (method != verb::options || !allowed.has(target_form::asterisk)) {
            return bad("the request target * is for OPTIONS alone");
        }
        target out;
        out.form = target_form::asterisk;
        out.raw = raw;
        return out;
    }
    if (raw.front() == '/') {
        if (!allowed.has(target_form::origin)) {
            return bad("this is a proxy: the request target must be a URL, http://host/path");
        }
        target out;
        out.form = target_form::origin;
        out.raw = raw;
        out.path_and_query = raw;
        return out;
    }
    if (!allowed.has(target_form::absolute)) {
        return bad("the request target must be a path");
    }
    return parse_absolute(raw, allowed);
}

attempt<target> with_authority(const target& origin_form, std::string_view host_and_port) {
    const auto parts = parse_authority(host_and_port, origin_form.usual_port());
    if (parts.why != nullptr) {
        return bad(parts.why);
    }
    target out = origin_form;
    out.host = parts.host;
    out.port = parts.port;
    out.lower_host = parts.lower_host;
    out.normal = false;
    return out;
}

bool has_https_prefix(const target& t) noexcept {
    return t.host.size() == host_for_https.size() && !t.secure && t.port == 80 &&
           t.form == target_form::absolute && iequals(t.host, host_for_https);
}

attempt<target> behind_https_prefix(const target& t) {
    const auto slashes = std::min(t.path_and_query.find_first_not_of('/'), t.path_and_query.size());
    if (slashes == 0 || slashes > most_slashes) {
        return bad("behind http://HTTPS come one to three slashes, a host and a path");
    }
    const auto rest = t.path_and_query.substr(slashes);
    const auto host_and_port = authority_of(rest);
    const auto parts = parse_authority(host_and_port, 443);
    if (parts.why != nullptr) {
        return bad(parts.why);
    }
    target out = t;
    out.secure = true;
    out.host = parts.host;
    out.port = parts.port;
    out.path_and_query = rest.substr(host_and_port.size());
    out.lower_host = parts.lower_host;
    out.normal = false;
    return out;
}

const char* check_authority(std::string_view text) noexcept {
    return parse_authority(text).why;
}

void append_key(std::string& out, const target& t) {
    if (t.normal) {
        out += t.raw;
        return;
    }
    out += t.secure ? https_scheme : t.form == target_form::absolute ? http_scheme : "//";
    append_authority(out, t);
    if (!t.path_and_query.starts_with('/')) {
        out += '/';
    }
    out += t.path_and_query;
}

void append_authority(std::string& out, const target& t) {
    if (t.lower_host) {
        out += t.host;
    } else {
        append_lower(out, t.host);
    }
    if (t.port != t.usual_port()) {
        std::array<char, 6> text{':'};
        const auto end = std::to_chars(text.data() + 1, text.data() + text.size(), t.port).ptr;
        out.append(text.data(), end);
    }
}

std::string connect_host(const target& t) {
    const auto bare = t.host.starts_with('[') ? t.host.substr(1, t.host.size() - 2) : t.host;
    std::string out;
    append_lower(out, bare);
    return out;
}

}  // namespace reprise::proxy::http
