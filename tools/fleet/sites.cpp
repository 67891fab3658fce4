#include "tools/fleet/sites.hpp"

#include <algorithm>
#include <stdexcept>

namespace reprise::fleet {

site_map::site_map(node_number nodes, node_number sites)
    : nodes_{nodes},
      sites_{sites},
      size_{sites == 0 ? 0 : nodes / sites} {
    if (size_ == 0 || size_ * sites != nodes) {
        throw std::invalid_argument{"sites have equally many nodes, one at least"};
    }
}

bool site_map::follows(node_number reader, digest_number digest) const noexcept {
    const auto teller = teller_of(digest);
    if (are_apart(reader, teller)) {
        return teller == gateway_of(site_of(teller));
    }
    return !is_of_members(digest) && reader != digest;
}

void site_map::put_near_first(node_number from, std::vector<digest_number>& whom) const {
    const auto far = std::stable_partition(whom.begin(), whom.end(), [&](digest_number one) {
        return !are_apart(from, teller_of(one));
    });
    std::stable_partition(
        far, whom.end(), [this](digest_number one) { return !is_of_members(one); });
}

void hear(proxy::peer::members_source& members,
          unsigned slot,
          const proxy::peer::digest_follower& of,
          const proxy::peer::digest_follower::change& change) {
    using kind = proxy::peer::digest_follower::change::kind;
    const auto& held = of.held();
    if (!held) {
        members.remove(slot);
    } else if (change.what == kind::flipped) {
        (void)members.flip(slot, *held, change.places);
    } else if (change.what == kind::replaced) {
        (void)members.put(slot, *held);
    }
}

}  // namespace reprise::fleet
