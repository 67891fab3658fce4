#include "proxy/serve/proxy_pac.hpp"

#include <doctest/doctest.h>

using namespace reprise::proxy::serve;

TEST_SUITE("serve/proxy_pac") {
    TEST_CASE("the script names the listener as it was reached") {
        const auto plain = proxy_pac("proxy.example:3128", false, false);
        REQUIRE(plain);
        CHECK(plain->find("return \"PROXY proxy.example:3128; DIRECT\";") != std::string::npos);
        CHECK(plain->starts_with("function FindProxyForURL(url, host) {"));
        CHECK(proxy_pac("[::1]:3128", true, true)->find("\"HTTPS [::1]:3128\"") !=
              std::string::npos);
        CHECK(proxy_pac("proxy", false, true)->find("\"PROXY proxy:80\"") != std::string::npos);
        CHECK(proxy_pac("[::1]", true, true)->find("\"HTTPS [::1]:443\"") != std::string::npos);
    }

    TEST_CASE("nothing of a stranger's becomes script") {
        for (const auto* const host : {"", "a\"; alert(1); \"", "a b", "a\\", "a\n", "<a>"}) {
            CAPTURE(host);
            CHECK_FALSE(proxy_pac(host, false, false));
        }
        CHECK_FALSE(proxy_pac(std::string(300, 'a'), false, false));
    }
}
