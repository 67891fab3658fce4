#include "config/address.hpp"
#include "tools/from_squid/access.hpp"

#include <doctest/doctest.h>

#include <map>

namespace reprise::from_squid {

namespace {

struct reduced {
    reduced_access access;
    notes told;

    [[nodiscard]] std::vector<std::string> clients() const { return as_settings(access.clients); }
    [[nodiscard]] std::size_t count(fate what) const {
        std::size_t out = 0;
        for (const auto& each : told) {
            out += each.what == what ? 1 : 0;
        }
        return out;
    }
};

reduced of(const std::string& text, bool has_users = false) {
    const file_source files{[&](const std::string& path) -> std::optional<std::string> {
                                return path == "main" ? std::optional{text} : std::nullopt;
                            },
                            [](const std::string&) { return std::vector<std::string>{}; }};
    const auto conf = read_squid_conf("main", files);
    acl_table acls;
    std::vector<const statement*> rules;
    for (const auto& each : conf.statements) {
        if (each.name() == "acl") {
            acls.add(each, files);
        } else {
            rules.push_back(&each);
        }
    }
    reduced out;
    out.access = reduce(rules, acls, has_users, out.told);
    return out;
}

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
}

}  // namespace reprise::from_squid
