// What a fleet in sites asks from one to another, and there for it (proxy/peer/reach.hpp).

#include "tools/fleet/fleet.hpp"

namespace reprise::fleet {

// The node that tells the digest which names it is asked; where that is a gateway's digest of its
// members, the gateway asks them for what it has not got.
bool fleet::other_site_has(const request& wanted, digest_number named) {
    const auto& where = exchange_->where();
    const auto asked = where.teller_of(named);
    const bool of_members = where.is_of_members(named);
    const bool found = gives(wanted, asked) || (of_members && members_have(wanted, asked));
    const auto count = [found](questioned& in) {
        ++in.questions;
        in.in_vain += found ? 0 : 1;
    };
    ++tally_.questions;
    tally_.false_hits += found ? 0 : 1;
    count(tally_.across);
    if (of_members) {
        count(tally_.across_members);
    }
    if (found) {
        ++tally_.across_hits;
        tally_.across_hit_bytes += wanted.bytes;
        count_sibling_hit(wanted);
    }
    return found;
}

// A site's question leads to the gateway's siblings, and to no third site.
bool fleet::members_have(const request& wanted, node_number gateway) {
    const auto& where = exchange_->where();
    exchange_->look_up(wanted.key, gateway, candidates_there_);
    for (const auto sibling : candidates_there_) {
        if (where.are_apart(gateway, where.teller_of(sibling))) {
            continue;
        }
        ++tally_.questions;
        ++tally_.for_sites.questions;
        if (gives(wanted, sibling)) {
            return true;
        }
        ++tally_.false_hits;
        ++tally_.for_sites.in_vain;
    }
    return false;
}

}  // namespace reprise::fleet
