#pragma once
// How far a question goes from node to node.
//
//     client's    asked here                    siblings and sites are asked, then homes, parents, origins
//     a site's    asked of a gateway            its siblings are asked, and nobody else
//     a sibling's asked with only-if-cached     nobody is asked
//
// Each asks with a question of fewer hops than its own, whoever the nodes are and however they name
// each other: so no chain has more than two hops behind the first node, and there are no loops. With
// homes it is one more, once: a home asks as its client would, and hands nothing on (homes.hpp). (What an
// answer is joined to is no hop: nothing that a sibling feeds is joined by one.)

#include <cstdint>
#include <string_view>

namespace reprise::proxy::peer {

/// In a question of another site, and in its Connection: what this node lacks is to be asked of its
/// siblings.
inline constexpr std::string_view site_field = "Reprise-Site";

enum class asked_by : std::uint8_t { sibling, site, client };

/// Whom a question leads to.
struct reach {
    bool siblings = false;  ///< asked as a sibling asks: asked_by::sibling
    bool sites = false;     ///< their gateways so, and for their members: asked_by::site
    bool beyond = false;    ///< homes, parents, origins
};
[[nodiscard]] constexpr reach reach_of(asked_by who) noexcept {
    return {.siblings = who != asked_by::sibling,
            .sites = who == asked_by::client,
            .beyond = who == asked_by::client};
}

/// Nodes that a question may pass behind the one that is asked.
[[nodiscard]] constexpr unsigned hops_behind(asked_by who) noexcept {
    return static_cast<unsigned>(who);
}

}  // namespace reprise::proxy::peer
