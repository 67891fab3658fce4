#include "config/peer_settings.hpp"
#include "config/url.hpp"
#include "tests/unit/config/loading.hpp"

#include <string>

using namespace reprise::config;

namespace {

std::string peers(const std::string& list) {
    return R"({ "peers": [)" + list + "] }";
}

}  // namespace

TEST_SUITE("config/peer_settings") {
    TEST_CASE("a peer needs a url with its port, or a name to look up") {
        CHECK(mistake_of(peers(R"({ "name": "b" })")).starts_with("peers[0].url: missing"));
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b" })"))
                  .ends_with("the port is missing: write http://host:port or https://host:port"));
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "htp://b:1" })"))
                  .find("the scheme must be http or https") != std::string::npos);
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b:1/x" })")).find("has no path") !=
              std::string::npos);
        CHECK(
            mistake_of(peers(R"({ "url": "http://b:1" })")).starts_with("peers[0].name: missing"));
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b:1", "dns": "c" })"))
                  .starts_with("peers[0].dns: a peer has a url or is found by dns"));
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b:1", "port": 3 })"))
                  .starts_with("peers[0].port: belongs to \"dns\" alone"));
    }

    TEST_CASE("a peer's url is put in its normal form") {
        CHECK(*value_of(parse_peer_url("HTTP://B.Example:80/")) == "http://b.example:80");
        CHECK(*value_of(parse_peer_url("https://[::1]:443")) == "https://[::1]:443");
        CHECK_FALSE(value_of(parse_peer_url("http://u@b:1")));
        CHECK_FALSE(value_of(parse_peer_url("http://b:0")));
        CHECK_FALSE(value_of(parse_peer_url("b:3128")));
        CHECK_FALSE(value_of(parse_peer_url("")));
    }

    TEST_CASE("peers found by dns are siblings, called by it") {
        const auto wanted = good(peers(R"({ "dns": "Caches.example" })"));
        REQUIRE(wanted.peers.size() == 1);
        CHECK(wanted.peers[0].name == "caches.example");
        CHECK(mistake_of(peers(R"({ "dns": "a.example", "kind": "parent" })"))
                  .starts_with("peers[0].kind: peers found by dns are siblings"));
    }

    TEST_CASE("a site is a gateway of this protocol, with a url, and has two digests") {
        const auto one = std::string{R"({ "name": "s", "url": "http://s:1", "kind": "site" })"};
        CHECK(good(peers(one)).peers[0].kind == peer_kind::site);
        CHECK(mistake_of(peers(R"({ "dns": "s.example", "kind": "site" })"))
                  .starts_with("peers[0].kind: peers found by dns are siblings: a site is named"));
        CHECK(mistake_of(peers(R"({ "name": "s", "url": "http://s:1", "kind": "site",
                                    "protocol": "squid" })"))
                  .starts_with("peers[0].protocol: a Squid is no gateway"));
        std::string many;
        for (int i = 0; i < 129; ++i) {
            const auto text = std::to_string(i);
            many += many.empty() ? "" : ",";
            many += R"({ "name": "s)" + text + R"(", "url": "http://s:1)" + text +
                    R"(", "kind": "site" })";
        }
        CHECK(mistake_of(peers(many)).find("258 siblings, of which a site is two") !=
              std::string::npos);
        const auto gateway = good(R"({ "peers": [{ "name": "b", "url": "http://b:1" }],
                                       "peering": { "gateway_for": ["10.2.0.0/16", "192.168.2.7"] } })");
        CHECK(mistake_of(R"({ "peering": { "gateway_for": ["192.168.2.7"] } })")
                  .starts_with("peering.gateway_for: speaks for nobody"));
        CHECK(gateway.peering.gateway_for.size() == 2);
        CHECK(mistake_of(R"({ "access": { "clients": ["10.1.0.0/16"] },
                              "peers": [ { "name": "a", "url": "http://10.1.0.2:3128" } ],
                              "peering": { "gateway_for": ["10.1.2.0/24", "10.2.0.0/16"] } })")
                  .starts_with("peering.gateway_for[1]: is not among access.clients"));
        CHECK(mistake_of(R"({ "digest": { "site_nodes": 17 } })").starts_with("digest.site_nodes"));
    }

    TEST_CASE("no two peers share a name") {
        const auto told = mistake_of(peers(R"({ "name": "b", "url": "http://b:1" },
                                              { "name": "b", "url": "http://c:1" })"));
        CHECK(told.starts_with("peers[1].name: peers[0] has the name b already"));
    }

    TEST_CASE("256 siblings and any number of parents are taken") {
        const auto many = [](unsigned siblings, unsigned parents) {
            std::string list;
            for (unsigned i = 0; i < siblings + parents; ++i) {
                list += i == 0 ? "" : ",";
                list.append(R"({ "url": "http://p:1", "name": "p)").append(std::to_string(i));
                list.append(i < siblings ? R"(", "kind": "sibling" })"
                                         : R"(", "kind": "parent" })");
            }
            return peers(list);
        };
        CHECK(good(many(256, 3)).peers.size() == 259);
        CHECK(mistake_of(many(257, 0))
                  .starts_with("peers: 257 siblings, of which a site is two; at most 256"));
    }

    TEST_CASE("proxy_only is a sibling's") {
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b:1", "kind": "parent",
                                    "proxy_only": true })"))
                  .starts_with("peers[0].proxy_only: belongs to siblings"));
    }

    TEST_CASE("max_age is a sibling's, and none unless it is said") {
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b:1", "kind": "parent",
                                    "max_age": "1h" })"))
                  .starts_with("peers[0].max_age: belongs to siblings"));
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b:1", "max_age": "0s" })"))
                  .starts_with("peers[0].max_age: "));
        CHECK_FALSE(good(peers(R"({ "name": "b", "url": "http://b:1" })")).peers[0].max_age);
        CHECK(good(peers(R"({ "dns": "b.example", "max_age": "90s" })")).peers[0].max_age ==
              std::chrono::seconds{90});
    }

    TEST_CASE("refresh and timeout are a sibling's, and a site's") {
        const auto with = [](const std::string& kind, const std::string& member) {
            return peers(R"({ "name": "b", "url": "http://b:1", "kind": ")" + kind + "\", " +
                         member + " }");
        };
        CHECK(mistake_of(with("parent", R"("timeout": "5s")")) ==
              "peers[0].timeout: belongs to siblings: a parent has timeouts.origin_connect and "
              "origin_head");
        CHECK(mistake_of(with("parent", R"("refresh": "5s")")) ==
              "peers[0].refresh: belongs to siblings: no digest is asked of a parent");
        for (const std::string kind : {"sibling", "site"}) {
            CAPTURE(kind);
            CHECK(good(with(kind, R"("timeout": "5s", "refresh": "5s")")).peers[0].timeout ==
                  std::chrono::seconds{5});
        }
    }

    TEST_CASE("credentials are for parents") {
        CHECK(mistake_of(peers(R"({ "name": "b", "url": "http://b:1",
                                    "credentials_file": "/c" })"))
                  .starts_with("peers[0].credentials_file: belongs to parents"));
        CHECK(mistake_of(peers(R"({ "dns": "b.example", "credentials_file": "/c" })"))
                  .starts_with("peers[0].credentials_file: belongs to parents"));
        CHECK(good(peers(R"({ "name": "b", "url": "http://b:1", "credentials_file": "off" })"))
                  .peers[0]
                  .credentials_file.empty());
    }

    TEST_CASE("a way out through parents needs a parent") {
        const std::string through = R"(, "peering": { "never_direct": true } })";
        const auto with = [&](const std::string& list) {
            return R"({ "peers": [)" + list + "]" + through;
        };
        CHECK(mistake_of(R"({ "peering": { "never_direct": true } })")
                  .starts_with("peering.never_direct: leaves no way out"));
        CHECK(mistake_of(with(R"({ "name": "b", "url": "http://b:1" })"))
                  .starts_with("peering.never_direct: leaves no way out"));
        CHECK(good(with(R"({ "name": "b", "url": "http://b:1", "kind": "parent" })"))
                  .peering.never_direct);
    }

    TEST_CASE("a listener's tls needs both files") {
        CHECK(mistake_of(R"({ "listeners": [ { "address": "127.0.0.1:1",
                              "tls": { "certificate": "/c.pem" } } ] })")
                  .starts_with("listeners[0].tls.key: missing"));
    }
}
