#include "proxy/net/access.hpp"
#include "proxy/net/address.hpp"

#include <doctest/doctest.h>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using reprise::config::network;

TEST_SUITE_BEGIN("net/access");

TEST_CASE("clients of the listed networks are served, others are not") {
    const auto ip = [](const char* text) { return asio::ip::make_address(text); };
    const std::vector<network> allowed{{canonical(ip("127.0.0.0")), 104},
                                       {canonical(ip("fd00::")), 8}};
    CHECK(client_allowed(allowed, ip("127.0.0.1")));
    CHECK(client_allowed(allowed, ip("::ffff:127.0.0.1")));
    CHECK(client_allowed(allowed, ip("fd12::1")));
    CHECK(!client_allowed(allowed, ip("192.0.2.1")));
    CHECK(!client_allowed(allowed, ip("::1")));
    CHECK(!client_allowed({}, ip("127.0.0.1")));
}

TEST_SUITE_END();
