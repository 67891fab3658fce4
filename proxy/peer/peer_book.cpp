#include "proxy/peer/peer_book.hpp"

#include "proxy/net/access.hpp"
#include "proxy/net/address.hpp"
#include "proxy/peer/discovery.hpp"

#include <algorithm>

namespace reprise::proxy::peer {

namespace {

// "b/10.0.0.1" was found for the entry "b", "b/members" belongs to the site "b".
const config::peer_options* entry_of(std::span<const config::peer_options> peers,
                                     std::string_view name) {
    const auto at = std::find_if(peers.begin(), peers.end(), [name](const auto& one) {
        const bool has_more = !one.dns.empty() || one.kind == config::peer_kind::site;
        return one.name == name || (has_more && name.starts_with(one.name) &&
                                    name.substr(one.name.size()).starts_with('/'));
    });
    return at == peers.end() ? nullptr : &*at;
}

// The same object as before where it says the same: connections are kept by it.
net::way_ptr way_of(const config::peer_options& parent,
                    const parent_credentials& credentials,
                    std::string_view node,
                    const peer_book* before) {
    auto at = place_of(parent.url);
    const auto known = credentials.find(parent.name);
    net::way_through way{.name = parent.name,
                         .host = std::move(at.host),
                         .port = at.port,
                         .tls = at.https,
                         .credentials = known == credentials.end() ? "" : known->second,
                         .via = "1.1 " + std::string{node}};
    if (before != nullptr) {
        for (const auto& one : before->parents) {
            if (*one.way == way) {
                return one.way;
            }
        }
    }
    return std::make_shared<const net::way_through>(std::move(way));
}

// What was found of an address, or by credentials, that are others now says nothing of these. A failure in
// a book that is used no more is counted there.
std::shared_ptr<parent_choice> choice_among(const std::vector<known_peer>& parents,
                                            const peer_book* before) {
    const auto is_same = [](const known_peer& a, const known_peer& b) { return a.way == b.way; };
    if (parents.empty()) {
        return nullptr;
    }
    if (before != nullptr && std::ranges::equal(parents, before->parents, is_same)) {
        return before->choice;
    }
    std::vector<std::string> names;
    for (const auto& one : parents) {
        names.push_back(one.name);
    }
    auto choice = std::make_shared<parent_choice>(names);
    for (std::size_t i = 0; before != nullptr && i < parents.size(); ++i) {
        for (std::size_t was = 0; was < before->parents.size(); ++was) {
            if (is_same(parents[i], before->parents[was])) {
                choice->go_on_as(i, *before->choice, was);
            }
        }
    }
    return choice;
}

asio::ip::address without_mapping(const asio::ip::address& client) noexcept {
    return client.is_v6() && client.to_v6().is_v4_mapped()
               ? asio::ip::address{asio::ip::make_address_v4(asio::ip::v4_mapped, client.to_v6())}
               : client;
}

}  // namespace

bool peer_book::is_peer(const asio::ip::address& client, bool squid) const noexcept {
    const auto plain = without_mapping(client);
    return std::any_of(addresses.begin(), addresses.end(), [&](const peer_address& one) {
        return one.squid == squid && one.at == plain;
    });
}

bool peer_book::is_peer(const asio::ip::address& client) const noexcept {
    const auto plain = without_mapping(client);
    return std::any_of(addresses.begin(), addresses.end(), [&](const peer_address& one) {
        return one.at == plain;
    });
}

bool peer_book::may_ask(const asio::ip::address& client) const noexcept {
    return is_peer(client, false) || net::is_in(guests, net::canonical(client));
}

bool peer_book::is_listener(const asio::ip::address& at,
                            std::uint16_t port,
                            std::span<const std::uint16_t> own_ports) const noexcept {
    const auto on_port = [port](const known_peer& one) { return one.port == port; };
    const auto is_on_port = [&](const auto& one) { return one && on_port(*one); };
    const bool port_is_one = std::find(own_ports.begin(), own_ports.end(), port) !=
                                 own_ports.end() ||
                             std::any_of(siblings.begin(), siblings.end(), is_on_port) ||
                             std::any_of(parents.begin(), parents.end(), on_port);
    return port_is_one && is_peer(at);
}

std::shared_ptr<const peer_book> make_book(std::span<const config::peer_options> peers,
                                           const parent_credentials& credentials,
                                           std::string_view node,
                                           std::span<const followed> siblings,
                                           std::vector<peer_address> addresses,
                                           std::span<const config::network> guests,
                                           const std::optional<std::vector<live_node>>& live,
                                           sibling_table& table,
                                           const peer_book* before) {
    auto book = std::make_shared<peer_book>();
    for (const auto& one : siblings) {
        const auto* entry = entry_of(peers, one.name);
        const auto slot = table.enrol(one.name);
        if (entry == nullptr || !slot) {
            continue;
        }
        book->siblings[*slot] = std::make_shared<known_peer>(
            known_peer{.name = one.name,
                       .host = one.host,
                       .port = one.port,
                       .https = one.https,
                       .squid = one.squid,
                       .members = one.members,
                       .proxy_only = entry->proxy_only,
                       .max_age = entry->max_age,
                       .timeout = entry->timeout,
                       .where = one.where});
        book->for_http.add(*slot);
        if (one.https && !one.squid) {
            book->for_https.add(*slot);
        }
        if (one.of_site) {
            book->of_sites.add(*slot);
        }
        if (one.members) {
            book->members.add(*slot);
        }
    }
    for (const auto& entry : peers) {
        if (entry.kind != config::peer_kind::parent) {
            continue;
        }
        const auto at = place_of(entry.url);
        book->parents.push_back({.name = entry.name,
                                 .host = at.host,
                                 .port = at.port,
                                 .https = at.https,
                                 .squid = entry.protocol == config::peer_protocol::squid,
                                 .proxy_only = entry.proxy_only,
                                 .timeout = entry.timeout,
                                 .way = way_of(entry, credentials, node, before)});
    }
    book->choice = choice_among(book->parents, before);
    if (live) {
        auto homes = std::make_shared<peer::homes>(node, *live);
        const auto* known = before != nullptr ? before->homes.get() : nullptr;
        if (known != nullptr) {
            homes->go_on_as(*known);
        }
        book->homes = known != nullptr && std::ranges::equal(known->others(), homes->others())
                          ? before->homes
                          : std::move(homes);
    }
    book->addresses = std::move(addresses);
    book->guests.assign(guests.begin(), guests.end());
    return book;
}

}  // namespace reprise::proxy::peer
