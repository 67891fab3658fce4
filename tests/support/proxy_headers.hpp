#pragma once
// PROXY headers of version 2, as a load balancer sends them.

#include <string>
#include <string_view>

namespace reprise::tests {

/// @param command  0x21: PROXY, 0x20: LOCAL
/// @param family   0x11: TCP over IPv4, 0x21: over IPv6
inline std::string proxy_header(unsigned char command,
                                unsigned char family,
                                std::string_view rest) {
    std::string out{"\r\n\r\n\0\r\nQUIT\n", 12};
    out += static_cast<char>(command);
    out += static_cast<char>(family);
    out += static_cast<char>(rest.size() >> 8);
    out += static_cast<char>(rest.size() & 0xff);
    return out.append(rest);
}

/// From this IPv4 address, as four bytes, and port 4321.
inline std::string proxied_from(std::string_view address) {
    std::string rest{address};
    rest.append("\x0a\x00\x00\x01\x10\xe1\x0c\x38", 8);
    return proxy_header(0x21, 0x11, rest);
}

}  // namespace reprise::tests
