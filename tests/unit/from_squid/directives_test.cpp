#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

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

    TEST_CASE("name servers are addresses of either kind, with a port or without") {
        const auto r = settings_of(
            "dns_nameservers 2001:db8::53 192.0.2.53\ndns_nameservers [2001:db8::54] "
            "[2001:db8::55]:5353 ns.example\n");
        using config::endpoint;
        CHECK(r.options.dns.servers == std::vector{endpoint{"2001:db8::53", 53},
                                                   endpoint{"192.0.2.53", 53},
                                                   endpoint{"2001:db8::54", 53},
                                                   endpoint{"2001:db8::55", 5353}});
        CHECK(r.says(fate::left_out, "ns.example is no address"));
        CHECK_FALSE(r.says(fate::left_out, "2001:db8::53 is no address"));
    }

    TEST_CASE("what kept something from clients, from the log or from an origin is told as laxer") {
        for (const std::string line : {"client_netmask 255.255.255.0",
                                       "host_verify_strict on",
                                       "sslcrtvalidator_program /x/validate",
                                       "response_delay_pool slow individual-restore=1024"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").count(fate::laxer) == 1);
        }
        for (const std::string line :
             {"client_netmask 255.255.255.255", "host_verify_strict off"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").count(fate::laxer) == 0);
        }
    }

    TEST_CASE("negative_dns_ttl is the least for names that were found, too") {
        const auto r = settings_of("negative_dns_ttl 30 seconds\n");
        CHECK(r.options.dns.negative_ttl == std::chrono::seconds{30});
        CHECK(r.options.dns.min_ttl == std::chrono::seconds{30});
        const auto long_one = settings_of("negative_dns_ttl 2 hours\n");
        CHECK(long_one.options.dns.negative_ttl == std::chrono::hours{2});
        CHECK(long_one.says(fate::left_out, "must not be above dns.max_ttl"));
    }

    TEST_CASE("that write_timeout is for origins alone is said") {
        const auto r = settings_of("write_timeout 2 minutes\n");
        CHECK(r.options.timeouts.origin_upload == std::chrono::minutes{2});
        CHECK(r.says(fate::approximated, "timeouts.client_body"));
    }
}

}  // namespace reprise::from_squid
