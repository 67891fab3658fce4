#include "proxy/net/guard.hpp"
#include "tests/unit/net/addresses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <sys/resource.h>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;
using verdict = destination_verdict;

namespace {

config::destination host(std::string name, std::optional<std::uint16_t> port = {}) {
    return {std::move(name), std::nullopt, port};
}

config::destination to_network(const std::string& address,
                               unsigned bits,
                               std::optional<std::uint16_t> port = {}) {
    return {"", config::network{canonical(ip(address)), bits}, port};
}

destination_guard guard_with(std::vector<config::destination> allow,
                             std::vector<config::destination> deny = {}) {
    config::access_options access;
    access.allow_destinations = std::move(allow);
    access.deny_destinations = std::move(deny);
    const std::vector own{ip("10.0.0.5"), ip("2001:db8::5")};
    return {access, own};
}

}  // namespace

TEST_SUITE_BEGIN("net/guard");

TEST_CASE("the public and private networks are allowed by default") {
    const auto guard = guard_with({});
    for (const auto* each : {"8.8.8.8", "10.0.0.6", "192.168.1.1", "fd00::1", "2001:db8::6"}) {
        CAPTURE(each);
        CHECK(guard.check("a.test", ip(each), 80) == verdict::allowed);
    }
}

TEST_CASE("what only this machine can reach is refused in every form") {
    const auto guard = guard_with({});
    const std::vector<std::pair<std::string, verdict>> refused{
        {"127.0.0.1", verdict::loopback},
        {"::1", verdict::loopback},
        {"::ffff:127.0.0.1", verdict::loopback},
        {"::127.0.0.1", verdict::loopback},
        {"::ffff:0:127.0.0.1", verdict::loopback},
        {"64:ff9b::127.0.0.1", verdict::loopback},
        {"64:ff9b:1:7f00:0:100::", verdict::loopback},
        {"2002:7f00:1::", verdict::loopback},
        {"0.0.0.0", verdict::unspecified},
        {"::", verdict::unspecified},
        {"169.254.1.1", verdict::link_local},
        {"fe80::1", verdict::link_local},
        {"2002:a9fe:0101::", verdict::link_local},
        {"224.0.0.1", verdict::multicast},
        {"ff02::1", verdict::multicast},
        {"255.255.255.255", verdict::broadcast},
        {"169.254.169.254", verdict::metadata},
        {"64:ff9b::169.254.169.254", verdict::metadata},
        {"100.100.100.200", verdict::metadata},
        {"fd00:ec2::254", verdict::metadata},
        {"168.63.129.16", verdict::metadata},
        {"192.0.0.192", verdict::metadata},
        {"fd20:ce::254", verdict::metadata},
        {"fd00:ec2::23", verdict::metadata},
        {"2001:0:808:808::5601:5601", verdict::metadata},
        {"2001:0:7f00:1::f7f7:f7f7", verdict::loopback},
        {"fd00::5efe:10.0.0.5", verdict::own_address},
        {"192.0.0.1", verdict::reserved},
        {"64:ff9b::f000:1", verdict::reserved},
        {"10.0.0.5", verdict::own_address},
        {"::ffff:10.0.0.5", verdict::own_address},
        {"2002:0a00:0005::1", verdict::own_address},
        {"2001:db8::5", verdict::own_address},
    };
    for (const auto& [text, expected] : refused) {
        CAPTURE(text);
        CHECK(to_string(guard.check("a.test", ip(text), 80)) == to_string(expected));
    }
}

TEST_CASE("an allowed network is an exception, for its port") {
    const auto guard = guard_with({to_network("127.0.0.0", 104, 8080)});
    CHECK(guard.check("a.test", ip("127.0.0.1"), 8080) == verdict::allowed);
    CHECK(guard.check("a.test", ip("127.0.0.1"), 8081) == verdict::loopback);
    CHECK(guard.check("a.test", ip("64:ff9b::7f00:1"), 8080) == verdict::allowed);
    CHECK(guard.check("a.test", ip("::1"), 8080) == verdict::loopback);
}

