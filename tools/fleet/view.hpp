#pragma once
// What one reader knows of the nodes' digests, or a group of readers that ask at the same moments.
//
// The proxy has one for itself (sibling_table, at most 64 siblings). A thousand readers of a
// thousand digests would be a million copies, so here readers may share a view: it asks each node
// at moments of its own, and what comes of it counts once for each reader. Digests lie in
// filter::sibling_index, 64 nodes to one.

#include "filter/sibling_index.hpp"
#include "proxy/peer/digest_follower.hpp"
#include "proxy/peer/seen_source.hpp"
#include "tools/fleet/sites.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::fleet {

/// Memory   the digests once, bit-sliced, and once more as their followers hold them.
/// Threads  none.
class view {
public:
    /// @param digests  how many there are to be followed: the nodes', and maybe more (sites.hpp)
    view(digest_number digests,
         const proxy::peer::follow_plan& plan,
         bool with_seen,
         std::uint64_t seed,
         proxy::steady_time now);

    [[nodiscard]] proxy::peer::digest_follower& follower(digest_number of, bool seen) {
        return seen ? *seen_followers_[of] : *followers_[of];
    }
    /// The follower took an answer in: the index is told. Returns what was new.
    proxy::peer::digest_follower::change follow_up(digest_number of, bool seen);

    /// The digests that say maybe, from `from` upwards and round, `from` itself left out: so that no
    /// node is everybody's favourite. Into `out`, in place of what is there.
    void look_up(const filter::key_hash& key, node_number from, std::vector<digest_number>& out);
    /// Whether any node's seen filter says so.
    [[nodiscard]] bool seen(const filter::key_hash& key);

private:
    struct block {
        block() : reader{index}, seen_reader{seen} {}
        filter::sibling_index index;
        filter::sibling_index::reader reader;
        proxy::peer::seen_elsewhere seen;
        proxy::peer::seen_elsewhere::reader seen_reader;
    };

    digest_number digests_;
    std::vector<std::unique_ptr<proxy::peer::digest_follower>> followers_, seen_followers_;
    std::vector<std::unique_ptr<block>> blocks_;
    std::vector<filter::sibling_mask> masks_;
};

}  // namespace reprise::fleet
