#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace reprise::from_squid {

TEST_SUITE("from_squid/directives") {
    TEST_CASE("of ssl_bump what ends connections is told as laxer, and nothing else") {
        for (const std::string rest : {"all", "banned", "!banned"}) {
            CAPTURE(rest);
            const auto r = settings_of(
                "acl banned ssl::server_name .a.example\nssl_bump terminate " + rest + "\n");
            CHECK(r.count(fate::laxer) == 1);
            CHECK(r.says(fate::laxer, "access.block_lists"));
        }
        for (const std::string action :
             {"none", "splice", "peek", "stare", "bump", "client-first", "server-first"}) {
            CAPTURE(action);
            const auto r = settings_of("ssl_bump " + action + " all\n");
            CHECK(r.count(fate::laxer) == 0);
            CHECK(r.says(fate::left_out, "intercept opens the tunnels"));
        }
    }

    TEST_CASE("authorities that were not trusted, and are, are told as laxer") {
        for (const std::string line :
             {"tls_outgoing_options default-ca=off",
              "tls_outgoing_options cafile=/ca.pem no-default-ca",
              "tls_outgoing_options flags=NO_DEFAULT_CA",
              "tls_outgoing_options cafile=/ca.pem flags=DONT_VERIFY_DOMAIN,NO_DEFAULT_CA",
              "sslproxy_flags NO_DEFAULT_CA"}) {
            CAPTURE(line);
            const auto r = settings_of(line + "\n");
            CHECK(r.count(fate::laxer) == 1);
            CHECK(r.says(fate::laxer, "the system's authorities are trusted in any case"));
        }
        for (const std::string line : {"tls_outgoing_options cafile=/ca.pem",
                                       "tls_outgoing_options default-ca",
                                       "tls_outgoing_options flags=DONT_VERIFY_PEER",
                                       "sslproxy_flags DONT_VERIFY_PEER"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").count(fate::laxer) == 0);
        }
    }

    TEST_CASE("a list of revoked certificates goes on, and that none is demanded is said") {
        const auto r = settings_of(
            "tls_outgoing_options crlfile=/a.pem cafile=/ca.pem crlfile=/b.pem\n");
        CHECK(r.options.origins.crl_file == "/b.pem");
        CHECK(r.options.origins.ca_file == "/ca.pem");
        CHECK(r.count(fate::laxer) == 2);
        CHECK(r.says(fate::laxer, "origins.crl_file"));
    }

    TEST_CASE("read_timeout bounds the head, the body and a tunnel, as Squid's does") {
        const auto two = settings_of("read_timeout 2 minutes\n");
        CHECK(two.options.timeouts.origin_head == std::chrono::minutes{2});
        CHECK(two.options.timeouts.origin_body == std::chrono::minutes{2});
        CHECK(two.options.timeouts.tunnel_idle == std::chrono::minutes{2});
        CHECK_FALSE(two.says(fate::approximated, "is the most"));
        CHECK(settings_of("connect_timeout 5 seconds\n").options.timeouts.tunnel_idle ==
              config::timeout_options{}.tunnel_idle);
    }

    TEST_CASE("a read_timeout beyond what ours may be is the nearest of those, and said so") {
        const auto longer = settings_of("read_timeout 1 week\n").options.timeouts;
        CHECK(longer.origin_head == std::chrono::hours{24});
        CHECK(longer.origin_body == std::chrono::hours{24});
        CHECK(longer.tunnel_idle == std::chrono::hours{24});
        CHECK(settings_of("read_timeout 1 week\n").says(fate::approximated, "24h is the most"));
        const auto none = settings_of("read_timeout 0\n");
        CHECK(none.options.timeouts.origin_body == std::chrono::milliseconds{10});
        CHECK(none.says(fate::approximated, "10ms is the least"));
        const auto unread = settings_of("read_timeout soon\n");
        CHECK(unread.options.timeouts == config::timeout_options{});
        CHECK(unread.says(fate::left_out, "not a time"));
    }
}

}  // namespace reprise::from_squid
