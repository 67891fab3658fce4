#include "proxy/net/access.hpp"

#include <algorithm>

namespace reprise::proxy::net {

bool is_in(const std::vector<config::network>& networks, const address_bytes& address) noexcept {
    return std::any_of(networks.begin(), networks.end(), [&](const config::network& each) {
        return contains(each, address);
    });
}

bool client_allowed(const std::vector<config::network>& allowed,
                    const asio::ip::address& client) noexcept {
    return is_in(allowed, canonical(client));
}

}  // namespace reprise::proxy::net
