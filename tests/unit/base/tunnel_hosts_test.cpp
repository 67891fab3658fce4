#include "proxy/base/tunnel_hosts.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::test::of_tunnel_hosts {

TEST_SUITE_BEGIN("base/tunnel_hosts");

TEST_CASE("the heaviest keys are known exactly while there is room") {
    heaviest<int> some{3};
    some.add("a", 5) = 1;
    some.add("b", 9) = 2;
    some.add("a", 5) += 10;
    const auto all = some.in_order();
    REQUIRE(all.size() == 2);
    CHECK(all[0].key == "a");
    CHECK(all[0].weight == 10);
    CHECK(all[0].not_its_own == 0);
    CHECK(all[0].about == 11);
    CHECK(all[1].key == "b");
}

TEST_CASE("what weighs more than its share of all is there, whatever else comes") {
    constexpr std::size_t places = 8;
    heaviest<int> some{places};
    std::uint64_t all = 0;
    for (unsigned i = 0; i < 10'000; ++i) {
        some.add("light" + std::to_string(i), 1);
        some.add("heavy", 1);
        all += 2;
    }
    const auto order = some.in_order();
    REQUIRE(order.size() == places);
    CHECK(order[0].key == "heavy");
    CHECK(order[0].weight >= all / 2);
    CHECK(order[0].weight - order[0].not_its_own <= all / 2);
    std::uint64_t sum = 0;
    for (const auto& one : order) {
        sum += one.weight;
    }
    CHECK(sum == all);  // no weight is lost, and none is counted twice
}

TEST_CASE("a newcomer begins with nothing that its place's last owner did") {
    tunnel_hosts hosts;
    for (std::size_t i = 0; i < tunnel_hosts::most; ++i) {
        hosts.note_tunnel("host" + std::to_string(i), 443, "off", 1'000);
    }
    hosts.note_tunnel("new.test", 8443, "not-listed", 5'000);
    const auto told = hosts.figures().most_bytes;
    REQUIRE(told.size() == tunnel_hosts::most);
    CHECK(told[0].host == "new.test");
    CHECK(told[0].bytes == 5'000);
    CHECK(told[0].tunnels == 1);
    CHECK(told[0].port == 8443);
}

TEST_CASE("a listed host's tunnels are counted by what became of them") {
    tunnel_hosts hosts;
    const auto inside = hosts.note_opened("a.test", true);
    CHECK(hosts.note_opened("a.test", false) == inside);
    inside->requests += 4;
    inside->hits += 3;
    hosts.note_refused("a.test", false);
    hosts.note_passed_on("a.test", "alpn");
    hosts.note_passed_on("a.test", "sni");
    hosts.note_passed_on("a.test", "alpn");
    hosts.note_passed_on("b.test", "client");
    const auto told = hosts.figures().opened;
    REQUIRE(told.size() == 2);
    CHECK(told[0].host == "a.test");
    CHECK(told[0].opened == 2);
    CHECK(told[0].refused == 1);
    CHECK(told[0].leaves == 1);
    CHECK(told[0].requests == 4);
    CHECK(told[0].hits == 3);
    CHECK(told[0].passed_on == reason_counts{{"alpn", 2}, {"sni", 1}});
    CHECK(told[1].opened == 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::test::of_tunnel_hosts
