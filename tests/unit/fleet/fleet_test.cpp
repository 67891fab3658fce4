#include "tools/fleet/fleet.hpp"
#include "tools/fleet/second_request.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>
#include <vector>

using namespace reprise::fleet;
using namespace std::chrono_literals;

namespace {

request asked(object_number object, std::uint32_t seconds = 0, std::uint64_t bytes = 1) {
    const auto low = (object + 1) * std::uint64_t{0x9e3779b97f4a7c15};
    return {.key = {low ^ low >> 29, low * 31 ^ low >> 13},
            .bytes = bytes,
            .object = object,
            .seconds = seconds};
}

/// Skewed requests, several a second.
std::vector<request> requests_of(std::size_t count, object_number objects) {
    std::mt19937_64 random{7};
    std::uniform_real_distribution<double> unit{0, 1};
    std::vector<request> out;
    for (std::size_t i = 0; i < count; ++i) {
        const auto object = static_cast<object_number>(std::pow(unit(random), 3.0) * objects);
        out.push_back(asked(object, static_cast<std::uint32_t>(i / 8), 1 + object % 9));
    }
    return out;
}

fleet_plan plan_of(node_number nodes, finding how, std::uint64_t capacity = 1'000'000) {
    fleet_plan out;
    out.nodes = nodes;
    out.how = how;
    out.capacity = capacity;
    return out;
}

/// Digests that are told as they change, and hardly err.
fleet_plan by_news(node_number nodes) {
    auto out = plan_of(nodes, finding::digests);
    out.exchange.how = delivery::news;
    out.exchange.source.news = 200ms;
    out.exchange.source.false_positive_rate = 1e-4;
    return out;
}

fleet_tally played(const fleet_plan& plan, const std::vector<request>& requests) {
    fleet all{plan};
    std::mt19937_64 random{1};
    for (const auto& one : requests) {
        all.ask(one, static_cast<node_number>(random() % plan.nodes));
    }
    return all.figures();
}

std::uint64_t distinct(const std::vector<request>& requests) {
    std::set<object_number> seen;
    for (const auto& one : requests) {
        seen.insert(one.object);
    }
    return seen.size();
}

}  // namespace

TEST_SUITE_BEGIN("fleet/fleet");

TEST_CASE("alone nobody knows of what another holds") {
    fleet all{plan_of(2, finding::alone)};
    for (const node_number at : {0, 1, 0, 1}) {
        all.ask(asked(5), at);
    }
    const auto counted = all.figures();
    CHECK(counted.local_hits == 2);
    CHECK(counted.sibling_hits == 0);
    CHECK(counted.missed == 1);  // node 1's fetch, with a copy at node 0
    CHECK(counted.messages == 0);
    CHECK(counted.icp_messages == 2 * 2);
}

