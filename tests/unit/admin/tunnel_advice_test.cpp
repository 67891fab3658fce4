#include "proxy/admin/tunnel_advice.hpp"

#include <doctest/doctest.h>

using namespace reprise;
using namespace reprise::proxy;
using namespace reprise::proxy::admin;

namespace reprise::proxy::admin::test::of_tunnel_advice {

namespace {
tunnel_hosts::unlisted host(std::string_view why, std::uint16_t port = 443) {
    return {"big.test", 1'000, 1, port, why};
}
}  // namespace

TEST_SUITE_BEGIN("admin/tunnel_advice");

TEST_CASE("where nothing is opened the whole setting is told") {
    CHECK(line_that_opens(host("off"), {}) ==
          R"("intercept": { "hosts": ["big.test"], "ca_certificate": "ca.pem", "ca_key": "ca.key" })");
    CHECK(line_that_opens(host("off", 8443), {}).find(R"("ports": [443, 8443])") !=
          std::string::npos);
}

TEST_CASE("elsewhere the member that changes is, with what it has") {
    config::intercept_options now;
    now.hosts = {"a.test", "*.b.test"};
    CHECK(line_that_opens(host("not-listed"), now) ==
          R"("hosts": ["a.test","*.b.test","big.test"])");
    CHECK(line_that_opens(host("not-listed", 8443), now) ==
          R"("hosts": ["a.test","*.b.test","big.test"], "ports": [443,8443])");
    CHECK(line_that_opens(host("port", 8443), now) == R"("ports": [443,8443])");
}

TEST_CASE("what no line would open has none") {
    const config::intercept_options now;
    for (const auto* why : {"address", "except", "client", "alpn", "sni", "client-refused"}) {
        CHECK(line_that_opens(host(why), now).empty());
    }
    CHECK(line_that_opens({"192.0.2.7", 1'000, 1, 443, "off"}, {}).empty());
}

TEST_SUITE_END();

}  // namespace reprise::proxy::admin::test::of_tunnel_advice
