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

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace reprise::proxy::peer {

/// The siblings of the settings that have a url, as they are to be followed. Parents have no
/// digest. `share`: their seen-filters too (admission.share, and there is a secret).
[[nodiscard]] std::vector<followed> configured_siblings(std::span<const config::peer_options> peers,
                                                        bool share);

/// What an entry with dns stands for, given the addresses: named "<name>/<address>", in the order
/// of their addresses, without repeats.
[[nodiscard]] std::vector<followed> discovered_siblings(const config::peer_options& entry,
                                                        std::span<const net::ip::address> addresses,
                                                        bool share);

/// Keeps a fetcher's list true to the settings and to DNS. When a name can't be resolved its
/// siblings stay as they were; one that does not exist has none.
///
/// Threads   the loop of `names`.
class sibling_discovery {
public:
    using tell = std::function<void(std::vector<followed>)>;

    /// `found` hears the whole list, at once and whenever it has changed.
    sibling_discovery(net::io_context& io, resolver& names, tell found);
    ~sibling_discovery();
    sibling_discovery(const sibling_discovery&) = delete;
    sibling_discovery& operator=(const sibling_discovery&) = delete;

    /// From now on these.
    void follow(std::vector<config::peer_options> peers, bool share);
    void stop();

    /// Never asked more often, whatever a TTL says.
    static constexpr std::chrono::seconds least_wait{5};
    static constexpr std::chrono::seconds longest_wait{300};

private:
    struct shared;
    static awaitable<void> run(std::shared_ptr<shared> all, std::size_t entry, unsigned round);
    std::shared_ptr<shared> shared_;
};

}  // namespace reprise::proxy::peer
