#include "tools/fleet/fleet.hpp"
#include "tools/fleet/sites.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

using namespace reprise::fleet;
using namespace std::chrono_literals;

namespace {

request wanted(object_number object, std::uint32_t seconds = 0) {
    const auto low = (object + 1) * std::uint64_t{0x9e3779b97f4a7c15};
    return {.key = {low ^ low >> 29, low * 31 ^ low >> 13},
            .bytes = 1 + object % 9,
            .object = object,
            .seconds = seconds};
}

fleet_plan in_sites(node_number nodes, node_number sites, finding how = finding::sites) {
    fleet_plan out;
    out.nodes = nodes;
    out.how = how;
    out.capacity = 1'000'000;
    out.exchange.sites = sites;
    out.exchange.how = delivery::news;
    out.exchange.source.news = 200ms;
    out.exchange.source.false_positive_rate = 1e-4;
    return out;
}

/// Skewed requests, so many a second.
fleet_tally played_in_sites(const fleet_plan& plan, std::uint32_t a_second) {
    fleet all{plan};
    std::mt19937_64 random{7};
    std::uniform_real_distribution<double> unit{0, 1};
    for (std::uint32_t i = 0; i < 8'000; ++i) {
        const auto object = static_cast<object_number>(std::pow(unit(random), 2.0) * 2'000);
        all.ask(wanted(object, i / a_second),
                static_cast<node_number>(random() % plan.nodes),
                milliseconds{1'000 * (i % a_second) / a_second});
    }
    return all.figures();
}

}  // namespace

TEST_SUITE_BEGIN("fleet/sites");

TEST_CASE("a node follows those of its site, and of each other site its gateway's two digests") {
    const site_map where{6, 2};
    CHECK(where.gateway_of(1) == 3);
    CHECK(where.teller_of(where.members_of(1)) == 3);
    const auto followed_by = [&](node_number reader) {
        std::vector<digest_number> out;
        for (digest_number digest = 0; digest < 8; ++digest) {
            if (where.follows(reader, digest)) {
                out.push_back(digest);
            }
        }
        return out;
    };
    CHECK(followed_by(0) == std::vector<digest_number>{1, 2, 3, 7});
    CHECK(followed_by(5) == std::vector<digest_number>{0, 3, 4, 6});
    CHECK_THROWS_AS((site_map{6, 4}), std::invalid_argument);
    CHECK_THROWS_AS((site_map{2, 3}), std::invalid_argument);
}

TEST_CASE("the own site is asked first, then others' nodes, then gateways for their members") {
    const site_map where{6, 3};
    std::vector<digest_number> whom{3, 4, 6, 7, 8, 0, 1, 2};
    where.put_near_first(2, whom);
    CHECK(whom == std::vector<digest_number>{3, 7, 2, 4, 0, 1, 6, 8});
}

TEST_CASE("what a member has is found by one question between the sites and one there") {
    for (const auto how : {delivery::news, delivery::pull}) {
        auto plan = in_sites(6, 2);
        plan.exchange.how = how;
        plan.exchange.period = 5s;
        plan.exchange.source.publish_after = 5s;
        fleet all{plan};
        all.ask(wanted(1), 4);
        all.ask(wanted(1, 60), 0);
        const auto counted = all.figures();
        CHECK(counted.fetched == 1);
        CHECK(counted.sibling_hits == 1);
        CHECK(counted.across.questions == 1);
        CHECK(counted.across_members.questions == 1);
        CHECK(counted.for_sites.questions == 1);
        CHECK(counted.across_hits == 1);
        CHECK(counted.across_hit_bytes == wanted(1).bytes);
        CHECK(counted.false_hits == 0);
        CHECK(counted.exchange.failed == 0);
        // Who asks a gateway that knows of nobody yet hears so, and asks again.
        CHECK(counted.exchange.refused <= (how == delivery::pull ? 2 * 3 : 0));
        CHECK(all.holds(0, 1));
        CHECK_FALSE(all.holds(3, 1));  // the gateway hands it on
    }
}

TEST_CASE("what the gateway has itself is asked of nobody else there") {
    fleet all{in_sites(6, 2)};
    all.ask(wanted(1), 3);
    all.ask(wanted(1, 1), 2);
    const auto counted = all.figures();
    CHECK(counted.across_hits == 1);
    CHECK(counted.across_members.questions == 0);
    CHECK(counted.for_sites.questions == 0);
}

TEST_CASE("what is near is not asked for elsewhere, however each is followed") {
    for (const auto how : {finding::digests, finding::sites}) {
        fleet all{in_sites(6, 2, how)};
        all.ask(wanted(1), 1);
        all.ask(wanted(1, 1), 5);
        CHECK(all.figures().across_hits == 1);
        all.ask(wanted(1, 2), 0);  // node 3 is the next one round
        CHECK(all.figures().sibling_hits == 2);
        CHECK(all.figures().across.questions == 1);
    }
}

TEST_CASE("what left a member since is asked for in vain, there too, and costs between the sites") {
    auto plan = in_sites(4, 2);
    plan.capacity = 4 * 9;
    plan.exchange.source.news = 600s;
    plan.exchange.members_news = 60s;
    fleet all{plan};
    all.ask(wanted(2), 1);
    all.ask(wanted(8, 100), 3);
    all.ask(wanted(1, 101), 3);  // pushes it out, which is told nine seconds later
    const auto before = all.figures();
    all.ask(wanted(8, 102), 0);
    const auto after = all.figures();
    CHECK(after.fetched == 4);
    CHECK(after.across.in_vain == 1);
    CHECK(after.across_members.in_vain == 1);
    CHECK(after.for_sites.in_vain == 1);
    CHECK(after.false_hits == 2);
    CHECK(after.between.messages - before.between.messages ==
          2 + after.exchange.across.messages + after.exchange.across_of_members.messages -
              before.exchange.across.messages - before.exchange.across_of_members.messages);
}

TEST_CASE("members' news has a pace of its own, if one is asked for") {
    for (const auto& [pace, found] : {std::pair{0ms, 1u}, std::pair{30'000ms, 0u}}) {
        auto plan = in_sites(4, 2);
        plan.exchange.members_news = pace;
        fleet all{plan};
        all.ask(wanted(1), 3);
        all.ask(wanted(2, 100), 3);  // told at once, after so long
        all.ask(wanted(3, 102), 3);
        all.ask(wanted(3, 104), 0);
        CHECK(all.figures().across_hits == found);
        all.ask(wanted(4, 105), 3);
        all.ask(wanted(4, 160), 1);
        CHECK(all.figures().across_hits == found + 1);
    }
}

TEST_CASE("a fetch under way at a member is joined from another site") {
    auto plan = in_sites(4, 2);
    plan.head_takes = 100ms;
    plan.body_takes = 5s;
    plan.under_way = true;
    fleet all{plan};
    all.ask(wanted(1), 3);
    all.ask(wanted(1), 1, 600ms);
    CHECK(all.figures().fetched == 1);
    CHECK(all.figures().across_hits == 1);
}

TEST_CASE("followed one by one, what crosses is what those elsewhere are told") {
    const auto counted = played_in_sites(in_sites(6, 2, finding::digests), 8);
    // Three of a node's five readers are elsewhere. Each is told the same.
    CHECK(counted.exchange.across.messages * 5 == counted.exchange.messages * 3);
    CHECK(counted.exchange.across_of_members.messages == 0);
    CHECK(counted.for_sites.questions == 0);
    CHECK(counted.across_hits > 0);
    CHECK(counted.across_hits < counted.sibling_hits);
}

TEST_CASE("by their gateways sites find what they find one by one, and where traffic is thick less "
          "crosses") {
    for (const auto& [a_second, share] : {std::pair{8u, 1.0}, std::pair{400u, 0.6}}) {
        CAPTURE(a_second);
        const auto each = played_in_sites(in_sites(8, 2, finding::digests), a_second);
        const auto by_gateways = played_in_sites(in_sites(8, 2), a_second);
        CHECK(static_cast<double>(by_gateways.hits()) ==
              doctest::Approx(static_cast<double>(each.hits())).epsilon(0.01));
        CHECK(by_gateways.exchange.refused == 0);
        CHECK(by_gateways.for_sites.questions > 0);
        CHECK(static_cast<double>(by_gateways.between.messages) <
              share * static_cast<double>(each.between.messages));
        CHECK(by_gateways.between.bytes < each.between.bytes);
    }
}

TEST_CASE("members' digests of more bits name less in vain") {
    auto plan = in_sites(8, 2);
    plan.exchange.source.false_positive_rate = 0.02;
    plan.exchange.source.least_capacity = 64;
    const auto plain = played_in_sites(plan, 8);
    plan.exchange.source.site_nodes = 4;
    const auto wide = played_in_sites(plan, 8);
    REQUIRE(plain.across_members.in_vain > 20);
    CHECK(wide.across_members.in_vain < plain.across_members.in_vain / 4);
    CHECK(wide.exchange.members_rate < plain.exchange.members_rate / 4);
}

TEST_CASE("what sites can't be followed by is refused") {
    CHECK_THROWS_AS((fleet{in_sites(4, 1)}), std::invalid_argument);
    CHECK_THROWS_AS((fleet{in_sites(6, 4)}), std::invalid_argument);
    auto plan = in_sites(4, 2);
    plan.exchange.how = delivery::push;
    CHECK_THROWS_AS((fleet{plan}), std::invalid_argument);
    plan = in_sites(4, 2);
    plan.exchange.views = 1;
    CHECK_THROWS_AS((fleet{plan}), std::invalid_argument);
    plan = in_sites(4, 2);
    plan.strict = true;
    plan.exchange.seen = true;
    CHECK_THROWS_AS((fleet{plan}), std::invalid_argument);
}

TEST_SUITE_END();
