#include "proxy/serve/proxy_pac.hpp"

#include <algorithm>

namespace reprise::proxy::serve {

namespace {

constexpr std::size_t most_host = 261;  // a name of 255 bytes, a colon, a port

bool may_stand_in_script(std::string_view host) noexcept {
    return !host.empty() && host.size() <= most_host &&
           std::all_of(host.begin(), host.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
           });
}

bool has_port(std::string_view host) noexcept {
    const auto colon = host.rfind(':');
    const auto bracket = host.rfind(']');
    return colon != host.npos && (bracket == host.npos || colon > bracket);
}

}  // namespace

bool asks_for_pac(const http::request_head& head) noexcept {
    const std::string_view target{head.target};
    return head.method == boost::beast::http::verb::get && target.starts_with(pac_path) &&
           (target.size() == pac_path.size() || target[pac_path.size()] == '?');
}

std::optional<std::string> proxy_pac(std::string_view host, bool by_tls, bool never_direct) {
    if (!may_stand_in_script(host)) {
        return std::nullopt;
    }
    std::string way{by_tls ? "HTTPS " : "PROXY "};
    way.append(host);
    if (!has_port(host)) {
        way.append(by_tls ? ":443" : ":80");
    }
    if (!never_direct) {
        way.append("; DIRECT");
    }
    return "function FindProxyForURL(url, host) {\n"
           "  if (isPlainHostName(host) || host === \"127.0.0.1\" || host === \"[::1]\" || "
           "host === \"::1\") return \"DIRECT\";\n"
           "  return \"" +
           way + "\";\n}\n";
}

}  // namespace reprise::proxy::serve
