#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::from_squid {

namespace {

// A peer of this kind with these options, behind or beside a proxy of one port.
conversion_result with_peer(const std::string& kind, const std::string& options) {
    const bool is_origin = kind == "originserver";
    return settings_of((is_origin ? "http_port 80 accel\n" : "http_port 3128\n") +
                       ("cache_peer p.example " + (is_origin ? "parent" : kind)) + " 3128 0 " +
                       (is_origin ? "originserver " : "no-query ") + options + "\n");
}

}  // namespace

TEST_SUITE("from_squid/peers") {
    TEST_CASE("each option that is lost has a note") {
        struct lost {
            const char *kind, *option, *note;
            fate what;
        };
        for (const auto& each :
             {lost{"originserver", "forceddomain=a.example", "forceddomain", fate::laxer},
              lost{"originserver", "login=u:p", "login", fate::left_out},
              lost{"originserver", "tls-cafile=/ca.pem", "origins.ca_file", fate::left_out},
              lost{"originserver", "sslcafile=/ca.pem", "origins.ca_file", fate::left_out},
              lost{"originserver", "sslflags=DONT_VERIFY_PEER", "always checked", fate::left_out},
              lost{"originserver", "tls-flags=DONT_VERIFY_PEER", "always checked", fate::left_out},
              lost{"originserver", "sslcrlfile=/crl.pem", "origins.crl_file", fate::laxer},
              lost{"originserver", "proxy-only", "proxy-only", fate::laxer},
              lost{"originserver", "max-conn=9", "origins.connections", fate::left_out},
              lost{"originserver", "tls-min-version=1.2", "tls-min-version", fate::left_out},
              lost{"originserver", "future-thing=1", "future-thing", fate::left_out},
              lost{"parent", "tls-cafile=/ca.pem", "origins.ca_file", fate::left_out},
              lost{"parent", "tls-default-ca=off", "tls-default-ca", fate::laxer},
              lost{"parent", "tls-no-default-ca", "tls-no-default-ca", fate::laxer},
              lost{"parent", "sslflags=NO_DEFAULT_CA", "sslflags", fate::laxer},
              lost{"parent", "proxy-only", "proxy-only", fate::laxer},
              lost{"parent", "weight=3", "evenly", fate::approximated},
              lost{"parent", "default", "default", fate::approximated},
              lost{"parent", "round-robin", "by their hash", fate::approximated},
              lost{"parent", "max-conn=9", "origins.connections", fate::left_out},
              lost{"parent", "connect-timeout=3", "timeouts.origin_connect", fate::left_out},
              lost{"parent", "login=PASS", "not handed on", fate::left_out},
              lost{"parent", "standby=3", "standby", fate::left_out},
              lost{"sibling", "allow-miss", "allow-miss", fate::left_out},
              lost{"sibling", "login=u:p", "login", fate::left_out}}) {
            CAPTURE(each.kind);
            CAPTURE(each.option);
            CHECK(with_peer(each.kind, each.option).says(each.what, each.note));
        }
    }

    TEST_CASE("an option that changes nothing here has none") {
        for (const std::string kind : {"originserver", "parent", "sibling"}) {
            for (const std::string option : {"name=x", "tls", "no-netdb-exchange", "no-tproxy"}) {
                CAPTURE(kind);
                CAPTURE(option);
                CHECK(with_peer(kind, option).made.told.size() ==
                      with_peer(kind, "").made.told.size());
            }
        }
        CHECK(with_peer("originserver", "login=PASSTHRU round-robin").made.told.size() ==
              with_peer("originserver", "").made.told.size());
    }

    TEST_CASE("any option of TLS makes the connection one of TLS") {
        for (const std::string option : {"tls", "ssl", "tls-cafile=/ca.pem", "sslflags=X"}) {
            CAPTURE(option);
            CHECK(with_peer("originserver", option).made.settings.find("https://p.example:3128") !=
                  std::string::npos);
            CHECK(with_peer("parent", option).made.settings.find("https://p.example:3128") !=
                  std::string::npos);
        }
        CHECK(with_peer("parent", "tls-disable").made.settings.find("https://") ==
              std::string::npos);
    }

    TEST_CASE("that several parents share URLs is said, whatever their options") {
        const std::string first = "cache_peer a.example parent 3128 0 no-query\n";
        const auto is_said = [](const std::string& text) {
            return settings_of(text).says(fate::approximated, "several parents share URLs");
        };
        CHECK(is_said(first + "cache_peer b.example parent 3128 0 no-query\n"));
        CHECK(is_said(first + "cache_peer b.example parent 3128 0 no-query round-robin\n"));
        CHECK_FALSE(is_said(first));
        CHECK_FALSE(is_said(first + "cache_peer b.example sibling 3128 0 no-query\n"));
        CHECK_FALSE(is_said(first + "cache_peer b.example parent 80 0 originserver\n"));
    }

    TEST_CASE("an IPv6 address is one, with brackets or without, of an upstream too") {
        for (const std::string host : {"2001:db8::80", "[2001:db8::80]"}) {
            CAPTURE(host);
            const auto upstream = settings_of("http_port 80 accel\ncache_peer " + host +
                                              " parent 8080 0 originserver\n");
            REQUIRE_FALSE(upstream.options.listeners.empty());
            CHECK(upstream.options.listeners[0].upstream == "http://[2001:db8::80]:8080");
            const auto parent = settings_of("cache_peer " + host + " parent 8080 0\n");
            REQUIRE(parent.options.peers.size() == 1);
            CHECK(parent.options.peers[0].url == "http://[2001:db8::80]:8080");
        }
    }
}

}  // namespace reprise::from_squid