TEST_CASE("an allowed host is an exception wherever its name leads") {
    const auto guard = guard_with({host("mirror.test"), host("*.sub.test", 8080)});
    CHECK(guard.check("mirror.test", ip("127.0.0.1"), 80) == verdict::allowed);
    CHECK(guard.check("MIRROR.test.", ip("::1"), 80) == verdict::allowed);
    CHECK(guard.check("x.mirror.test", ip("127.0.0.1"), 80) == verdict::loopback);
    CHECK(guard.check("a.b.sub.test", ip("127.0.0.1"), 8080) == verdict::allowed);
    CHECK(guard.check("a.sub.test", ip("127.0.0.1"), 80) == verdict::loopback);
    CHECK(guard.check("sub.test", ip("127.0.0.1"), 8080) == verdict::loopback);
    CHECK(guard.check("notsub.test", ip("127.0.0.1"), 8080) == verdict::loopback);
}

TEST_CASE("a denied destination is refused, even when it is allowed too") {
    const auto guard = guard_with({host("mirror.test"), to_network("192.0.2.0", 120)},
                                  {to_network("192.0.2.7", 128), host("bad.test", 80)});
    CHECK(guard.check("mirror.test", ip("192.0.2.7"), 80) == verdict::denied);
    CHECK(guard.check("mirror.test", ip("64:ff9b::192.0.2.7"), 80) == verdict::denied);
    CHECK(guard.check("mirror.test", ip("192.0.2.8"), 80) == verdict::allowed);
    CHECK(guard.check("bad.test", ip("8.8.8.8"), 80) == verdict::denied);
    CHECK(guard.check("bad.test", ip("8.8.8.8"), 81) == verdict::allowed);
}

TEST_CASE("a configured upstream passes whatever the rules say") {
    const auto guard = guard_with({}, {to_network("127.0.0.0", 104)});
    CHECK(guard.check("127.0.0.1", ip("127.0.0.1"), 80, true) == verdict::allowed);
    CHECK(guard.check("127.0.0.1", ip("127.0.0.1"), 80, false) == verdict::denied);
}

TEST_CASE("a host that is an address is judged as one, however it is spelt") {
    const auto guard = guard_with({to_network("127.0.0.0", 104, 8080)}, {host("127.0.0.9")});
    const auto refused = judge_literal(guard, "0x7f.1", 80);
    REQUIRE(refused);
    CHECK(refused->code == failure_code::destination_refused);
    CHECK(refused->detail ==
          "127.0.0.1:80 is a loopback address; access.allow_destinations can make an exception");
    CHECK(judge_literal(guard, "[64:ff9b::a9fe:a9fe]", 80));
    CHECK(judge_literal(guard, "10.0.0.5.", 80));
    CHECK_FALSE(judge_literal(guard, "127.1", 8080));
    CHECK_FALSE(judge_literal(guard, "10.0.0.6", 80));
    // Names are judged by where they lead.
    CHECK_FALSE(judge_literal(guard, "localhost", 80));
    CHECK_FALSE(judge_literal(guard, "1.example", 80));
}

TEST_CASE("this machine's addresses have loopback among them") {
    const auto own = local_addresses();
    REQUIRE(own);
    CHECK(std::find(own->begin(), own->end(), ip("127.0.0.1")) != own->end());
    CHECK(make_guard({})->check("a.test", own->front(), 80) != verdict::allowed);
}

TEST_CASE("no guard is made that does not know this machine's addresses") {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto own = local_addresses();
    std::exception_ptr thrown;
    try {
        (void)make_guard({});
    } catch (...) {
        thrown =
            std::current_exception();  // looked at later: a sanitizer wants a descriptor for that
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
    REQUIRE(thrown);
    std::string why;
    try {
        std::rethrow_exception(thrown);
    } catch (const std::runtime_error& refused) {
        why = refused.what();
    }
    CHECK_FALSE(own);
    CHECK(
        why ==
        "the addresses of this machine, which no client may reach through the proxy, can't be read "
        "(getifaddrs): Too many open files");
}

TEST_CASE("ports are allowed by range and by list") {
    const config::access_options defaults;
    CHECK(port_allowed(std::span{defaults.request_ports}, 80));
    CHECK(port_allowed(std::span{defaults.request_ports}, 65535));
    CHECK(!port_allowed(std::span{defaults.request_ports}, 25));
    CHECK(!port_allowed(std::span{defaults.request_ports}, 0));
    CHECK(port_allowed(std::span{defaults.connect_ports}, 443));
    CHECK(!port_allowed(std::span{defaults.connect_ports}, 22));
}

TEST_SUITE_END();
