#include "config/address.hpp"

#include <doctest/doctest.h>

using namespace reprise::config;

namespace {

template <class T>
std::string shown(const parsed<T>& answer) {
    const auto* value = value_of(answer);
    return value ? to_string(*value) : "refused";
}

std::string host(std::string_view text) {
    const auto answer = parse_host(text);
    const auto* value = value_of(answer);
    return value ? *value : "refused";
}

std::string endpoint_form(std::string_view text) {
    return shown(parse_endpoint(text));
}
std::string network_form(std::string_view text) {
    return shown(parse_network(text));
}
std::string destination_form(std::string_view text) {
    return shown(parse_destination(text));
}

}  // namespace

TEST_SUITE("config/address") {
    TEST_CASE("an endpoint is a numeric address and a port") {
        CHECK(endpoint_form("127.0.0.1:3128") == "127.0.0.1:3128");
        CHECK(endpoint_form("[::1]:0") == "[::1]:0");
        CHECK(endpoint_form("[0:0:0::1]:65535") == "[::1]:65535");
        CHECK(endpoint_form("0.0.0.0:80") == "0.0.0.0:80");
        for (const auto* text : {"",
                                 "127.0.0.1",
                                 "localhost:80",
                                 ":80",
                                 "127.0.0.1:",
                                 "127.0.0.1:65536",
                                 "127.0.0.1:080",
                                 "127.0.0.1:+1",
                                 "127.0.0.1:-1",
                                 "127.0.0.1: 80",
                                 "127.1:80",
                                 "127.0.0.01:80",
                                 "::1:80",
                                 "[::1]80",
                                 "[::1",
                                 "[127.0.0.1]:80",
                                 "[fe80::1%lo]:80"}) {
            CAPTURE(text);
            CHECK(endpoint_form(text) == "refused");
        }
        CHECK(endpoint_form({"127.0.0.1\0x:80", 14}) == "refused");
        const auto named = parse_endpoint("localhost:80");
        CHECK(std::get<refusal>(named).right.starts_with("the address must be numeric"));
    }

    TEST_CASE("a network's IPv4 form is held mapped, so that both families compare alike") {
        const auto four = std::get<network>(parse_network("10.0.0.0/8"));
        CHECK(four.prefix_bits == 104);
        CHECK(four == std::get<network>(parse_network("::ffff:10.0.0.0/104")));
        CHECK(to_string(four) == "10.0.0.0/8");
    }

    TEST_CASE("a network is masked, or told how") {
        CHECK(network_form("0.0.0.0/0") == "0.0.0.0/0");
        CHECK(network_form("::/0") == "::/0");
        CHECK(network_form("fc00::/7") == "fc00::/7");
        CHECK(network_form("192.0.2.7") == "192.0.2.7");
        CHECK(network_form("192.0.2.7/32") == "192.0.2.7");
        for (const auto* text : {"10.0.0.0/33",
                                 "10.0.0.0/",
                                 "10/8",
                                 "fc00::/129",
                                 "::1/x",
                                 "host",
                                 "",
                                 "/8",
                                 "10.0.0.0/8/8"}) {
            CAPTURE(text);
            CHECK(network_form(text) == "refused");
        }
        const auto slip = parse_network("10.0.0.1/8");
        CHECK(std::get<refusal>(slip).right ==
              "has bits beyond its prefix: write 10.0.0.0/8 or 10.0.0.1");
    }

    TEST_CASE("the networks that are served by default") {
        std::string all;
        for (const auto& net : private_networks()) {
            all += to_string(net) + ' ';
        }
        CHECK(all == "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 ::1 fc00::/7 fe80::/10 ");
    }

    TEST_CASE("a destination is a host, its subdomains or a network, perhaps with a port") {
        CHECK(destination_form("Host") == "host");
        CHECK(destination_form("*.Host.Example") == "*.host.example");
        CHECK(destination_form("host:80") == "host:80");
        CHECK(destination_form("127.0.0.0/8") == "127.0.0.0/8");
        CHECK(destination_form("127.0.0.1:8000") == "127.0.0.1:8000");
        CHECK(destination_form("10.0.0.0/8:8080") == "10.0.0.0/8:8080");
        CHECK(destination_form("::1") == "::1");
        CHECK(destination_form("[::1]") == "::1");
        CHECK(destination_form("[::1]:80") == "[::1]:80");
        CHECK(destination_form("[fc00::/7]:80") == "[fc00::/7]:80");
        for (const auto* text : {"",
                                 "*",
                                 "a.*.b",
                                 "*.",
                                 "*host",
                                 "host:",
                                 "host:0",
                                 "host:99999",
                                 "[host]:80",
                                 "host/8",
                                 "http://host",
                                 "[::1]x",
                                 "2130706433",
                                 "127.1",
                                 "a b"}) {
            CAPTURE(text);
            CHECK(destination_form(text) == "refused");
        }
    }

    TEST_CASE("what is shown parses to the same again") {
        for (const auto* text : {"host:80",
                                 "*.a.b",
                                 "10.0.0.0/8:8080",
                                 "[::1]:80",
                                 "[fc00::/7]:80",
                                 "::ffff:0:0/96"}) {
            CAPTURE(text);
            const auto once = std::get<destination>(parse_destination(text));
            CHECK(std::get<destination>(parse_destination(to_string(once))) == once);
        }
    }

    TEST_CASE("a host name is lower case and no number in disguise") {
        CHECK(host("Deb.Example.ORG.") == "deb.example.org");
        CHECK(host("under_score.example") == "under_score.example");
        CHECK(host("127.0.0.1") == "127.0.0.1");
        CHECK(host("0xyz.example") == "0xyz.example");
        for (const auto* text : {"",
                                 ".",
                                 "a..b",
                                 ".a",
                                 "a b",
                                 "a/b",
                                 "caf\xc3\xa9.example",
                                 "0x7f.1",
                                 "0x7f",
                                 "1.2.3",
                                 "a.1"}) {
            CAPTURE(text);
            CHECK(host(text) == "refused");
        }
        CHECK(host(std::string(64, 'a') + ".example") == "refused");
        CHECK(host(std::string(63, 'a') + ".example") != "refused");
        std::string long_name;
        while (long_name.size() < 254) {
            long_name += "aaaaa.";
        }
        CHECK(host(long_name + "a") == "refused");
    }

    TEST_CASE("a port range runs forwards") {
        CHECK(shown(parse_port_range("80")) == "80");
        CHECK(shown(parse_port_range("1024-65535")) == "1024-65535");
        for (const auto* text : {"", "-", "0", "0-5", "5-", "-5", "1-2-3", "1-65536", "9-8", "a"}) {
            CAPTURE(text);
            CHECK(shown(parse_port_range(text)) == "refused");
        }
    }
}
