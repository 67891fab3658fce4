// What crosses between sites, as a table of its own.

#include "tools/fleet/results.hpp"

#include <ostream>

namespace reprise::fleet {

namespace {

constexpr auto per_request = [](std::uint64_t of, const fleet_tally& in) {
    return in.requests == 0 ? 0 : static_cast<double>(of) / static_cast<double>(in.requests);
};

/// The fleet that is as `one` but follows each node of other sites.
const run_result* followed_one_by_one(const run_result& one, const std::vector<run_result>& all) {
    for (const auto& other : all) {
        if (!other.what.big && other.what.plan.how == finding::digests &&
            same_fleet(other.what, one.what) &&
            other.what.plan.exchange.period == one.what.plan.exchange.period &&
            other.what.plan.exchange.source.publish_after_change ==
                one.what.plan.exchange.source.publish_after_change) {
            return &other;
        }
    }
    return nullptr;
}

/// At each local miss a query to each node of other sites, and its reply.
void print_icp(std::ostream& out, const fleet_run& what, const fleet_tally& n) {
    const auto sites = what.plan.exchange.sites;
    const auto messages = 2 * (what.of_nodes - what.of_nodes / sites) * n.local_misses();
    out << "| " << sites << " | " << what.of_nodes << " | " << what.size << " | " << what.cache
        << " | " << name_of(what) << " (ICP) | | | " << fixed(hit_percent(n), 2) << " | | | | "
        << fixed(per_request(messages, n), 2) << " | | | | "
        << fixed(per_request(messages * what.plan.wire.icp_message(), n), 0) << " | | | | | |\n";
}

}  // namespace

void print_sites(std::ostream& out, const std::vector<run_result>& results) {
    out << "| sites | nodes | size | cache | finding | period, s | site_nodes | hits, % | "
           "points lost | from other sites, % | asked in vain, % | "
           "between sites: messages a request | bytes a request: nodes' digests | members' | "
           "in vain | all | of one by one's, % | messages, % | members' rate, % | "
           "asked there for other sites, % | in vain, % |\n"
           "|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
           "---:|---:|---:|---:|\n";
    for (const auto& one : results) {
        const auto& what = one.what;
        const auto& n = one.counted;
        if (what.big) {
            continue;
        }
        if (what.plan.how == finding::oracle) {
            print_icp(out, what, n);
            continue;
        }
        const bool by_gateways = what.plan.how == finding::sites;
        if (what.plan.how != finding::digests && !by_gateways) {
            continue;
        }
        const auto& digests = n.exchange.across;
        const auto& members = n.exchange.across_of_members;
        const auto verdict = judge(one, results);
        const auto* const flat = followed_one_by_one(one, results);
        const auto share = [&](std::uint64_t traffic::*which) {
            return flat == nullptr
                       ? std::string{}
                       : fixed(percent(n.between.*which, flat->counted.between.*which), 1);
        };
        out << "| " << what.plan.exchange.sites << " | " << what.of_nodes << " | " << what.size
            << " | " << what.cache << " | " << name_of(what) << " | " << seconds_of(what) << " | "
            << what.plan.exchange.source.site_nodes << " | " << fixed(hit_percent(n), 2) << " | "
            << (verdict ? fixed(verdict->points_lost, 2) : "") << " | "
            << fixed(percent(n.across_hits, n.requests), 2) << " | "
            << fixed(percent(n.across.in_vain, n.across.questions), 1) << " | "
            << fixed(per_request(n.between.messages, n), 2) << " | "
            << fixed(per_request(digests.bytes, n), 0) << " | "
            << fixed(per_request(members.bytes, n), 0) << " | "
            << fixed(per_request(n.between.bytes - digests.bytes - members.bytes, n), 0) << " | "
            << fixed(per_request(n.between.bytes, n), 0) << " | " << share(&traffic::bytes) << " | "
            << share(&traffic::messages) << " | "
            << (by_gateways ? fixed(100 * n.exchange.members_rate, 2) : "") << " | "
            << fixed(percent(n.for_sites.questions, n.requests), 2) << " | "
            << fixed(percent(n.for_sites.in_vain, n.for_sites.questions), 1) << " |\n";
    }
}

}  // namespace reprise::fleet
