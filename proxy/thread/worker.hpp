#pragma once
// What one thread owns, and what all threads share.
// A connection never leaves its worker: nothing in a worker is locked. Shared are the store, the
// fetches under way, the admission filter (each with its own short locks or atomics), and the
// counters, where a thread writes its own block.

#include "proxy/base/access_log.hpp"
#include "proxy/base/byte_sample.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/costly_hosts.hpp"
#include "proxy/base/counters.hpp"
#include "proxy/base/failing_hosts.hpp"
#include "proxy/base/hosts_by_bytes.hpp"
#include "proxy/base/live_feed.hpp"
#include "proxy/base/tunnel_hosts.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/advisor.hpp"
#include "proxy/cache/collapse.hpp"
#include "proxy/cache/kept_lately.hpp"
#include "proxy/cache/store.hpp"
#include "proxy/cache/unattended.hpp"
#include "proxy/cache/uncacheable.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/client_rate.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/known_logins.hpp"
#include "proxy/net/list_link.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/net/password_checks.hpp"
#include "proxy/net/refusals.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/peer/hedges.hpp"
#include "proxy/peer/peering.hpp"
#include "proxy/peer/pulse.hpp"
#include "proxy/thread/client_connection.hpp"
#include "proxy/thread/other_process.hpp"
#include "proxy/thread/settings.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace reprise::proxy::thread {

/// What clients hold, by address: their connections (limits.connections_per_client), and handshakes in tunnels. Any thread.
class client_census {
public:
    /// Of all places those whom we serve nothing have this share together (1 / 16), while they are told so: strangers
    /// with many addresses can't take the places of those whom we serve.
    static constexpr unsigned strangers_share = 16;

    /// Counts one more; false, and nothing is counted, when one of the limits is reached.
    /// @throws std::bad_alloc, and nothing is counted
    [[nodiscard]] bool enter(const net::address_bytes& client,
                             unsigned most_of_client,
                             unsigned most,
                             bool is_stranger = false);
    void leave(const net::address_bytes& client, bool is_stranger = false) noexcept;
    /// Of all clients together.
    [[nodiscard]] unsigned size() const;

private:
    mutable std::mutex guard_;
    std::unordered_map<net::address_bytes, unsigned, net::address_hash> by_client_;
    unsigned all_ = 0, strangers_ = 0;
};

/// What the program before this one left it (server/UPGRADE.md).
struct taken_over {
    std::string pseudonym;
    std::optional<std::vector<std::byte>> admission;  ///< as admission.state has it
    std::string history;                              ///< as /history has it; empty: none
    steady_time history_at{};                         ///< when it was
};

/// What all workers share.
struct common_state {
    /// @throws std::runtime_error when disk.path cannot be used
    common_state(const config::options& options,
                 std::size_t threads,
                 wall_time now,
                 const taken_over* from = nullptr);

    /// After purges: `kept` is called, on any thread, as soon as a restart would know of all that were
    /// made before this call, and the other process, where there is one, has carried them out.
    void keep_purges(std::function<void()> kept);

