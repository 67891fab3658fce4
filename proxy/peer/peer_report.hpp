#pragma once
// What an operator reads of peers: values, gathered by the proxy, shown by admin.

#include "proxy/peer/benefit.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/digest_source.hpp"
#include "proxy/peer/fleet_fetch.hpp"
#include "proxy/peer/fleet_table.hpp"
#include "proxy/peer/members_source.hpp"
#include "proxy/peer/resource.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::peer {

struct sibling_report {
    digest_fetcher::figures_of_one digest;
    benefit_figures benefit;
    bool squid = false, proxy_only = false;
    std::string url;
    std::optional<double> overlap;  ///< objects that both hold, estimated; none: can't be told
};

struct parent_report {
    std::string name, url;
    bool down = false;
    failure_code trouble = failure_code::no_parent;  ///< of one that is down: by what it failed
};

/// Digests served, by how.
struct served_report {
    std::uint64_t answers = 0, bytes = 0;
};

/// What is known of the fleet (FLEET.md). Sums are of the nodes that are alive.
struct fleet_report {
    std::vector<fleet_row> nodes;
    std::size_t alive = 0;
    node_figures sums;  ///< saturating; up_ms: of no meaning
    /// Keys in the union of the digests at hand, how many these are, and what they list in all.
    double distinct = 0;
    unsigned digests = 0;
    std::uint64_t listed = 0;
    fleet_fetcher::tally asked;           ///< what siblings answered
    std::uint64_t told = 0, refused = 0;  ///< what they were answered
    std::uint64_t told_bytes = 0;
};
/// The rows' count and sums.
[[nodiscard]] fleet_report sum_up(std::vector<fleet_row> nodes);

struct peer_report {
    source_figures own;
    fleet_report fleet;
    std::optional<filter::digest_generation> generation;
    bool signs = false, shares_seen = false;
    std::array<served_report, answered_count> served{};
    std::vector<sibling_report> siblings;
    /// Names of peers that have proved to be this very instance, and so are none of its siblings.
    std::vector<std::string> itself;
    std::vector<parent_report> parents;
    /// The siblings, by their pseudonyms, among which URLs are shared out beside this instance; none:
    /// URLs have no homes.
    std::optional<std::vector<std::string>> homes;
    std::uint64_t index_bytes = 0;           ///< of siblings' digests
    std::optional<members_figures> members;  ///< none: it is no gateway
    std::uint64_t waiting = 0;               ///< requests of siblings that are kept open for news
    std::uint64_t seen_objects = 0;  ///< remembered, and told to siblings, at least; 0: not shared
};

}  // namespace reprise::proxy::peer
