#include "proxy/net/address.hpp"
#include "tests/unit/net/addresses.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;

namespace {

address_bytes bytes_of(const std::string& text) {
    return canonical(ip(text));
}

std::vector<std::string> forms(const std::string& text) {
    std::vector<std::string> all;
    for (const auto& each : forms_of(bytes_of(text))) {
        all.push_back(to_address(each).to_string());
    }
    return all;
}

using texts = std::vector<std::string>;

}  // namespace

TEST_SUITE_BEGIN("net/address");

TEST_CASE("IPv4 and its mapped form are one address") {
    CHECK(bytes_of("192.0.2.1") == bytes_of("::ffff:192.0.2.1"));
    CHECK(to_address(bytes_of("::ffff:192.0.2.1")).to_string() == "192.0.2.1");
    CHECK(to_address(bytes_of("2001:db8::1")).to_string() == "2001:db8::1");
}

TEST_CASE("every IPv4 address embedded in an IPv6 one is found") {
    CHECK(forms("192.0.2.1") == texts{"192.0.2.1"});
    CHECK(forms("2001:db8::7f00:1") == texts{"2001:db8::7f00:1"});
    CHECK(forms("::") == texts{"::"});
    CHECK(forms("::1") == texts{"::1"});
    CHECK(forms("::127.0.0.1").at(1) == "127.0.0.1");
    CHECK(forms("::ffff:0:127.0.0.1").at(1) == "127.0.0.1");
    CHECK(forms("2002:7f00:1::5").at(1) == "127.0.0.1");
    CHECK(forms("64:ff9b::a9fe:a9fe").at(1) == "169.254.169.254");
    // Teredo: the server as it is, the client inverted.
    CHECK(forms("2001:0:7f00:1:0:0:5601:5601") ==
          texts{"2001:0:7f00:1::5601:5601", "127.0.0.1", "169.254.169.254"});
    CHECK(forms("2001:1::5601:5601") == texts{"2001:1::5601:5601"});
    // ISATAP, of a private and of a global address, under any prefix.
    CHECK(forms("2001:db8::5efe:7f00:1").at(1) == "127.0.0.1");
    CHECK(forms("fd00::200:5efe:a9fe:a9fe").at(1) == "169.254.169.254");
    CHECK(forms("fd00::100:5efe:a9fe:a9fe").size() == 1);
    // As many as there can be at once.
    CHECK(forms("64:ff9b:1:7f00:0:5efe:a00:1").size() == 5);
    CHECK(forms("2001:0:a00:1:0:5efe:a00:2").size() == 4);
}

TEST_CASE("a local NAT64 prefix is read at every length that RFC 6052 allows") {
    const auto found_in = [](const std::string& text) {
        const auto all = forms(text);
        return std::find(all.begin(), all.end(), "127.0.0.1") != all.end();
    };
    CHECK(found_in("64:ff9b:1:7f00:0:100::"));     // /48
    CHECK(found_in("64:ff9b:1:ab7f:0:1::"));       // /56
    CHECK(found_in("64:ff9b:1:abcd:7f:0:100:0"));  // /64
    CHECK(found_in("64:ff9b:1:abcd:0:0:7f00:1"));  // /96
    CHECK(!found_in("64:ff9b:2:abcd:0:0:7f00:1"));
}

TEST_CASE("addresses are told apart by what they are for") {
    const std::vector<std::pair<std::string, address_kind>> known{
        {"0.0.0.0", address_kind::unspecified},      {"0.1.2.3", address_kind::unspecified},
        {"::", address_kind::unspecified},           {"127.0.0.1", address_kind::loopback},
        {"127.255.255.255", address_kind::loopback}, {"::1", address_kind::loopback},
        {"169.254.0.1", address_kind::link_local},   {"fe80::1", address_kind::link_local},
        {"febf::1", address_kind::link_local},       {"fec0::1", address_kind::ordinary},
        {"224.0.0.1", address_kind::multicast},      {"239.255.255.255", address_kind::multicast},
        {"ff02::1", address_kind::multicast},        {"255.255.255.255", address_kind::broadcast},
        {"169.254.169.254", address_kind::metadata}, {"169.254.170.2", address_kind::metadata},
        {"169.254.170.23", address_kind::metadata},  {"168.63.129.16", address_kind::metadata},
        {"192.0.0.192", address_kind::metadata},     {"fd20:ce::254", address_kind::metadata},
        {"fd00:ec2::23", address_kind::metadata},    {"fd00:42::42", address_kind::metadata},
        {"168.63.129.17", address_kind::ordinary},   {"192.0.0.8", address_kind::reserved},
        {"192.0.1.0", address_kind::ordinary},       {"240.0.0.0", address_kind::reserved},
        {"255.255.255.254", address_kind::reserved}, {"100::1", address_kind::reserved},
        {"100:0:0:1::1", address_kind::reserved},    {"100:0:0:2::1", address_kind::ordinary},
        {"5f00::1", address_kind::reserved},         {"198.18.0.1", address_kind::ordinary},
        {"100.100.100.200", address_kind::metadata}, {"fd00:ec2::254", address_kind::metadata},
        {"10.0.0.1", address_kind::ordinary},        {"fd00::1", address_kind::ordinary},
        {"8.8.8.8", address_kind::ordinary},         {"2001:db8::1", address_kind::ordinary},
    };
    for (const auto& [text, kind] : known) {
        CAPTURE(text);
        CHECK(to_string(kind_of(bytes_of(text))) == to_string(kind));
    }
}

