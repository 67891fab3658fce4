#pragma once
// Addresses as a test writes them.

#include "proxy/net/asio.hpp"

#include <boost/asio/ip/address.hpp>

#include <string>

namespace reprise::proxy::net {

inline asio::ip::address ip(const std::string& text) {
    return asio::ip::make_address(text);
}

}  // namespace reprise::proxy::net
