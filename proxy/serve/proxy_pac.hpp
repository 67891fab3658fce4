#pragma once
// GET /proxy.pac on a forward listener: the script by which browsers and systems set themselves up
// ("automatic proxy configuration"). It names the listener as its client has reached it.

#include "proxy/http/message_head.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::serve {

inline constexpr std::string_view pac_path = "/proxy.pac";
inline constexpr std::string_view pac_type = "application/x-ns-proxy-autoconfig";

/// Whether this asks for it: GET, in origin-form, a query or none.
[[nodiscard]] bool asks_for_pac(const http::request_head& head) noexcept;

/// The script; none where Host names nothing that could stand in it: it is a stranger's text. Hosts
/// without a dot and this machine are asked directly, and so is everything while the proxy does not
/// answer, unless `never_direct`.
/// @param host  of the request; without a port it is the scheme's
[[nodiscard]] std::optional<std::string> proxy_pac(std::string_view host,
                                                   bool by_tls,
                                                   bool never_direct);

}  // namespace reprise::proxy::serve