TEST_CASE("with exact knowledge and room for all, the fleet holds the union") {
    const auto requests = requests_of(5'000, 800);
    for (const auto copies : {cache_node::keep::if_admitted, cache_node::keep::never}) {
        auto plan = plan_of(3, finding::oracle);
        plan.copies = copies;
        const auto counted = played(plan, requests);
        CHECK(counted.misses() == distinct(requests));
        CHECK(counted.missed == 0);
        CHECK(counted.false_hits == 0);
    }
}

TEST_CASE("a copy from a sibling is kept, or not, as the plan says") {
    for (const auto& [copies, local] : {std::pair{cache_node::keep::if_admitted, 1u},
                                        std::pair{cache_node::keep::always, 1u},
                                        std::pair{cache_node::keep::never, 0u}}) {
        auto plan = plan_of(2, finding::oracle);
        plan.copies = copies;
        fleet all{plan};
        all.ask(asked(1), 0);
        all.ask(asked(1), 1);
        CHECK(all.holds(1, 1) == (local == 1));
        all.ask(asked(1), 1);
        CHECK(all.figures().local_hits == local);
        CHECK(all.figures().sibling_hits == 2 - local);
    }
}

TEST_CASE("strict nodes keep what siblings sent at its second sight, or always, or never") {
    auto plan = plan_of(2, finding::oracle);
    plan.strict = true;
    for (const auto& [copies, after] : {std::pair{cache_node::keep::if_admitted, 2},
                                        std::pair{cache_node::keep::always, 1},
                                        std::pair{cache_node::keep::never, 0}}) {
        plan.copies = copies;
        fleet all{plan};
        all.ask(asked(1), 0);
        all.ask(asked(1), 0);  // stored
        REQUIRE(all.holds(0, 1));
        int kept_after = 0;
        for (int sight = 1; sight <= 3 && kept_after == 0; ++sight) {
            all.ask(asked(1), 1);
            kept_after = all.holds(1, 1) ? sight : 0;
        }
        CHECK(kept_after == after);
    }
}

TEST_CASE(
    "digests that are instant find what exact knowledge finds, and err on the side of asking") {
    const auto requests = requests_of(6'000, 1'500);
    for (const bool strict : {false, true}) {
        CAPTURE(strict);
        auto plan = plan_of(4, finding::oracle, 800);
        plan.strict = strict;
        const auto exact = played(plan, requests);
        plan.how = finding::digests;
        plan.exchange.how = delivery::instant;
        plan.exchange.source.false_positive_rate = 0.05;
        plan.exchange.source.least_capacity = 40;
        const auto counted = played(plan, requests);
        CHECK(counted.local_hits == exact.local_hits);
        CHECK(counted.sibling_hits == exact.sibling_hits);
        CHECK(counted.missed == 0);
        CHECK(exact.false_hits == 0);
        // Three siblings are asked in vain with at most that rate, at each local miss.
        CHECK(counted.false_hits > 0);
        CHECK(static_cast<double>(counted.false_hits) <
              1.3 * 0.05 * 3 * static_cast<double>(counted.local_misses()));
    }
}

TEST_CASE("what was stored since the last pull is missed, and found after it") {
    auto plan = plan_of(2, finding::digests);
    plan.exchange.period = 100s;
    plan.exchange.source.publish_after = 10s;
    plan.exchange.source.false_positive_rate = 1e-4;
    fleet all{plan};
    all.ask(asked(1, 1), 0);   // the digests of the start are out by now, and empty
    all.ask(asked(1, 50), 1);  // stored here too
    CHECK(all.figures().missed == 1);
    all.ask(asked(2, 51), 0);
    all.ask(asked(2, 200), 1);
    CHECK(all.figures().sibling_hits == 1);
    CHECK(all.figures().missed == 1);
}

TEST_CASE("what left since the last pull is asked for in vain") {
    auto plan = plan_of(2, finding::digests, 2);  // room for one object of one byte each
    plan.exchange.period = 100s;
    plan.exchange.source.false_positive_rate = 1e-4;
    plan.exchange.source.publish_after = 10s;
    fleet all{plan};
    all.ask(asked(1, 1), 0);
    all.ask(asked(2, 300), 0);  // pushes the first one out
    const auto before = all.figures();
    all.ask(asked(1, 301), 1);
    const auto after = all.figures();
    CHECK(after.false_hits == 1);
    CHECK(after.sibling_hits == 0);
    CHECK(after.messages - before.messages == 2);
    CHECK(after.wire_bytes - before.wire_bytes == wire_cost{}.false_hit());
    CHECK(after.paper_bytes - before.paper_bytes == 2 * (20 + 50));
    all.ask(asked(1, 600), 1);  // a local hit
    all.ask(asked(1, 600), 0);  // and the other way round there is one now
    CHECK(after.false_hits == 1);
    CHECK(all.figures().sibling_hits == 1);
}

TEST_CASE("a pull is a request and a reply for each reader, whoever shares its view") {
    for (const node_number views : {1, 2, 5}) {
        CAPTURE(views);
        auto plan = plan_of(5, finding::digests);
        plan.exchange.period = 10s;
        plan.exchange.views = views;
        fleet all{plan};
        all.ask(asked(1, 0), 0);
        all.ask(asked(1, 1'000), 0);
        const auto counted = all.figures().exchange;
        const auto pulls = counted.wholes + counted.deltas + counted.unchanged;
        CHECK(counted.failed == 0);
        CHECK(counted.messages == 2 * pulls);
        // 20 pairs, about every 10 s, jittered by a tenth.
        CHECK(pulls >= 20 * 95);
        CHECK(pulls <= 20 * 106);
        // Each digest whole at first; node 0's once more, as a delta or in a whole that is shorter.
        CHECK(counted.wholes + counted.deltas == 20 + 4);
    }
}

TEST_CASE("a push is one message for each reader and publication") {
    auto plan = plan_of(3, finding::digests);
    plan.exchange.how = delivery::push;
    plan.exchange.source.publish_after = 10s;
    fleet all{plan};
    all.ask(asked(1, 0), 0);
    all.ask(asked(1, 1'000), 0);
    CHECK(all.figures().exchange.published == 3 + 1);  // empty ones at the start
    CHECK(all.figures().exchange.messages == 2 * (3 + 1));
}

TEST_CASE(
    "by news one knows within the second what a sibling stored, and each is told of a step once") {
    auto plan = plan_of(3, finding::digests);
    plan.exchange.how = delivery::news;
    plan.exchange.source.news = 200ms;
    plan.exchange.source.publish_after = 10s;
    fleet all{plan};
    all.ask(asked(1, 1), 0);
    all.ask(asked(1, 1), 1, 100ms);  // told at once
    all.ask(asked(2, 1), 0, 105ms);
    all.ask(asked(3, 1), 0, 110ms);
    all.ask(asked(3, 1), 2, 111ms);  // not told yet: to two readers steps are six ms apart at least
    all.ask(asked(2, 1), 1, 450ms);
    auto counted = all.figures();
    CHECK(counted.sibling_hits == 2);
    CHECK(counted.missed == 1);
    CHECK(counted.exchange.failed == 0);
    CHECK(counted.exchange.refused == 0);
    CHECK(counted.exchange.wholes == 6);  // of each by two, at the start
    all.ask(asked(1, 9), 0);              // what was stored is told by now
    const auto before = all.figures().exchange;
    all.ask(asked(1, 1'000), 0);
    all.ask(asked(4, 1'001), 0);
    all.ask(asked(1, 1'002), 0);
    counted = all.figures();
    // A question and a 304 every 25 s, and a piece.
    CHECK(counted.exchange.news == before.news + 2);
    CHECK(counted.exchange.unchanged > before.unchanged);
    CHECK(counted.exchange.messages == 2 * (counted.exchange.wholes + counted.exchange.deltas +
                                            counted.exchange.news + counted.exchange.unchanged));
}

TEST_CASE("ICP is a query to each sibling and a reply from it at every local miss") {
    const auto requests = requests_of(2'000, 500);
    const auto counted = played(plan_of(4, finding::oracle), requests);
    CHECK(counted.icp_messages == 2 * 3 * counted.local_misses());
    CHECK(counted.icp_bytes == counted.icp_messages * (20 + 4 + 50 + 28));
    CHECK(counted.icp_bytes_of_paper == counted.icp_messages * 70);
}

TEST_CASE("views that are shared find about as much as one for each node") {
    const auto requests = requests_of(20'000, 4'000);
    auto plan = plan_of(6, finding::digests, 4'000);
    plan.exchange.period = 20s;
    plan.exchange.source.publish_after = 20s;
    plan.exchange.views = 6;
    const auto each = played(plan, requests);
    plan.exchange.views = 1;
    const auto shared = played(plan, requests);
    REQUIRE(each.missed > 100);
    const auto share = [](const fleet_tally& of) {
        return static_cast<double>(of.hits()) / static_cast<double>(of.requests);
    };
    CHECK(share(shared) == doctest::Approx(share(each)).epsilon(0.01));
    CHECK(static_cast<double>(shared.exchange.messages) ==
          doctest::Approx(static_cast<double>(each.exchange.messages)).epsilon(0.02));
}

TEST_CASE("routed, with room for all, an object is fetched once, however close its requests") {
    const auto requests = requests_of(3'000, 400);
    auto plan = plan_of(5, finding::routed);
    plan.copies = cache_node::keep::never;
    const auto counted = played(plan, requests);
    CHECK(counted.misses() == distinct(requests));
    CHECK(counted.handed_in_vain > 0);
    CHECK(counted.handed_in_vain < counted.misses());  // some are asked for at home
    CHECK(counted.messages == 2 * counted.handed_in_vain);

    fleet all{plan};
    all.ask(asked(3), 0);
    const auto home = all.home_of(asked(3));
    for (node_number node = 0; node < 5; ++node) {
        CHECK(all.holds(node, 3) == (node == home));
    }
}

TEST_CASE("a fetch that is under way is joined here, and elsewhere if it is told of") {
    for (const bool told : {false, true}) {
        CAPTURE(told);
        auto plan = by_news(3);
        plan.head_takes = 100ms;
        plan.body_takes = 5s;
        plan.under_way = told;
        fleet all{plan};
        all.ask(asked(1), 0, 0ms);
        all.ask(asked(1), 0, 50ms);
        CHECK(all.figures().joined == 1);
        all.ask(asked(1), 1, 90ms);  // its head is not there
        CHECK(all.figures().fetched == 2);
        all.ask(asked(1), 2, 600ms);
        CHECK(all.figures().fetched == (told ? 2 : 3));
        CHECK(all.figures().sibling_hits == (told ? 1 : 0));
        all.ask(asked(2, 60), 0);
        CHECK(all.holds(0, 1));
    }
}

TEST_CASE(
    "a fetch that will not be stored is not told of, and one that came to nothing is taken back") {
    auto plan = by_news(2);
    plan.strict = true;  // so a first request stores nothing
    plan.head_takes = 500ms;
    plan.body_takes = 5s;
    plan.under_way = true;
    fleet strict{plan};
    strict.ask(asked(1), 0);
    strict.ask(asked(1, 2), 1);
    CHECK(strict.figures().questions == 0);

    plan.strict = false;
    plan.policy.kind = reprise::proxy::cache::eviction_kind::w_tinylfu;  // may let the newcomer go
    plan.capacity = 2 * 10;
    fleet all{plan};
    for (object_number object = 0; object < 200; ++object) {
        all.ask(asked(object % 4 == 0 ? 1'000 : object, object), 0);
    }
    all.ask(asked(2'000, 1'000), 0);
    all.ask(asked(3'000, 1'002), 1);  // all news is out
    std::uint64_t held = 0, asked_for = 0;
    for (object_number object = 0; object < 200; ++object) {
        held += all.holds(0, object) ? 1 : 0;
        const auto before = all.figures().questions;
        all.ask(asked(object, 2'000), 1);
        asked_for += all.figures().questions - before;
    }
    CHECK(asked_for == held);
}

TEST_CASE("with homes each key has one room, and copies of others' keys a small one") {
    const auto requests = requests_of(3'000, 400);
    auto plan = plan_of(5, finding::homes, 1'000'000);
    const auto counted = played(plan, requests);
    CHECK(counted.fetched == distinct(requests));

    plan.capacity = 5 * 20;
    plan.hot = 0.1;  // two bytes a node
    fleet all{plan};
    std::vector<object_number> of_others;
    for (object_number object = 0; of_others.size() < 5; ++object) {
        all.ask(asked(object), 0);
        if (all.home_of(asked(object)) != 0) {
            of_others.push_back(object);
        }
    }
    CHECK(all.holds_hot(0, of_others[4]));
    CHECK(all.holds_hot(0, of_others[3]));
    CHECK_FALSE(all.holds_hot(0, of_others[2]));
    for (const auto object : of_others) {
        CHECK_FALSE(all.holds(0, object));
        CHECK(all.holds(all.home_of(asked(object)), object));
    }
}

TEST_CASE("a hint finds what no digest tells yet, for a query and a reply") {
    auto plan = plan_of(4, finding::hints);
    plan.exchange.period = 10'000s;
    plan.exchange.source.publish_after = 10'000s;
    fleet all{plan};
    all.ask(asked(1, 10), 0);
    const auto home = all.home_of(asked(1));
    for (node_number node = 1; node < 4; ++node) {
        all.ask(asked(1, 10), node);
    }
    const auto counted = all.figures();
    CHECK(counted.sibling_hits == 3);
    CHECK(counted.missed == 0);
    CHECK(counted.hint_queries == 3);  // all but the home node's own
    CHECK(home < 4);
    CHECK(counted.messages == counted.exchange.messages + 2 * 3);
}

TEST_CASE("a hint is forgotten in time") {
    auto plan = plan_of(2, finding::hints);
    plan.exchange.period = 10'000s;
    plan.exchange.source.publish_after = 10'000s;
    plan.hints_for = 60s;
    fleet all{plan};
    all.ask(asked(1, 10), 0);
    all.ask(asked(1, 71), 1);
    CHECK(all.figures().missed == 1);
}

TEST_CASE("strict proxies fetch 2N times alone, N + 1 times with digests, twice with sights") {
    for (const auto& row : second_requests({2, 3, 8, 20}, 5)) {
        CAPTURE(row.nodes);
        CHECK(row.alone == 2 * row.nodes);
        CHECK(row.digests == row.nodes + 1);
        CHECK(row.sights == 2);
    }
}

TEST_CASE("sights are shared by filters of any size: a thin one is no reason to refuse it") {
    auto plan = plan_of(2, finding::digests, std::uint64_t{1} << 30);
    plan.strict = true;  // "auto" begins with room for 64 Ki objects
    plan.exchange.seen = true;
    fleet all{plan};
    all.ask(asked(1, 0), 0);
    all.ask(asked(1, 120), 1);
    CHECK(all.holds(1, 1));
    CHECK(all.figures().from_the_seen == 1);
    CHECK(all.figures().exchange.refused == 0);
}

TEST_CASE("sights are not shared where first sights are stored") {
    auto plan = plan_of(2, finding::digests);
    plan.exchange.seen = true;
    CHECK_THROWS_AS(fleet{plan}, std::invalid_argument);
}

TEST_CASE("a thousand nodes have one view, and find each other's objects") {
    auto plan = plan_of(1'000, finding::digests);
    plan.exchange.period = 10s;
    plan.exchange.source.publish_after = 5s;
    fleet all{plan};
    for (node_number node = 0; node < 1'000; ++node) {
        all.ask(asked(node, 0), node);
    }
    for (node_number node = 0; node < 1'000; ++node) {
        all.ask(asked(node, 40), 999 - node);
    }
    const auto counted = all.figures();
    CHECK(counted.sibling_hits == 1'000);
    CHECK(counted.exchange.messages % (2 * 999) == 0);
}

TEST_SUITE_END();
