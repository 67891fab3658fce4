#include "proxy/peer/discovery.hpp"
#include "tests/unit/net/loop.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_discovery {
namespace {

config::peer_options by_url(const std::string& name, const std::string& url) {
    config::peer_options out;
    out.name = name;
    out.url = url;
    return out;
}

config::peer_options by_dns(const std::string& name) {
    config::peer_options out;
    out.name = name;
    out.dns = name;
    out.port = 4000;
    return out;
}

std::vector<std::string> names_of(const std::vector<followed>& all) {
    std::vector<std::string> out;
    for (const auto& one : all) {
        out.push_back(one.name + " " + one.authority());
    }
    return out;
}

using list = std::vector<std::string>;

/// Answers are kept for as long as they say, and so not at all where that is for no time: the next round looks them up
/// anew.
config::dns_options asking_as_told(const net::fake_dns& server) {
    auto options = net::asking(server);
    options.min_ttl = std::chrono::seconds{0};
    return options;
}

/// A family that has this one address.
tests::dns_reply only(const std::string& address, std::uint32_t ttl = 0) {
    return {.addresses = {address}, .ttl = ttl};
}

struct bench : net::test_loop {
    ~bench() {
        discovery.stop();
        names.stop();
        timer.stop();
        run_for(std::chrono::milliseconds{30});
    }
    net::fake_dns server;
    net::resolver names{timer, asking_as_told(server)};
    std::vector<list> heard;
    sibling_discovery discovery{
        io,
        names,
        [this](const std::vector<followed>& all, const std::vector<peer_address>& addresses) {
            heard.push_back(names_of(all));
            at = addresses;
        }};
    std::vector<peer_address> at;
};

}  // namespace

