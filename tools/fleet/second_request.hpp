#pragma once
// How often a fleet of strict proxies fetches an object before it holds it: alone, with digests,
// and with sights shared.
//
// Each of `objects` is asked for at every node once, node after node, and then again, with time for
// an exchange between any two requests for it: the order that is worst for digests, since every
// first sight comes before any second. Alone each node fetches twice. With digests each first
// sight is a fetch, and the first second sight is one more, from which on it is held. With sights
// shared the second request anywhere is a second sight.

#include "tools/fleet/fleet.hpp"

#include <vector>

namespace reprise::fleet {

struct second_request_row {
    node_number nodes = 0;
    double alone = 0, digests = 0, sights = 0;  ///< fetches from the origin, an object
};

[[nodiscard]] std::vector<second_request_row> second_requests(
    const std::vector<node_number>& fleets, std::uint32_t objects);

}  // namespace reprise::fleet
