#pragma once
// Nodes in groups of equal size, each a site: the first node of one is its gateway, which other sites
// follow and ask (proxy/peer/README.md, "Sites").
//
// Digests are numbered. Each node's own has the node's number; behind these is one for each site, of
// its members, which the gateway tells.

#include "proxy/peer/digest_follower.hpp"
#include "proxy/peer/members_source.hpp"
#include "tools/fleet/cache_node.hpp"

#include <vector>

namespace reprise::fleet {

using digest_number = node_number;

/// Who is where. Threads  any.
class site_map {
public:
    /// @throws std::invalid_argument where they can't be of equal size
    site_map(node_number nodes, node_number sites);

    [[nodiscard]] node_number sites() const noexcept { return sites_; }
    [[nodiscard]] node_number site_of(node_number node) const noexcept { return node / size_; }
    [[nodiscard]] node_number gateway_of(node_number site) const noexcept { return site * size_; }
    [[nodiscard]] bool are_apart(node_number a, node_number b) const noexcept {
        return site_of(a) != site_of(b);
    }

    [[nodiscard]] digest_number members_of(node_number site) const noexcept {
        return nodes_ + site;
    }
    [[nodiscard]] bool is_of_members(digest_number digest) const noexcept {
        return digest >= nodes_;
    }
    /// The node that tells it, and is asked for what it names.
    [[nodiscard]] node_number teller_of(digest_number digest) const noexcept {
        return is_of_members(digest) ? gateway_of(digest - nodes_) : digest;
    }

    /// Whether a node follows a digest where sites are followed by way of their gateways: of its own
    /// site each other's, of another the gateway's two.
    [[nodiscard]] bool follows(node_number reader, digest_number digest) const noexcept;

    /// Brings those whom a node would ask into the order in which it does: its own site's, then other
    /// sites' nodes for what they have themselves, then gateways for what their members have.
    void put_near_first(node_number from, std::vector<digest_number>& whom) const;

private:
    node_number nodes_, sites_, size_;
};

/// A gateway's follower of a sibling took an answer in: what it tells of its members is told of it, as
/// digest_fetch does.
void hear(proxy::peer::members_source& members,
          unsigned slot,
          const proxy::peer::digest_follower& of,
          const proxy::peer::digest_follower::change& change);

}  // namespace reprise::fleet