TEST_SUITE("peer/discovery") {
    TEST_CASE("siblings with a url are followed where it says; parents are not") {
        auto parent = by_url("p", "http://p.example:1");
        parent.kind = config::peer_kind::parent;
        auto squid = by_url("s", "https://[::1]:3129");
        squid.protocol = config::peer_protocol::squid;
        const auto all = configured_siblings(
            std::vector{by_url("a", "http://a.example:3128"), parent, squid, by_dns("d")}, true);
        REQUIRE(all.size() == 2);
        CHECK(all[0].host == "a.example");
        CHECK(all[0].port == 3128);
        CHECK(all[0].authority() == "a.example:3128");
        CHECK(all[0].seen);
        CHECK_FALSE(all[0].https);
        CHECK(all[1].host == "::1");
        CHECK(all[1].authority() == "[::1]:3129");
        CHECK(all[1].https);
        CHECK(all[1].squid);
        CHECK_FALSE(all[1].seen);
        CHECK(all[0].where.may_be("10.0.0.1:3128"));  // it is not known

        const std::vector<std::vector<asio::ip::address>> entries{
            {asio::ip::make_address("10.0.0.1")}};
        const auto there = configured_siblings(
            std::vector{by_url("a", "http://a.example:3128")}, true, entries);
        REQUIRE(there.size() == 1);
        CHECK(there[0].where.may_be("10.0.0.1:3128"));
        CHECK_FALSE(there[0].where.may_be("10.0.0.2:3128"));
        CHECK(there[0] == all[0]);
    }

    TEST_CASE("each address is a sibling of its own, named by it") {
        const std::vector addresses{asio::ip::make_address("10.0.0.2"),
                                    asio::ip::make_address("::1"),
                                    asio::ip::make_address("10.0.0.1"),
                                    asio::ip::make_address("10.0.0.2")};
        CHECK(names_of(discovered_siblings(by_dns("d"), addresses, false)) ==
              list{"d/10.0.0.1 10.0.0.1:4000", "d/10.0.0.2 10.0.0.2:4000", "d/::1 [::1]:4000"});
    }

    TEST_CASE("what a name's addresses are is told, after what needs no name") {
        bench b;
        b.server.set_v4("fleet.example", "10.0.0.7");
        b.discovery.follow({by_url("a", "http://a.example:3128"), by_dns("fleet.example")}, false);
        REQUIRE(b.heard.size() == 1);
        CHECK(b.heard[0] == list{"a a.example:3128"});
        b.run_until([&] { return b.heard.size() == 2; });
        CHECK(b.heard[1] == list{"a a.example:3128", "fleet.example/10.0.0.7 10.0.0.7:4000"});
    }

    TEST_CASE(
        "what there was no memory to hear is told again, and the name goes on being looked up") {
        bench b;
        b.server.set_v4("fleet.example", "10.0.0.7");
        std::vector<list> heard;
        unsigned times = 0;
        sibling_discovery discovery{
            b.io, b.names, [&](const std::vector<followed>& all, const std::vector<peer_address>&) {
                if (++times == 2) {
                    throw std::bad_alloc{};
                }
                heard.push_back(names_of(all));
            }};
        discovery.follow({by_dns("fleet.example")}, false);
        b.run_until([&] { return times == 2; });
        REQUIRE(times == 2);
        CHECK(heard == std::vector<list>{{}});
        discovery.follow({by_dns("fleet.example")}, false);
        REQUIRE(heard.size() == 2);
        CHECK(heard[1] == list{"fleet.example/10.0.0.7 10.0.0.7:4000"});
    }

    TEST_CASE("a new list keeps what is known of a name that stays") {
        bench b;
        b.server.set_v4("fleet.example", "10.0.0.7");
        b.discovery.follow({by_dns("fleet.example")}, false);
        b.run_until([&] { return b.heard.size() == 2; });
        b.discovery.follow({by_url("a", "http://a.example:3128"), by_dns("fleet.example")}, false);
        REQUIRE(b.heard.size() == 3);
        CHECK(b.heard[2].size() == 2);
        b.discovery.follow({}, false);
        CHECK(b.heard.back().empty());
    }

    TEST_CASE("an entry that says something else of the same name keeps what is known of it") {
        bench b;
        b.server.set_v4("a.example", "10.0.0.8");
        b.server.set_v4("fleet.example", "10.0.0.7");
        auto one = by_url("a", "http://a.example:3128");
        auto fleet = by_dns("fleet.example");
        b.discovery.follow({one, fleet}, false);
        b.run_until([&] { return b.at.size() == 2; });
        REQUIRE(b.at.size() == 2);
        const auto at = b.at;
        const auto siblings = b.heard.back();
        const auto times = b.heard.size();
        for (auto* entry : {&one, &fleet}) {
            entry->max_age = std::chrono::seconds{5};
            entry->timeout = std::chrono::milliseconds{50};
            entry->proxy_only = true;
        }
        b.discovery.follow({one, fleet}, false);
        CHECK(b.heard.size() == times);  // nobody went, or came
        CHECK(b.heard.back() == siblings);
        one.url = "http://a.example:3129";
        b.discovery.follow({one, fleet}, false);
        CHECK(b.heard.back() == list{"a a.example:3129", "fleet.example/10.0.0.7 10.0.0.7:4000"});
        CHECK(b.at == at);
        // What is looked up for it is what counts, not what it is called.
        one.url = "http://b.example:3129";
        b.discovery.follow({one, fleet}, false);
        CHECK(b.at == std::vector<peer_address>{at[1]});
    }

    TEST_CASE("a family that is late is told when it is there, while the other's answer holds") {
        for (const bool is_v6_late : {true, false}) {
            CAPTURE(is_v6_late);
            bench b;
            const auto late = is_v6_late ? net::dns_type::aaaa : net::dns_type::a;
            const auto early = is_v6_late ? net::dns_type::a : net::dns_type::aaaa;
            auto reply = only(is_v6_late ? "2001:db8::7" : "10.0.0.7", 3'600);
            reply.delay = std::chrono::milliseconds{600};  // and c-ares asks again in a second
            b.server.set("fleet.example", late, reply);
            b.server.set(
                "fleet.example", early, only(is_v6_late ? "10.0.0.7" : "2001:db8::7", 3'600));
            b.discovery.follow({by_dns("fleet.example"), by_url("u", "http://fleet.example:1")},
                               false);
            b.run_until([&] { return b.at.size() == 4; });
            CHECK(b.at.size() == 4);
            CHECK(b.heard.back() == list{"u fleet.example:1",
                                         "fleet.example/10.0.0.7 10.0.0.7:4000",
                                         "fleet.example/2001:db8::7 [2001:db8::7]:4000"});
        }
    }

    TEST_CASE("a family that can't be had is asked for anew, while the other's answer holds") {
        bench b;
        b.server.set("fleet.example", net::dns_type::a, only("10.0.0.7", 3'600));
        b.server.set("fleet.example", net::dns_type::aaaa, {.rcode = 2});
        b.discovery.follow({by_dns("fleet.example")}, false);
        b.run_until([&] { return b.at.size() == 1; });
        REQUIRE(b.at.size() == 1);
        b.server.set("fleet.example", net::dns_type::aaaa, only("2001:db8::7", 3'600));
        b.run_until([&] { return b.at.size() == 2; });
        CHECK(b.at.size() == 2);
    }

    TEST_CASE("of a family that was not heard what is known stays, whatever the other says") {
        bench b;
        b.server.set("fleet.example", net::dns_type::a, only("10.0.0.7"));
        b.server.set("fleet.example", net::dns_type::aaaa, only("2001:db8::7"));
        b.discovery.follow({by_dns("fleet.example")}, false);
        b.run_until([&] { return b.at.size() == 2; });
        REQUIRE(b.at.size() == 2);
        const auto six = b.at.back();
        REQUIRE(six.at.is_v6());
        b.server.set("fleet.example", net::dns_type::a, only("10.0.0.8"));
        SUBCASE("it is silent") {
            b.server.set("fleet.example", net::dns_type::aaaa, {.silent = true});
        }
        SUBCASE("its question fails") {
            b.server.set("fleet.example", net::dns_type::aaaa, {.rcode = 2});
        }
        b.discovery.follow({by_dns("fleet.example")}, false);  // and it is looked up at once
        const auto is_at_the_new = [&] {
            return std::any_of(b.at.begin(), b.at.end(), [](const peer_address& each) {
                return each.at == asio::ip::make_address("10.0.0.8");
            });
        };
        b.run_until(is_at_the_new);
        REQUIRE(is_at_the_new());
        b.run_for(std::chrono::milliseconds{300});  // more than the other family is waited for
        CHECK(b.at == std::vector<peer_address>{{asio::ip::make_address("10.0.0.8")}, six});
    }

    TEST_CASE("a name is gone when both families say so, and not before") {
        bench b;
        constexpr int no_such_name = 3;
        b.server.set("fleet.example", net::dns_type::a, only("10.0.0.7"));
        b.server.set("fleet.example", net::dns_type::aaaa, only("2001:db8::7"));
        b.discovery.follow({by_dns("fleet.example")}, false);
        b.run_until([&] { return b.at.size() == 2; });
        REQUIRE(b.at.size() == 2);
        const auto asked = b.server.asked("fleet.example", net::dns_type::aaaa);
        b.server.set("fleet.example", net::dns_type::a, {.silent = true});
        b.server.set("fleet.example", net::dns_type::aaaa, {.rcode = no_such_name});
        b.discovery.follow({by_dns("fleet.example")}, false);
        b.run_until([&] { return b.server.asked("fleet.example", net::dns_type::aaaa) > asked; });
        b.run_for(std::chrono::milliseconds{300});
        CHECK(b.at.size() == 2);
        b.server.forget("fleet.example");
        b.run_until([&] { return b.at.empty(); });
        CHECK(b.at.empty());
    }

    TEST_CASE("a name that can't be resolved has nobody yet") {
        bench b;
        b.discovery.follow({by_dns("absent.example")}, false);
        b.run_until([&] { return b.server.asked("absent.example", net::dns_type::a) > 0; });
        b.run_for(std::chrono::milliseconds{30});
        CHECK(b.heard == std::vector<list>{{}});
    }
}

}  // namespace reprise::proxy::peer::test::of_discovery
