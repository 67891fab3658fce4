#pragma once
// Siblings found by DNS: every address of a name is one, looked up again as its TTL says, as a
// Kubernetes headless service or a pool of A records gives them.
//
// A node is in the answer itself, and can't tell by the address (it may be behind one that it does
// not know). It leaves itself out when the first digest that it fetches says so (resource.hpp's
// node_field).

#include "config/options.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/peer_book.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace reprise::proxy::peer {

/// What a peer's url says: "scheme://host:port", as the settings' parser leaves it.
struct peer_place {
    std::string host;  ///< without brackets
    std::uint16_t port = 0;
    bool https = false;
};
[[nodiscard]] peer_place place_of(std::string_view url);

/// The siblings of the settings that have a url, as they are to be followed, and of each site its
/// gateway and, as "<name>/members", the gateway's siblings. Parents have no digest. `share`: their seen-filters too (admission.share, and there is a secret).
/// `by_entry`: the addresses of each of `peers`, as far as they are known; none at all: nothing is.
[[nodiscard]] std::vector<followed> configured_siblings(
    std::span<const config::peer_options> peers,
    bool share,
    std::span<const std::vector<asio::ip::address>> by_entry = {});

/// What an entry with dns stands for, given the addresses: named "<name>/<address>", in the order
/// of their addresses, without repeats.
[[nodiscard]] std::vector<followed> discovered_siblings(
    const config::peer_options& entry, std::span<const asio::ip::address> addresses, bool share);

/// Keeps the list of siblings, and that of peers' addresses, true to the settings and to DNS. When
/// a name can't be resolved what it stood for stays; one that does not exist stands for nothing. So too
/// of each family of addresses: one that is not heard of (its answer is late, or its question fails) keeps what
/// it had, and is asked for anew after least_wait, twice that, and so on.
///
/// Threads   the loop of `names`.
class sibling_discovery {
public:
    using tell = std::function<void(std::vector<followed>, std::vector<peer_address>)>;

    /// `found` hears both lists whole, at once and whenever one has changed, or where a sibling is.
    sibling_discovery(asio::io_context& io, net::resolver& names, tell found);
    ~sibling_discovery();
    sibling_discovery(const sibling_discovery&) = delete;
    sibling_discovery& operator=(const sibling_discovery&) = delete;

    /// From now on these. What is known of a name that stays is kept, whatever else its entry says now,
    /// until the name is resolved again.
    void follow(std::vector<config::peer_options> peers, bool share);
    void stop();

    /// Never looked up more often, whatever a TTL says; but a family that is late is waited for.
    static constexpr std::chrono::seconds least_wait{5};
    static constexpr std::chrono::seconds longest_wait{300};

private:
    struct shared;
    static awaitable<void> run(std::shared_ptr<shared> all, std::size_t entry, unsigned round);
    std::shared_ptr<shared> shared_;
};

}  // namespace reprise::proxy::peer