    std::string pseudonym;   ///< in Via; unique to this instance
    std::string cache_name;  ///< in Cache-Status: the pseudonym that is set, else "reprise"
    /// Null: there are no peers. Before the store, which tells it what it holds, and the fetches.
    std::unique_ptr<peer::peering> peers;
    /// Counts requests by key for policies and admission; null where none asks.
    std::shared_ptr<cache::frequency_sketch> requests;
    cache::store store;  ///< before admission: a store on disk brings the secret of all keys
    cache::admission_gate admission;
    cache::advisor advice;
    cache::unattended_fetches unattended;  ///< before the fetches, which hold its permits
    cache::collapse_table fetches;
    cache::uncacheable_keys uncacheable;
    cache::kept_lately kept_lately;
    std::shared_ptr<net::distrusted_origins> distrusted =
        std::make_shared<net::distrusted_origins>();
    net::refusals refusals;       ///< of tunnels that would be opened
    client_census shaking_hands;  ///< those whose tunnels are being opened
    tunnel_hosts tunnels;
    failing_hosts failing;
    costly_hosts costly;
    hosts_by_bytes by_bytes;
    counters_registry counters;
    access_log access;
    live_feed live;
    client_census clients;
    net::client_rates client_rates;
    net::password_checks passwords;
    /// URL purges; the store's list counts the others. Purges are rare and come on any
    /// thread.
    std::atomic<std::uint64_t> purged_urls{0}, purged_url_responses{0};
    std::atomic<bool> draining{false};
    /// Beside draining: another process accepts, so connections that wait for their next request may
    /// go on waiting, for they have their last one yet.
    std::atomic<bool> succeeded{false};
    [[nodiscard]] bool ends_idle_connections() const noexcept {
        return draining.load(std::memory_order_relaxed) &&
               !succeeded.load(std::memory_order_relaxed);
    }
    neighbour beside;
    /// Every listener's port, the admin's too: written before any thread runs.
    std::vector<std::uint16_t> own_ports;
    /// Where clients are listened for: as own_ports.
    std::vector<tcp::endpoint> listens_at;
    /// Whether a connection there is one of these listeners'. O(listeners).
    [[nodiscard]] bool listens(const tcp::endpoint& far,
                               const net::destination_guard& here) const noexcept;
};

/// One thread's view of the peers.
struct worker_peers {
    explicit worker_peers(peer::peering& of) : siblings{of.siblings()}, seen{of.seen_elsewhere()} {}

    peer::sibling_table::reader siblings;
    peer::seen_elsewhere::reader seen;
    peer::hedges hedges;
    peer::peering::book_ptr book = std::make_shared<peer::peer_book>();  ///< never null
    std::array<peer::pulse, peer::most_slots> pulses;                    ///< of siblings, by slots
};

/// Everything one thread owns.
struct worker {
    worker(std::size_t index, common_state& shared, settings_ptr initial);
    ~worker();
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    /// New settings, from this worker's own thread.
    void adopt(settings_ptr next);

    // What fails for one connection in these three is done for all others, and thrown behind the last.

    /// Ends idle client connections at once and lets the others finish their request. This thread.
    void drain();
    /// Closes everything. This thread.
    void abort();

    /// Sessions that wait for an origin and cannot notice that their client left: looked at a few
    /// times a second.
    void watch_clients();

    /// A peer's address, or one of access.fronts: it is no one client, and no share of one client
    /// bounds it.
    [[nodiscard]] bool speaks_for_many(const net::address_bytes& client) const;
    /// Whose share of what is scarce a request of this client's is charged to.
    [[nodiscard]] net::share_holder share_of(const net::address_bytes& client) const;
    /// Outside access.clients, and no front or peer: all that it is told is that it is not served.
    [[nodiscard]] bool is_stranger(const net::address_bytes& client) const;

    [[nodiscard]] std::uint64_t next_request_id() noexcept { return ++request_id_; }

    /// Its sockets and timers are this thread's alone, and unlocked; others may post.
    asio::io_context io{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
    common_state& common;
    thread_counters& counts;
    settings_ptr current;
    net::deadlines timer;
    net::resolver names;
    net::origin_pool origins;
    net::login_hasher hash_login;
    net::known_logins logins;
    std::optional<worker_peers> peers;  ///< none: there are no peers
    net::list_link connections;         ///< of clients: client_connections, which enter and leave
    byte_sample sampled;                ///< of answers, for common.by_bytes
    unsigned lone_fetches = 0;          ///< of requests that a silent fetch of all was left for
    unsigned watched = 0;  ///< sessions that wait now; the watch runs while there are any
    net::deadline watch;

private:
    class all_the_same;
    template <class Action>
    void with_each_client(all_the_same& through, Action act);
    void disown(const net::origin_address& origin, std::span<const std::string> kept, bool anew);
    std::uint64_t request_id_;
};

}  // namespace reprise::proxy::thread