TEST_CASE("a network holds the addresses that share its prefix") {
    const config::network ten{bytes_of("10.0.0.0"), 104};
    CHECK(contains(ten, bytes_of("10.255.0.1")));
    CHECK(!contains(ten, bytes_of("11.0.0.1")));
    const config::network odd{bytes_of("2001:db8:8000::"), 33};
    CHECK(contains(odd, bytes_of("2001:db8:ffff::1")));
    CHECK(!contains(odd, bytes_of("2001:db8:7fff::1")));
    CHECK(contains(config::network{{}, 0}, bytes_of("8.8.8.8")));
    CHECK(contains(config::network{bytes_of("::1"), 128}, bytes_of("::1")));
    CHECK(!contains(config::network{bytes_of("::1"), 128}, bytes_of("::2")));
    CHECK(contains(config::network{bytes_of("::1"), 200}, bytes_of("::1")));
}

TEST_CASE("what others may read as an address is read in every spelling") {
    for (const auto* loopback : {"127.0.0.1",
                                 "127.0.0.1.",
                                 "127.1",
                                 "127.0.1",
                                 "2130706433",
                                 "0x7f000001",
                                 "0X7F.1",
                                 "0x7f.0x0.0.0x1.",
                                 "017700000001",
                                 "0177.0.0.01",
                                 "[::ffff:127.0.0.1]"}) {
        CAPTURE(loopback);
        CHECK(read_numeric_host(loopback) == ip("127.0.0.1"));
    }
    CHECK(read_numeric_host("0") == ip("0.0.0.0"));
    CHECK(read_numeric_host("0x") == ip("0.0.0.0"));
    CHECK(read_numeric_host("4294967295") == ip("255.255.255.255"));
    CHECK(read_numeric_host("10.16777215") == ip("10.255.255.255"));
    for (const auto* name : {"",
                             ".",
                             "4294967296",
                             "18446744073709551617",
                             "10.16777216",
                             "256.1",
                             "1.2.3.4.5",
                             "1.2.3.256",
                             "08",
                             "0x7g",
                             "1..2",
                             "127.0.0.1..",
                             "1.example",
                             "3com.example",
                             "cafe",
                             "-1"}) {
        CAPTURE(name);
        CHECK(!read_numeric_host(name));
    }
}

TEST_CASE("numeric hosts are read in their one plain spelling") {
    CHECK(parse_numeric_host("192.0.2.1") == ip("192.0.2.1"));
    CHECK(parse_numeric_host("2001:db8::1") == ip("2001:db8::1"));
    CHECK(parse_numeric_host("[2001:DB8::1]") == ip("2001:db8::1"));
    CHECK(parse_numeric_host("[::ffff:192.0.2.1]") == ip("192.0.2.1"));
    for (const auto* odd : {"",
                            "127.1",
                            "2130706433",
                            "0x7f000001",
                            "0x7f.0.0.1",
                            "1.2.3.4.5",
                            "1.2.3",
                            "[127.0.0.1]",
                            "fe80::1%eth0",
                            "::1]",
                            "[::1",
                            "[]",
                            "[",
                            "cafe",
                            "a.b.c.d",
                            "1.2.3.256",
                            " 1.2.3.4",
                            "1.2.3.4 "}) {
        CAPTURE(odd);
        CHECK(!parse_numeric_host(odd));
    }
}

TEST_CASE("a leading zero never makes an address octal") {
    // Either refused or decimal, never 8.8.8.8 for 010.8.8.8.
    const auto read = parse_numeric_host("010.8.8.8");
    CHECK((!read || *read == ip("10.8.8.8")));
}

TEST_SUITE_END();
