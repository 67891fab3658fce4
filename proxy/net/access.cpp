#include "proxy/net/access.hpp"

#include "proxy/net/address.hpp"

#include <algorithm>

namespace reprise::proxy {

bool client_allowed(const std::vector<config::network>& allowed,
                    const net::ip::address& client) noexcept {
    const auto bytes = canonical(client);
    return std::any_of(allowed.begin(), allowed.end(), [&](const config::network& each) {
        return contains(each, bytes);
    });
}

}  // namespace reprise::proxy
