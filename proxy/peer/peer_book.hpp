#pragma once
// Who the peers are right now, for asking and for answering: one immutable value, made anew when
// the settings or DNS change.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/way_through.hpp"
#include "proxy/peer/credentials.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/homes.hpp"
#include "proxy/peer/parents.hpp"
#include "proxy/peer/reach.hpp"
#include "proxy/peer/slot_set.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// A peer as it is asked for objects.
struct known_peer {
    std::string name;
    std::string host;  ///< lower case, without brackets
    std::uint16_t port = 0;
    bool https = false;
    bool squid = false;
    bool members = false;     ///< another site's gateway, asked for what its siblings hold
    bool proxy_only = false;  ///< what it answers is never stored here
    std::optional<std::chrono::seconds> max_age{};  ///< peers[].max_age
    std::chrono::milliseconds timeout{300};
    net::way_ptr way{};   ///< of a parent: connections through it; null: a sibling
    whereabouts where{};  ///< of a sibling
};

/// An address that requests of a peer come from.
struct peer_address {
    asio::ip::address at;
    bool squid = false;
    bool operator==(const peer_address&) const = default;
};

/// Threads   immutable, but for which parents are down (parents.hpp): any number.
struct peer_book {
    std::array<std::shared_ptr<const known_peer>, most_slots>
        siblings;  ///< by their slots; null: nobody
    std::vector<known_peer> parents;
    std::shared_ptr<parent_choice> choice;     ///< among parents; null: there are none
    std::shared_ptr<const peer::homes> homes;  ///< null: URLs have none (peering.homes)
    std::vector<peer_address> addresses;
    slot_set for_http;   ///< the slots of all siblings
    slot_set for_https;  ///< of those behind TLS that are no Squids
    slot_set of_sites;   ///< of those that belong to another site
    slot_set members;    ///< of gateways, as those that are asked for what their siblings hold
    std::vector<config::network> guests;  ///< peering.gateway_for: these ask, and are not asked

    /// The slots of those who may be asked for a URL, because of a question that leads so far. One of
    /// https travels over TLS alone, and Squids are told of none.
    [[nodiscard]] slot_set asked_for(bool secure,
                                     reach how_far = reach_of(asked_by::client)) const noexcept {
        const auto& all = secure ? for_https : for_http;
        const auto own = how_far.siblings ? all & ~of_sites : slot_set{};
        return how_far.sites ? own | (all & of_sites) : own;
    }
    /// How many instances these are: a gateway has two slots, its own and its members'.
    [[nodiscard]] std::size_t instances_of(const slot_set& some) const noexcept {
        return (some & ~members).count();
    }
    [[nodiscard]] bool is_peer(const asio::ip::address& client, bool squid) const noexcept;
    /// A peer of either protocol.
    [[nodiscard]] bool is_peer(const asio::ip::address& client) const noexcept;
    /// What siblings may ask: a Reprise that is a peer, or a guest (peering.gateway_for), which is none in
    /// any other respect.
    [[nodiscard]] bool may_ask(const asio::ip::address& client) const noexcept;
    /// Whether a peer may listen there: at one of their addresses, on one of their ports or of our own,
    /// since a node that listens on several ports is named with one, and nodes are set up alike.
    [[nodiscard]] bool is_listener(const asio::ip::address& at,
                                   std::uint16_t port,
                                   std::span<const std::uint16_t> own_ports) const noexcept;
};

/// The book of these settings, siblings as `followed` and addressed as `addresses` say. Slots are
/// those of `table`. `node`: this instance's name in Via. `live`: the siblings that URLs may belong
/// to; none: URLs have no homes. `before`: what is known of a home goes on where its name and slot are
/// the same; of a parent where its address, credentials and name are, and so do connections through it;
/// may be null.
[[nodiscard]] std::shared_ptr<const peer_book> make_book(
    std::span<const config::peer_options> peers,
    const parent_credentials& credentials,
    std::string_view node,
    std::span<const followed> siblings,
    std::vector<peer_address> addresses,
    std::span<const config::network> guests,
    const std::optional<std::vector<live_node>>& live,
    sibling_table& table,
    const peer_book* before);

}  // namespace reprise::proxy::peer
