#include "proxy/net/proxy_protocol.hpp"
#include "tests/support/proxy_headers.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace reprise::proxy::net;
using reprise::tests::proxied_from;
using reprise::tests::proxy_header;

namespace {

const std::string four{"\x0a\x01\x02\x03\x0a\x00\x00\x01\x10\xe1\x0c\x38", 12};

std::string client_in(const std::string& header) {
    const auto said = read_proxy_header(header);
    if (!said) {
        return "none";
    }
    return said->client
               ? said->client->address().to_string() + ' ' + std::to_string(said->client->port())
               : "its own";
}

}  // namespace

TEST_SUITE_BEGIN("net/proxy_protocol");

TEST_CASE("the client's address and port are read, whatever follows them") {
    CHECK(client_in(proxied_from("\x0a\x01\x02\x03")) == "10.1.2.3 4321");
    CHECK(client_in(proxy_header(0x21, 0x11, four + std::string(4084, 'x'))) == "10.1.2.3 4321");
    const std::string six{"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", 16};
    CHECK(client_in(proxy_header(0x21, 0x21, six + six + four.substr(8))) == "2001:db8::1 4321");
}

TEST_CASE("a front's own connection, and one without an IP address, name no client") {
    CHECK(client_in(proxy_header(0x20, 0x00, "")) == "its own");
    CHECK(client_in(proxy_header(0x20, 0x11, four)) == "its own");
    CHECK(client_in(proxy_header(0x21, 0x00, "")) == "its own");
    CHECK(client_in(proxy_header(0x21, 0x31, std::string(216, '\0'))) == "its own");
}

TEST_CASE("what is no such header is none") {
    const auto good = proxied_from("\x0a\x01\x02\x03");
    for (std::size_t size = 0; size < good.size(); ++size) {
        CHECK(client_in(good.substr(0, size)) == "none");
    }
    CHECK(client_in(good + 'x') == "none");
    for (const std::size_t at : {0u, 4u, 11u}) {
        auto other = good;
        other[at] = 'x';
        CHECK(client_in(other) == "none");
    }
    CHECK(client_in(proxy_header(0x11, 0x11, four)) == "none");  // another version
    CHECK(client_in(proxy_header(0x22, 0x11, four)) == "none");  // no command
    CHECK(client_in(proxy_header(0x21, 0x12, four)) == "none");  // UDP
    CHECK(client_in(proxy_header(0x21, 0x41, four)) == "none");  // no family
    CHECK(client_in(proxy_header(0x21, 0x11, four.substr(1))) == "none");
    CHECK(client_in(proxy_header(0x21, 0x21, four)) == "none");
    CHECK_FALSE(proxy_rest(proxy_header(0x21, 0x11, std::string(4097, 'x')).substr(0, 16)));
    CHECK(proxy_rest(good.substr(0, 16)) == 12);
}

TEST_SUITE_END();
