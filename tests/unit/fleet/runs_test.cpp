#include "tools/fleet/results.hpp"
#include "tools/fleet/runs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

using namespace reprise::fleet;

TEST_SUITE_BEGIN("fleet/runs");

TEST_CASE("requests are split evenly at random, in turns, or by client") {
    std::vector<std::uint64_t> random(8), turns(8);
    for (std::uint64_t i = 0; i < 80'000; ++i) {
        ++random[node_for(splitting::random, i, 0, 1, 8)];
        ++turns[node_for(splitting::turns, i, 0, 1, 8)];
        CHECK(node_for(splitting::client, i, 77, 1, 8) == node_for(splitting::client, 0, 77, 1, 8));
    }
    for (std::size_t node = 0; node < 8; ++node) {
        CHECK(turns[node] == 10'000);
        CHECK(random[node] > 9'500);  // five standard deviations
        CHECK(random[node] < 10'500);
    }
}

TEST_CASE("another seed is another split") {
    unsigned same = 0;
    for (std::uint64_t i = 0; i < 8'000; ++i) {
        same += node_for(splitting::random, i, 0, 1, 8) == node_for(splitting::random, i, 0, 2, 8);
    }
    CHECK(same > 800);
    CHECK(same < 1'200);
}

TEST_CASE("caches are named as policies are, strict ones with their rule, ours as settings are") {
    CHECK_FALSE(cache_choice_of("lru")->strict);
    CHECK(cache_choice_of("sieve+second-hit")->strict);
    CHECK(cache_choice_of("gdsf:0.4+second-hit")->policy.exponent == 0.4);
    CHECK(cache_choice_of("ours")->policy.kind == reprise::proxy::cache::eviction_kind::sieve);
    CHECK(cache_choice_of("ours")->strict);
    CHECK_FALSE(cache_choice_of("lru+third-hit"));
    CHECK_FALSE(cache_choice_of(""));
}

namespace {

run_result row(finding how, std::uint64_t local_hits, std::uint64_t sibling_hits) {
    run_result out;
    out.what.of_nodes = out.what.plan.nodes = 4;
    out.what.cache = "lru";
    out.what.size = "10%";
    out.what.plan.how = how;
    out.counted.requests = 1'000;
    out.counted.local_hits = local_hits;
    out.counted.sibling_hits = sibling_hits;
    return out;
}

}  // namespace

TEST_CASE("a claim holds by points lost, messages and bytes together, beside its own oracle") {
    auto exact = row(finding::oracle, 400, 200);
    exact.counted.icp_messages = 6 * 600;
    exact.counted.icp_bytes = 360'000;
    auto ours = row(finding::digests, 400, 195);
    ours.counted.messages = 6 * 600 / 25;
    ours.counted.wire_bytes = 180'000;
    CHECK(judge(ours, {exact, ours})->holds());
    CHECK(judge(ours, {exact, ours})->points_lost == doctest::Approx(0.5));

    auto late = ours;
    late.counted.sibling_hits = 194;
    CHECK_FALSE(judge(late, {exact, late})->holds());
    auto chatty = ours;
    chatty.counted.messages += 1;
    CHECK_FALSE(judge(chatty, {exact, chatty})->holds());
    auto heavy = ours;
    heavy.counted.wire_bytes += 1;
    CHECK_FALSE(judge(heavy, {exact, heavy})->holds());

    auto another = exact;
    another.what.of_nodes = 16;
    CHECK_FALSE(judge(ours, {another, ours}));
    CHECK_FALSE(judge(exact, {exact, ours}));
}

TEST_CASE("a row of CSV has as many fields as its head") {
    std::ostringstream out;
    auto exact = row(finding::oracle, 400, 200);
    print_csv(out, "x", {exact, row(finding::digests, 1, 2)});
    std::istringstream in{out.str()};
    std::vector<std::size_t> commas;
    for (std::string line; std::getline(in, line);) {
        commas.push_back(static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')));
    }
    REQUIRE(commas.size() == 3);
    CHECK(commas[0] == commas[1]);
    CHECK(commas[0] == commas[2]);
}

TEST_CASE("bytes of messages are what is counted out here") {
    // RFC 2186's head, the requester's address, the URL, UDP and IPv4.
    CHECK(wire_cost{.url = 60}.icp_message() == 20 + 4 + 60 + 8 + 20);
    CHECK(wire_cost::icp_message_of_paper() == 70);
    // One segment and its acknowledgement; three segments and two of them.
    CHECK(wire_cost::one_way(100) == 100 + 2 * 52);
    CHECK(wire_cost::one_way(1448 * 3) == 1448 * 3 + 5 * 52);
    CHECK(wire_cost::update_of_paper(128) == 160);
}

TEST_SUITE_END();
