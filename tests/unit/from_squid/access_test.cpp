#include "config/address.hpp"
#include "tests/unit/from_squid/reduced.hpp"
#include "tools/from_squid/access.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace reprise::from_squid {

namespace {

using texts = std::vector<std::string>;

std::string ports_text(const port_set& ports) {
    std::string out;
    for (const auto& each : ports) {
        out += (out.empty() ? "" : " ") + config::to_string(each);
    }
    return out;
}

const std::string usual = "acl lan src 10.0.0.0/8\n"
                          "acl safe port 80 443 1025-65535\n"
                          "acl ssl port 443\n"
                          "acl CONNECT method CONNECT\n"
                          "acl bad dstdomain .bad.example worse.example\n";

}  // namespace

TEST_SUITE("from_squid/access") {
    TEST_CASE("the usual chain: ports, then who may") {
        const auto r = of(usual + "http_access deny !safe\nhttp_access deny CONNECT !ssl\n"
                                  "http_access allow localhost\nhttp_access allow lan\n"
                                  "http_access deny all\n");
        CHECK(r.clients() == texts{"127.0.0.1", "::1", "10.0.0.0/8"});
        CHECK(ports_text(r.access.request_ports) == "80 443 1025-65535");
        CHECK(ports_text(r.access.connect_ports) == "443");
        CHECK(r.told.empty());
    }

    TEST_CASE("no rule at all serves nobody, and what none matches has the opposite of the last") {
        CHECK(of("").clients().empty());
        CHECK(of("http_access allow localhost\n").clients() == texts{"127.0.0.1", "::1"});
        const auto rest = of("acl x src 0.0.0.0/1\nhttp_access deny x\n");
        CHECK(rest.clients() == texts{"128.0.0.0/1", "2000::/3", "fc00::/7", "fe80::/10", "::1"});
    }

    TEST_CASE("the first rule that matches a client decides") {
        const auto r = of("acl lan src 10.0.0.0/30\nacl one src 10.0.0.1\n"
                          "http_access deny one\nhttp_access allow lan\nhttp_access deny all\n"
                          "http_access allow all\n");
        CHECK(r.clients() == texts{"10.0.0.2/31", "10.0.0.0"});
        REQUIRE(r.told.size() == 1);
        CHECK(r.told[0].why.find("never reached") != std::string::npos);
        CHECK(of("acl x src 10.0.0.0/8\nhttp_access allow !x\nhttp_access deny all\n")
                  .clients()
                  .front() != "10.0.0.0/8");
    }

    TEST_CASE("destinations that are denied are denied to all who are served") {
        const auto r = of(usual +
                          "http_access deny bad\nhttp_access allow lan\nhttp_access deny all\n");
        CHECK(r.access.deny_destinations == texts{"bad.example", "*.bad.example", "worse.example"});
        CHECK(r.told.empty());
        const auto some = of(usual + "http_access deny localhost bad\nhttp_access allow localhost\n"
                                     "http_access allow lan\nhttp_access deny all\n");
        CHECK(some.access.deny_destinations.size() == 3);
        CHECK(some.count(fate::approximated) == 1);
        const auto nobody = of(usual + "http_access deny localhost bad\nhttp_access allow lan\n"
                                       "http_access deny all\n");
        CHECK(nobody.access.deny_destinations.empty());
        const auto inverse = of(usual + "http_access allow lan !bad\nhttp_access deny all\n");
        CHECK(inverse.access.deny_destinations.size() == 3);
        CHECK(inverse.clients() == texts{"10.0.0.0/8"});
    }

    TEST_CASE("what only some may do, nobody may: never more is allowed without a word") {
        const auto some_hosts = of(usual + "http_access allow lan bad\nhttp_access deny all\n");
        CHECK(some_hosts.clients().empty());
        CHECK(some_hosts.count(fate::left_out) == 1);
        const auto anyway = of(usual + "http_access allow lan bad\nhttp_access allow lan\n"
                                       "http_access deny all\n");
        CHECK(anyway.clients() == texts{"10.0.0.0/8"});
        CHECK(anyway.told.empty());
        const auto only = of(usual + "http_access deny !bad\nhttp_access allow lan\n"
                                     "http_access deny all\n");
        CHECK(only.clients().empty());
        const auto hours = of(usual + "acl work time MTWHF 9:00-17:00\nhttp_access allow lan work\n"
                                      "http_access deny all\n");
        CHECK(hours.clients().empty());
        CHECK(hours.count(fate::laxer) == 0);
    }

    TEST_CASE("a deny with a condition that ours do not know leaves more allowed, and says so") {
        for (const std::string condition : {"url_regex -i evil",
                                            "time MTWHF 9:00-17:00",
                                            "browser Bot",
                                            "method POST",
                                            "maxconn 5"}) {
            CAPTURE(condition);
            const auto r = of(usual + "acl x " + condition +
                              "\nhttp_access deny x\n"
                              "http_access allow lan\n"
                              "http_access deny all\n");
            CHECK(r.count(fate::laxer) == 1);
            CHECK(r.clients() == texts{"10.0.0.0/8"});
        }
        CHECK(of("http_access deny undefined\nhttp_access allow all\n").count(fate::laxer) == 1);
    }

    TEST_CASE("passwords are asked for, or nobody is served who had to show one") {
        const auto text = "acl known proxy_auth REQUIRED\nhttp_access deny !known\n"
                          "http_access allow all\n";
        CHECK(of(text, true).access.needs_users);
        CHECK(of(text, true).clients() == texts{"0.0.0.0/0", "::/0"});
        CHECK_FALSE(of(text, false).access.needs_users);
        CHECK(of(text, false).clients().empty());
        const auto allowed = "acl known proxy_auth REQUIRED\nhttp_access allow known\n"
                             "http_access deny all\n";
        CHECK(of(allowed, true).access.needs_users);
        CHECK(of(allowed, false).clients().empty());
    }

    TEST_CASE("an allow for those without a password allows nobody") {
        const auto r = of("acl known proxy_auth REQUIRED\nacl lan src 10.0.0.0/8\n"
                          "http_access allow lan !known\nhttp_access deny all\n",
                          true);
        CHECK(r.clients().empty());
    }

    TEST_CASE("what has a place of its own: the manager, PURGE, this machine, other protocols") {
        const auto r = of(usual + "acl purge method PURGE\nacl ftp proto FTP\n"
                                  "http_access allow manager localhost\nhttp_access deny manager\n"
                                  "http_access allow purge localhost\nhttp_access deny purge\n"
                                  "http_access deny to_localhost\nhttp_access deny ftp\n"
                                  "http_access allow localhost\nhttp_access deny all\n");
        CHECK(as_settings(r.access.purge_clients) == texts{"127.0.0.1", "::1"});
        CHECK(r.clients() == texts{"127.0.0.1", "::1"});
        CHECK(r.count(fate::laxer) == 0);
    }

    TEST_CASE("ports that are denied, and CONNECT that is") {
        const auto r = of(usual +
                          "acl mail port 25\nhttp_access deny mail\nhttp_access deny CONNECT\n"
                          "http_access allow lan\nhttp_access deny all\n");
        CHECK(ports_text(r.access.request_ports) == "1-24 26-65535");
        CHECK(r.access.connect_ports.empty());
        const auto outside = of(usual + "http_access deny CONNECT !lan\nhttp_access allow lan\n"
                                        "http_access deny all\n");
        CHECK_FALSE(outside.access.connect_bounded);
    }

    TEST_CASE("destinations that can't be read, or are none, allow nobody") {
        for (const std::string partner : {"dst partner.example.com",
                                          "dst 192.0.2.1/77",
                                          "dstdomain \"empty\"",
                                          "dstdomain",
                                          "dst \"empty\"",
                                          "dst"}) {
            CAPTURE(partner);
            const auto r = of("acl partner " + partner +
                              "\nhttp_access allow all partner\nhttp_access deny all\n");
            CHECK(r.clients().empty());
            CHECK(r.count(fate::left_out) >= 1);
            CHECK(r.count(fate::laxer) == 0);
        }
        const auto two = of(usual + "acl none dstdomain \"empty\"\n"
                                    "http_access allow lan none bad\nhttp_access deny all\n");
        CHECK(two.clients().empty());
    }

    TEST_CASE(
        "a deny of no destination or port denies nothing, and one that can't be read says so") {
        for (const std::string none : {"dstdomain \"empty\"", "dst", "port", "port 0"}) {
            CAPTURE(none);
            const auto r = of(usual + "acl none " + none +
                              "\nhttp_access deny none\nhttp_access allow lan\n"
                              "http_access deny all\n");
            CHECK(r.clients() == texts{"10.0.0.0/8"});
            CHECK(r.access.deny_destinations.empty());
            CHECK_FALSE(r.access.ports_bounded);
            CHECK(r.count(fate::laxer) == 0);
        }
        const auto unread = of(usual + "acl partner dst partner.example.com\n"
                                       "http_access deny partner\nhttp_access allow lan\n"
                                       "http_access deny all\n");
        CHECK(unread.clients() == texts{"10.0.0.0/8"});
        CHECK(unread.count(fate::laxer) == 1);
    }

    TEST_CASE("an allow of all but what can't be read allows nobody") {
        for (const std::string but : {"dst partner.example.com",
                                      "dstdomain \"missing\"",
                                      "src laptop.example.com",
                                      "port http",
                                      "url_regex game",
                                      "time MTWHF 9:00-17:00"}) {
            CAPTURE(but);
            const auto r = of(usual + "acl x " + but +
                              "\nhttp_access allow lan !x\nhttp_access deny all\n");
            CHECK(r.clients().empty());
            CHECK(r.count(fate::left_out) >= 1);
            CHECK(r.count(fate::laxer) == 0);
        }
        const auto none = of(usual + "acl x dstdomain \"empty\"\n"
                                     "http_access allow lan !x\nhttp_access deny all\n");
        CHECK(none.clients() == texts{"10.0.0.0/8"});
        CHECK(none.told.empty());
        const auto narrower = of(usual + "acl x url_regex game\nhttp_access allow lan !x\n"
                                         "http_access allow lan ssl\nhttp_access deny all\n");
        CHECK(ports_text(narrower.access.request_ports) == "443");
        CHECK(narrower.count(fate::left_out) == 1);
    }

    TEST_CASE("an allow of some ports and of no tunnel bounds both") {
        const auto r = of(usual + "acl mail port 25 110\n"
                                  "http_access allow lan !mail !CONNECT\nhttp_access deny all\n");
        CHECK(r.clients() == texts{"10.0.0.0/8"});
        CHECK(r.access.ports_bounded);
        CHECK(ports_text(r.access.request_ports) == "1-24 26-109 111-65535");
        CHECK(r.access.connect_bounded);
        CHECK(r.access.connect_ports.empty());
        const auto some = of(usual + "http_access allow lan safe !ssl !CONNECT\n"
                                     "http_access deny all\n");
        CHECK(ports_text(some.access.request_ports) == "80 1025-65535");
        CHECK(some.access.connect_ports.empty());
        const auto later = of(usual + "http_access allow lan ssl\nhttp_access allow lan safe\n"
                                      "http_access deny all\n");
        CHECK(ports_text(later.access.request_ports) == "443");
        CHECK(later.count(fate::approximated) == 1);
    }

    TEST_CASE("a deny of some ports but others denies those alone") {
        const auto r = of(usual + "acl low port 1-1023\nhttp_access deny low !safe\n"
                                  "http_access allow lan\nhttp_access deny all\n");
        CHECK(ports_text(r.access.request_ports) == "80 443 1024-65535");
        const auto plain = of(usual + "acl mail port 25\nhttp_access deny !CONNECT mail\n"
                                      "http_access allow lan\nhttp_access deny all\n");
        CHECK(ports_text(plain.access.connect_ports) == "1-24 26-65535");
        CHECK(plain.count(fate::approximated) == 1);
    }

    TEST_CASE("ports from 0 on are those from 1 on, and what is no port is told") {
        const auto r = of(usual + "acl low port 0-1023\nhttp_access deny low\n"
                                  "http_access allow lan\nhttp_access deny all\n");
        CHECK(ports_text(r.access.request_ports) == "1024-65535");
        CHECK(r.told.empty());
        const auto denied = of(usual + "acl odd port 25 smtp\nhttp_access deny odd\n"
                                       "http_access allow lan\nhttp_access deny all\n");
        CHECK(ports_text(denied.access.request_ports) == "1-24 26-65535");
        CHECK(denied.count(fate::laxer) == 1);
        const auto others = of(usual + "acl odd port 80 70000\nhttp_access deny !odd\n"
                                       "http_access allow lan\nhttp_access deny all\n");
        CHECK(ports_text(others.access.request_ports) == "80");
        CHECK(others.count(fate::left_out) == 1);
        CHECK(others.count(fate::laxer) == 0);
        const auto nothing = of(usual + "acl odd port smtp\nhttp_access allow lan odd\n"
                                        "http_access deny all\n");
        CHECK(nothing.clients().empty());
    }

    TEST_CASE("of rules about PURGE, too, the first that matches decides") {
        const std::string lists = "acl lan src 10.0.0.0/30\nacl wifi src 10.0.0.2/31\n"
                                  "acl PURGE method PURGE\n";
        const std::string rest = "http_access allow PURGE lan\nhttp_access allow lan\n"
                                 "http_access deny all\n";
        const auto r = of(lists + "http_access deny PURGE wifi\n" + rest);
        CHECK(as_settings(r.access.purge_clients) == texts{"10.0.0.0/31"});
        CHECK(r.clients() == texts{"10.0.0.0/30"});
        const auto some = of(
            lists + "acl old dstdomain old.example\nhttp_access deny PURGE wifi old\n" + rest);
        CHECK(as_settings(some.access.purge_clients) == texts{"10.0.0.0/31"});
        CHECK(some.count(fate::approximated) == 1);
        const auto unknown = of(lists + "http_access deny PURGE undefined\n" + rest);
        CHECK(unknown.access.purge_clients.empty());
        CHECK(unknown.count(fate::laxer) == 0);
        const auto after = of(lists + rest + "http_access deny PURGE wifi\n");
        CHECK(as_settings(after.access.purge_clients) == texts{"10.0.0.0/30"});
        const auto but = of(lists + "http_access allow PURGE wifi\nhttp_access allow lan !PURGE\n"
                                    "http_access deny all\n");
        CHECK(as_settings(but.access.purge_clients) == texts{"10.0.0.2/31"});
        CHECK(but.clients() == texts{"10.0.0.0/30"});
    }

    TEST_CASE("PURGE that is for more than addresses is for nobody") {
        for (const std::string condition : {"known", "!known", "safe", "!safe", "to_localhost"}) {
            CAPTURE(condition);
            const auto r = of(usual +
                                  "acl known proxy_auth REQUIRED\nacl PURGE method PURGE\n"
                                  "http_access allow PURGE " +
                                  condition + "\nhttp_access allow lan\nhttp_access deny all\n",
                              true);
            CHECK(r.access.purge_clients.empty());
            CHECK(r.count(fate::left_out) == 1);
        }
    }

    TEST_CASE("a rule without a condition is none, as in Squid") {
        const auto r = of(usual + "http_access allow\nhttp_access deny all\n");
        CHECK(r.clients().empty());
        CHECK(r.count(fate::left_out) == 1);
        CHECK(of(usual + "http_access allow lan\nhttp_access deny\n").clients() ==
              texts{"10.0.0.0/8"});
    }

    TEST_CASE("everybody has more names than all") {
        for (const std::string all :
             {"0/0", "0.0.0.0/0", "0.0.0.0/0.0.0.0", "0.0.0.0-255.255.255.255"}) {
            CAPTURE(all);
            const auto r = of(usual + "acl world src " + all +
                              "\nhttp_access allow lan\nhttp_access deny world\n");
            CHECK(r.clients() == texts{"10.0.0.0/8"});
            const auto to = of(usual + "acl anywhere dst " + all +
                               "\nhttp_access deny anywhere\nhttp_access allow lan\n"
                               "http_access deny all\n");
            CHECK(to.access.deny_destinations == texts{"0.0.0.0/0", "::/0"});
        }
        const auto six =
            of("acl six src ipv6\nhttp_access allow six\nhttp_access deny all\n").clients();
        CHECK(std::find(six.begin(), six.end(), "2000::/3") != six.end());
        CHECK(std::find(six.begin(), six.end(), "::1") == six.end());
        // What is left of IPv6 holds no IPv4 address in settings.
        const auto rest = of("acl some src 8000::/1 ipv4\nhttp_access deny some\n").clients();
        CHECK(rest == texts{"2000::/3", "::1"});
        // Squid compares IPv4 addresses as IPv6 ones: they are in the lower half of those.
        CHECK(of("acl low src ::/1\nhttp_access deny low\n").clients() == texts{"8000::/1"});
    }

    TEST_CASE("a mask of no bits is nobody's, but for the names of all") {
        for (const std::string none : {"::/0", "10.0.0.0/0", "10.0.0.0/0.0.0.0"}) {
            CAPTURE(none);
            const auto r = of("acl x src " + none +
                              "\nhttp_access allow x\nhttp_access deny all\n");
            CHECK(r.clients().empty());
            CHECK(r.count(fate::left_out) == 1);
            const auto denied = of(usual + "acl x src " + none +
                                   "\nhttp_access deny x\nhttp_access allow lan\n"
                                   "http_access deny all\n");
            CHECK(denied.clients() == texts{"10.0.0.0/8"});
            CHECK(denied.count(fate::laxer) == 1);
        }
    }

    TEST_CASE("a list's name is one in whatever case, as in Squid") {
        const auto r = of("acl Bad dstdomain one.example\nacl bad dstdomain two.example\n"
                          "http_access deny BAD\nhttp_access deny connect\n"
                          "http_access allow Localhost\nhttp_access deny all\n");
        CHECK(r.access.deny_destinations == texts{"one.example", "two.example"});
        CHECK(r.access.connect_ports.empty());
        CHECK(r.clients() == texts{"127.0.0.1", "::1"});
        CHECK(r.told.empty());
    }

    TEST_CASE("a protocol that is written in another case, or NONE, is no foreign one") {
        for (const std::string spoken : {"Http", "NONE", "FTP NONE"}) {
            CAPTURE(spoken);
            const auto r = of(usual + "acl x proto " + spoken +
                              "\nhttp_access deny x\nhttp_access allow lan\n"
                              "http_access deny all\n");
            CHECK(r.count(fate::laxer) == 1);
        }
        CHECK(of(usual + "acl x proto ftp Gopher\nhttp_access deny x\nhttp_access allow lan\n")
                  .count(fate::laxer) == 0);
    }
}

}  // namespace reprise::from_squid
