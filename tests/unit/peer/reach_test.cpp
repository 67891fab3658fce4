// No question goes round: by what each leads to, however nodes name each other.

#include "proxy/peer/reach.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace reprise::proxy::peer::test::of_reach {
namespace {

/// Nodes that name others as siblings, and as gateways of sites, at random: themselves, each other
/// and in rings too. Every digest names everything (a lie), and nobody has anything.
struct topology {
    struct node {
        std::vector<std::size_t> siblings, sites;
    };
    std::vector<node> nodes;

    topology(std::size_t count, double density, std::mt19937_64& random) : nodes(count) {
        std::bernoulli_distribution names{density};
        for (auto& one : nodes) {
            for (std::size_t other = 0; other < count; ++other) {
                if (names(random)) {
                    one.siblings.push_back(other);
                }
                if (names(random)) {
                    one.sites.push_back(other);
                }
            }
        }
    }

    struct walked {
        std::size_t questions = 0;
        unsigned deepest = 0;
        bool went_beyond = false;  ///< somebody but the first asked homes, parents or an origin
    };
    /// All questions that one of `who` at `at` leads to, when each is answered with no.
    void ask(std::size_t at, asked_by who, unsigned depth, walked& so_far) const {
        so_far.deepest = std::max(so_far.deepest, depth);
        const auto to = reach_of(who);
        so_far.went_beyond = so_far.went_beyond || (depth > 0 && to.beyond);
        const auto go = [&](std::size_t next, asked_by as) {
            ++so_far.questions;
            REQUIRE(hops_behind(as) < hops_behind(who));
            ask(next, as, depth + 1, so_far);
        };
        if (to.siblings) {
            for (const auto next : nodes[at].siblings) {
                go(next, asked_by::sibling);
            }
        }
        if (to.sites) {
            for (const auto next : nodes[at].sites) {
                go(next, asked_by::sibling);
                go(next, asked_by::site);
            }
        }
    }
};

}  // namespace

TEST_SUITE("peer/reach") {
    TEST_CASE("whoever names whom, a client's question passes two nodes at most") {
        std::mt19937_64 random{18};
        for (int round = 0; round < 300; ++round) {
            const auto count = 1 + random() % 24;
            const topology all{count, 0.02 + 0.98 * (random() % 100) / 100, random};
            for (std::size_t first = 0; first < count; ++first) {
                topology::walked from;
                all.ask(first, asked_by::client, 0, from);
                CHECK(from.deepest <= 2);
                CHECK_FALSE(from.went_beyond);
                std::size_t most = all.nodes[first].siblings.size();
                for (const auto site : all.nodes[first].sites) {
                    most += 2 + all.nodes[site].siblings.size();
                }
                CHECK(from.questions == most);
            }
        }
    }

    TEST_CASE("a sibling's question leads to nobody") {
        CHECK_FALSE(reach_of(asked_by::sibling).siblings);
        CHECK_FALSE(reach_of(asked_by::sibling).sites);
        CHECK_FALSE(reach_of(asked_by::sibling).beyond);
    }
}

}  // namespace reprise::proxy::peer::test::of_reach
