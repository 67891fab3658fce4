// What is known of the fleet's nodes (peer/FLEET.md), as rows of the table of metrics. Without peers they have no samples.

#include "proxy/admin/metrics_table.hpp"

#include <algorithm>

namespace reprise::proxy::admin {

namespace {

using fleet = const peer::fleet_report&;

/// One number of the fleet; `value` captures nothing.
template <class Value>
consteval metric of_fleet(std::string_view name,
                          std::string_view json,
                          std::string_view help,
                          Value) {
    return {name, kind_of(name), json, {}, {}, help, [](in from, out sink) {
                if (from.peers) {
                    draw(sink, Value{}(from.peers->fleet));
                }
            }};
}

// What nodes count in different cells agrees but for the requests under way, and strangers may say anything.
std::optional<double> bounded_ratio(std::uint64_t some, std::uint64_t all) {
    return all == 0
               ? std::nullopt
               : std::optional{std::min(1.0, static_cast<double>(some) / static_cast<double>(all))};
}

std::uint64_t both(std::uint64_t one, std::uint64_t other) {
    return one + std::min(other, ~one);
}

constexpr metric fleet_rows[] = {
    of_fleet("reprise_fleet_nodes_alive",
             "fleet.nodes_alive",
             "Nodes of the fleet, this one among them, whose figures are no older than 30 seconds. "
             "The sums are of these, each since its own start.",
             [](fleet of) { return std::uint64_t{of.alive}; }),
    of_fleet("reprise_fleet_nodes_known",
             "fleet.nodes_known",
             "Those, and the ones whose last figures are no older than five minutes.",
             [](fleet of) { return std::uint64_t{of.nodes.size()}; }),
    of_fleet("reprise_fleet_requests",
             "fleet.requests",
             "Requests answered to clients; what siblings ask of each other is left out, here and "
             "below.",
             [](fleet of) { return of.sums.requests; }),
    of_fleet("reprise_fleet_hits",
             "fleet.hits",
             "Of those, from the store of the node that was asked.",
             [](fleet of) { return of.sums.hits; }),
    of_fleet("reprise_fleet_sibling_hits",
             "fleet.sibling_hits",
             "Of those, from the store of one of its siblings.",
             [](fleet of) { return of.sums.siblings; }),
    of_fleet("reprise_fleet_joined",
             "fleet.joined",
             "Of those, from a fetch under way, at the node or at the URL's home.",
             [](fleet of) { return of.sums.joined; }),
    of_fleet("reprise_fleet_hit_ratio",
             "fleet.hit_ratio",
             "Share of the fleet's requests that were answered from a store of the fleet.",
             [](fleet of) {
                 return bounded_ratio(both(of.sums.hits, of.sums.siblings), of.sums.requests);
             }),
    of_fleet("reprise_fleet_body_bytes",
             "fleet.body_bytes",
             "Body bytes sent to clients.",
             [](fleet of) { return of.sums.bytes; }),
    of_fleet("reprise_fleet_from_store_bytes",
             "fleet.from_store_bytes",
             "Of those, from the store of the node that was asked.",
             [](fleet of) { return of.sums.bytes_from_store; }),
    of_fleet("reprise_fleet_from_siblings_bytes",
             "fleet.from_siblings_bytes",
             "Of those, from the store of one of its siblings.",
             [](fleet of) { return of.sums.bytes_from_siblings; }),
    of_fleet("reprise_fleet_joined_bytes",
             "fleet.joined_bytes",
             "Of those, from a fetch under way at the node.",
             [](fleet of) { return of.sums.bytes_joined; }),
    of_fleet("reprise_fleet_byte_hit_ratio",
             "fleet.byte_hit_ratio",
             "Share of these body bytes that came from a store of the fleet.",
             [](fleet of) {
                 return bounded_ratio(both(of.sums.bytes_from_store, of.sums.bytes_from_siblings),
                                      of.sums.bytes);
             }),
    of_fleet("reprise_fleet_fetches_spared",
             "fleet.fetches_spared",
             "Fetches from origins that siblings' stores and fetches under way spared.",
             [](fleet of) { return both(of.sums.siblings, of.sums.joined); }),
    of_fleet("reprise_fleet_sights_told",
             "fleet.sights_told",
             "First requests at a node that counted as further ones, since a sibling had seen one "
             "(admission.share).",
             [](fleet of) { return of.sums.sights_told; }),
    of_fleet("reprise_fleet_objects",
             "fleet.objects",
             "Objects that the nodes hold, added up: what two of them hold counts twice.",
             [](fleet of) { return of.sums.objects; }),
    of_fleet("reprise_fleet_distinct_objects",
             "fleet.distinct_objects",
             "Objects in the digests at hand, this node's and its siblings', each once: estimated "
             "from their bits.",
             [](fleet of) { return of.distinct; }),
    of_fleet("reprise_fleet_distinct_nodes",
             "fleet.distinct_of.nodes",
             "How many digests that is of. Of nodes that are known by hearsay there is none.",
             [](fleet of) { return std::uint64_t{of.digests}; }),
    of_fleet("reprise_fleet_distinct_listed",
             "fleet.distinct_of.objects",
             "What these digests list, added up.",
             [](fleet of) { return of.listed; }),
    of_fleet("reprise_fleet_figures_taken_total",
             "fleet.figures.taken",
             "Answers of siblings with their figures, since this node's start.",
             [](fleet of) { return of.asked.good; }),
    of_fleet("reprise_fleet_figures_taken_bytes_total",
             "fleet.figures.taken_bytes",
             "Their bytes.",
             [](fleet of) { return of.asked.bytes; }),
    of_fleet("reprise_fleet_figures_failed_total",
             "fleet.figures.failed",
             "Questions for figures without such an answer.",
             [](fleet of) { return of.asked.failed; }),
    of_fleet("reprise_fleet_figures_told_total",
             "fleet.figures.told",
             "Siblings' questions for figures that were answered.",
             [](fleet of) { return of.told; }),
    of_fleet("reprise_fleet_figures_told_bytes_total",
             "fleet.figures.told_bytes",
             "Bytes of the answers to all such questions, refusals among them.",
             [](fleet of) { return of.told_bytes; }),
    of_fleet("reprise_fleet_figures_refused_total",
             "fleet.figures.refused",
             "Such questions that were refused.",
             [](fleet of) { return of.refused; }),
};

}  // namespace

std::span<const metric> fleet_metrics() noexcept {
    return fleet_rows;
}

}  // namespace reprise::proxy::admin
