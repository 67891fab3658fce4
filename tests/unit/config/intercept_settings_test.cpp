#include "config/changes.hpp"
#include "tests/unit/config/loading.hpp"

#include <string>

using namespace reprise::config;

namespace {

std::string intercept(const std::string& hosts, const std::string& more = "") {
    return R"({ "intercept": { "ca_certificate": "c", "ca_key": "k", "hosts": [)" + hosts + "]" +
           more + "} }";
}

}  // namespace

TEST_SUITE("config/intercept_settings") {
    TEST_CASE("nothing is intercepted unless it is written") {
        CHECK_FALSE(good("{}").intercept);
        CHECK_FALSE(options{}.intercept);
    }

    TEST_CASE("what is not written has a default that opens little") {
        const auto wanted = good(intercept(R"("A.test", "*.b.test")")).intercept;
        REQUIRE(wanted);
        CHECK(wanted->hosts == std::vector<std::string>{"a.test", "*.b.test"});
        CHECK(wanted->except.empty());
        CHECK(wanted->clients == private_networks());
        CHECK(wanted->ports == std::vector<std::uint16_t>{443});
        CHECK_FALSE(wanted->unconstrained);
        CHECK(wanted->leaf_lifetime == std::chrono::hours{7 * 24});
        CHECK(wanted->on_refusal == refusal_answer::tunnel);
    }

    TEST_CASE("hosts and files must be written") {
        const auto told = mistakes_of(R"({ "intercept": {} })");
        REQUIRE(told.size() == 3);
        CHECK(told[0] == "intercept.hosts: missing: it must be written");
        CHECK(told[1] == "intercept.ca_certificate: missing: it must be written");
        CHECK(told[2] == "intercept.ca_key: missing: it must be written");
    }

    TEST_CASE(
        "tunnels that nobody may ask for are not to be opened: clients and ports are access's") {
        const auto with = [](const std::string& more, const std::string& access) {
            auto text = intercept(R"("a.test")", more);
            text.replace(text.rfind('}'), 1, R"(, "access": {)" + access + "} }");
            return text;
        };
        // The default has private networks alone.
        CHECK(mistake_of(with("", R"("clients": ["198.51.100.0/24"])"))
                  .starts_with("intercept.clients: opens nobody's tunnels"));
        (void)good(with(R"(, "clients": ["198.51.100.7"])", R"("clients": ["198.51.100.0/24"])"));
        (void)good(with("", R"("clients": ["198.51.100.0/24", "10.1.0.0/16"])"));
        (void)good(with("", R"("clients": [])"));
        CHECK(
            mistake_of(with(R"(, "ports": [443, 8443])", R"("connect_ports": [443])")) ==
            "intercept.ports[1]: no tunnel leads to port 8443: it is not in access.connect_ports");
        CHECK(
            mistake_of(with("", R"("connect_ports": [8443])")).starts_with("intercept.ports[0]: "));
        (void)good(with(R"(, "ports": [443, 8443])", R"("connect_ports": ["400-8443"])"));
    }

    TEST_CASE("every host, an address, a port or none at all are no hosts, each said") {
        const auto told = mistakes_of(
            intercept(R"("*", "192.0.2.1", "::1", "10.0.0.0/8", "a.test:443", "https://a.test",)"
                      R"( "a..test", "*.*.test")"));
        REQUIRE(told.size() == 8);
        CHECK(told[0].starts_with("intercept.hosts[0]: \"*\": is every site there is"));
        for (const auto i : {1u, 2u, 3u}) {
            CHECK(told[i].find("is an address: certificates are made for names") !=
                  std::string::npos);
        }
        CHECK(told[4].find("has a port: write the host alone") != std::string::npos);
        CHECK(told[5].find("is a URL") != std::string::npos);
        CHECK(mistake_of(intercept("")) == "intercept.hosts: []: must have at least 1");
        CHECK(mistake_of(intercept(R"("a.test")", R"(, "clients": [])"))
                  .starts_with("intercept.clients: []"));
        CHECK(mistake_of(intercept(R"("a.test")", R"(, "except": ["*"])"))
                  .starts_with("intercept.except[0]: \"*\": is every site"));
    }

    TEST_CASE("a host that except shuts is never opened, and that is said") {
        CHECK(mistake_of(intercept(R"("a.test", "x.b.test")", R"(, "except": ["*.b.test"])"))
                  .starts_with("intercept.hosts[1]: \"x.b.test\" is never opened"));
        CHECK(mistake_of(intercept(R"("*.c.b.test")", R"(, "except": ["*.b.test"])"))
                  .starts_with("intercept.hosts[0]: \"*.c.b.test\" is never opened"));
        CHECK(mistakes_of(intercept(R"("b.test", "*.test", "xb.test")",
                                    R"(, "except": ["*.b.test", "a.test"])"))
                  .empty());
    }

    TEST_CASE("a certificate is valid for 825 days at most") {
        CHECK(good(intercept(R"("a.test")", R"(, "leaf_lifetime": "825d")")).intercept);
        CHECK(mistake_of(intercept(R"("a.test")", R"(, "leaf_lifetime": "826d")"))
                  .starts_with("intercept.leaf_lifetime: "));
    }

    TEST_CASE("all of it changes at a reload, its presence too") {
        const auto with = good(intercept(R"("a.test")"));
        auto other = good(intercept(R"("b.test")", R"(, "leaves": 16)"));
        CHECK(needs_restart(options{}, with).empty());
        CHECK(needs_restart(with, options{}).empty());
        CHECK(keep_until_restart(with, other).empty());
        CHECK(other.intercept->hosts[0] == "b.test");
    }
}
