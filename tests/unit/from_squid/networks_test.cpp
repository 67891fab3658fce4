#include "tools/from_squid/networks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <string>
#include <vector>

namespace reprise::from_squid {

namespace {

network_set set_of(std::initializer_list<std::string_view> texts) {
    network_set out;
    for (const auto text : texts) {
        const auto more = parse_addresses(text);
        out.insert(out.end(), more.begin(), more.end());
    }
    return out;
}

using texts = std::vector<std::string>;

std::string hex_of(unsigned value) {
    char out[9];
    return {out, std::to_chars(out, out + sizeof out, value, 16).ptr};
}

}  // namespace

TEST_SUITE("from_squid/networks") {
    TEST_CASE("addresses in all of Squid's forms") {
        CHECK(as_settings(set_of({"10.1.2.3"})) == texts{"10.1.2.3"});
        CHECK(as_settings(set_of({"10.1.2.3/8"})) == texts{"10.0.0.0/8"});
        CHECK(as_settings(set_of({"192.0.2.0/255.255.255.0"})) == texts{"192.0.2.0/24"});
        CHECK(as_settings(set_of({"192.0.2.1-192.0.2.6"})) ==
              texts{"192.0.2.1", "192.0.2.2/31", "192.0.2.4/31", "192.0.2.6"});
        CHECK(as_settings(set_of({"192.0.2.0-192.0.3.0/24"})) == texts{"192.0.2.0/23"});
        CHECK(as_settings(set_of({"0.0.0.0-255.255.255.255"})) == texts{"0.0.0.0/0"});
        CHECK(as_settings(set_of({"2001:db8::/32"})) == texts{"2001:db8::/32"});
        CHECK(as_settings(set_of({"2001:db8::5-2001:db8::6"})) ==
              texts{"2001:db8::5", "2001:db8::6"});
        CHECK(set_of({"::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"}).size() == 254);
        for (const auto* wrong : {"",
                                  "host",
                                  "10.0.0.0/33",
                                  "10.0.0.0/255.0.255.0",
                                  "10.0.0.9-10.0.0.1",
                                  "10.0.0.1-::1",
                                  "10.0.0.1-",
                                  "0.0.0.1-::"}) {
            CAPTURE(wrong);
            CHECK(parse_addresses(wrong).empty());
        }
    }

    TEST_CASE("the families are apart") {
        const auto four = set_of({"0.0.0.0/0"});
        const auto six = set_of({"::/0"});
        CHECK(intersection(four, six).empty());
        CHECK(difference(everybody(), four) == six);
        CHECK(difference(everybody(), six) == four);
        // ::/0 would be for IPv4 too, in settings.
        CHECK(as_settings(six) == texts{"2000::/3", "fc00::/7", "fe80::/10", "::1"});
        CHECK(as_settings(everybody()) == texts{"0.0.0.0/0", "::/0"});
    }

    TEST_CASE("no IPv6 network that is written holds the IPv4 addresses beside it") {
        CHECK(as_settings(set_of({"::/3"})) == texts{"::1"});
        CHECK(as_settings(set_of({"::/1"})) == texts{"2000::/3", "::1"});
        CHECK(as_settings(set_of({"10.0.0.0/8", "::/80"})) == texts{"10.0.0.0/8", "::1"});
        CHECK(as_settings(set_of({"0.0.0.0/0", "::/3"})) == texts{"0.0.0.0/0", "::/3"});
        CHECK(parse_addresses("10.0.0.0/ffff::").empty());
    }

    TEST_CASE("what is taken out of a network leaves the rest of it, and nothing else") {
        const auto rest = difference(set_of({"192.0.2.0/29"}), set_of({"192.0.2.5"}));
        CHECK(as_settings(rest) == texts{"192.0.2.0/30", "192.0.2.6/31", "192.0.2.4"});
        CHECK(difference(set_of({"192.0.2.0/29"}), set_of({"192.0.0.0/16"})).empty());
        CHECK(difference(set_of({"192.0.2.0/29"}), set_of({"10.0.0.0/8"})) ==
              set_of({"192.0.2.0/29"}));
    }

    TEST_CASE("an intersection and the two differences make up each set") {
        const auto a = set_of({"10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32"});
        const auto b = set_of({"10.1.0.0/16", "192.0.0.0/16", "2001:db8:1::/48"});
        CHECK(intersection(a, b) == set_of({"10.1.0.0/16", "192.0.2.0/24", "2001:db8:1::/48"}));
        CHECK(difference(intersection(a, b), a).empty());
        CHECK(intersection(difference(a, b), b).empty());
        CHECK(tidied(set_of({"10.1.0.0/16", "10.0.0.0/8", "10.0.0.0/8"})) ==
              set_of({"10.0.0.0/8"}));
    }

    TEST_CASE("of any two sets each address is in what it should be in") {
        std::mt19937 random{11};
        const auto some = [&] {
            network_set out;
            for (auto left = random() % 6; left > 0; --left) {
                const auto bits = static_cast<unsigned>(random() % 7);
                const auto last = static_cast<unsigned>(random() % 64) & ~((1u << (6 - bits)) - 1);
                const bool four = random() % 2 == 0;
                out.push_back(
                    parse_addresses((four ? "192.0.2." : "2001:db8::") +
                                    (four ? std::to_string(last) + '/' + std::to_string(26 + bits)
                                          : hex_of(last) + '/' + std::to_string(122 + bits)))
                        .front());
            }
            return out;
        };
        const auto is_in = [](const network_set& all, const network_set& one) {
            return intersection(all, one) == one;
        };
        std::vector<network_set> each_address;
        for (unsigned last = 0; last < 64; ++last) {
            each_address.push_back(parse_addresses("192.0.2." + std::to_string(last)));
            each_address.push_back(parse_addresses("2001:db8::" + hex_of(last)));
        }
        for (int i = 0; i < 500; ++i) {
            const auto a = some();
            const auto b = some();
            const auto both = intersection(a, b);
            const auto rest = difference(a, b);
            const auto once = tidied(a);
            for (const auto& one : each_address) {
                const auto held = [&](const network_set& all) {
                    return std::any_of(all.begin(), all.end(), [&](const auto& each) {
                        return is_in({each}, one);
                    });
                };
                const bool in_a = held(a);
                const bool in_b = held(b);
                REQUIRE(held(both) == (in_a && in_b));
                REQUIRE(held(rest) == (in_a && !in_b));
                REQUIRE(held(once) == in_a);
            }
        }
    }

    TEST_CASE("lists as blocklists come cost no square of their length") {
        network_set many;
        for (unsigned i = 0; i < 100'000; ++i) {
            many.push_back(
                parse_addresses(std::to_string(1 + i % 9) + '.' + std::to_string(i / 65'536) + '.' +
                                std::to_string(i / 256 % 256) + '.' + std::to_string(i % 256))
                    .front());
        }
        CHECK(tidied(many).size() == many.size());
        CHECK(intersection(everybody(), many).size() == many.size());
        const auto rest = difference(everybody(), many);
        CHECK(intersection(rest, many).empty());
        CHECK(difference(many, rest).size() == many.size());
    }
}

}  // namespace reprise::from_squid
