#pragma once
// Connections to origins, kept for the next request.
// The danger of a kept connection is what may be in it: bytes after the last answer would become
// the next request's answer. So one comes back only by the word of an exchange that ended cleanly
// (give_back), with nothing left in its buffer, and is looked at again before it is used: the end
// or any byte in it, and it is closed. Bytes that come later than that look can't be told from the
// next answer. So an origin that was caught once with some, wherever, gets a new connection per
// request for an hour (distrusted_origins), and the owner of kept answers that came on that
// connection behind another is told.

#include "config/options.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/byte_stream.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/distrusted_origins.hpp"
#include "proxy/net/guard.hpp"
#include "proxy/net/read_buffer.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/net/tls_trust.hpp"
#include "proxy/net/way_through.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

/// Where connections lead, and how: those to equal ones serve each other's requests.
struct origin_address {
    std::string_view host;  ///< lower case, without brackets
    std::uint16_t port = 0;
    bool exempt = false;  ///< a configured upstream or peer, which the guard lets pass
    bool tls = false;     ///< encrypted, and its certificate valid for `host`
    /// The parent that makes the connection; null: we do. The same object for the same parent. Only
    /// with `tls`.
    way_ptr through{};
    /// 0: anybody's. Other numbers are apart, so that what keeps a connection to itself for long (a
    /// sibling's news) leaves origins.connections to requests.
    std::uint8_t lane = 0;
    /// A client's whose connection was logged in (http/connection_login.hpp); 0: anybody's. See
    /// owned_connections. Limits are for all owners together.
    std::uint64_t owner = 0;
    auto operator<=>(const origin_address&) const = default;
};

/// An origin_address::owner whose connections are for one request each: given back, they are closed.
inline constexpr std::uint64_t owner_of_one_request = ~std::uint64_t{0};

/// Counted by the pool's thread, read by any.
struct origin_figures {
    std::atomic<std::uint64_t> open{0};      ///< connections now, in use and idle
    std::atomic<std::uint64_t> idle{0};      ///< of those, unused now
    std::atomic<std::uint64_t> dials{0};     ///< attempts to connect
    std::atomic<std::uint64_t> opened{0};    ///< of those, that came about
    std::atomic<std::uint64_t> failures{0};  ///< and in vain (names included); not those given up
    std::atomic<std::uint64_t> reuses{0};    ///< exchanges that found a connection open
    std::atomic<std::uint64_t> stale{0};     ///< idle ones found ended or with surplus bytes
    std::atomic<std::uint64_t> surplus{0};   ///< found with bytes behind an answer, used or idle
};

/// Hears of a connection with more on it than its answers said. `kept`: what answers were kept as
/// that came on it behind another (origin_lease::note_kept), the last four of them at most; `anew`:
/// the origin was trusted until now. May be called by any call of the pool and its leases, none of
/// which passes on what it throws.
using surplus_listener =
    std::function<void(const origin_address& origin, std::span<const std::string> kept, bool anew)>;

namespace detail {
struct pool_share;
struct pool_state;
struct pool_connection;
}  // namespace detail

/// A connection for one exchange. Destroying it closes the connection; give_back() keeps it.
/// May outlive the pool.
class origin_lease {
public:
    origin_lease() noexcept;
    origin_lease(origin_lease&&) noexcept;
    origin_lease& operator=(origin_lease&&) noexcept;
    ~origin_lease();

    [[nodiscard]] explicit operator bool() const noexcept { return connection_ != nullptr; }

    /// @pre of these four: it holds a connection
    [[nodiscard]] byte_stream& socket() noexcept;
    [[nodiscard]] read_buffer& buffer() noexcept;
    [[nodiscard]] bool reused() const noexcept;
    /// Where it leads, as endpoint_text has it.
    [[nodiscard]] const std::string& endpoint() const noexcept;

    /// The answer that came on it is kept under this name. Nothing is noted of a connection's
    /// first.
    void note_kept(std::string_view name);
    /// It has, or had, more on it than its answers said. It is not used again.
    void note_surplus();

    /// The exchange ended cleanly and the connection may serve another: the response was read to
    /// its end, the request written to its end, and neither side said close. Closes it all the same
    /// when its buffer is not empty. Empties the lease.
    void give_back();
    /// Closes the connection and empties the lease.
    void close() noexcept;

private:
    friend class origin_pool;
    origin_lease(std::shared_ptr<detail::pool_state> pool,
                 std::unique_ptr<detail::pool_connection> connection) noexcept;
    std::shared_ptr<detail::pool_state> pool_;
    std::unique_ptr<detail::pool_connection> connection_;
};

/// One for each thread; nothing but the figures is read by others. Connections to one
/// origin_address are alike; at most origins.connections of them are open at once, whoever owns them,
/// and at most origins.connections_per_client in use for one holder. Further requests wait; holders
/// take turns, each in arrival order, so no holder waits for another's backlog.
class origin_pool {
public:
    /// Idle connections of all hosts together; the longest unused is closed for a new one.
    static constexpr std::size_t most_idle = 1'024;

    origin_pool(deadlines& timer,
                resolver& names,
                std::shared_ptr<const destination_guard> guard,
                const config::origin_options& options);
    ~origin_pool();
    origin_pool(const origin_pool&) = delete;
    origin_pool& operator=(const origin_pool&) = delete;

    /// An idle connection (the most recently used) or a new one, or, at a limit, one that comes
    /// free before `until`: else origin_connection_limit or client_share_used. The errors of dial
    /// and connect_tls otherwise, and through a parent those of connect_through and secure_passage.
    /// Given up (coroutine.hpp), it leaves the line, or its dial ends and gives its place to the next, in
    /// the loop's next turn: unless it has a connection by then.
    /// @param to          its host must live until the call is awaited
    /// @param fresh_only  never an idle one: for a retry after a reused connection failed, and for
    ///                    requests that can't be sent twice
    [[nodiscard]] awaitable<attempt<origin_lease>> acquire(origin_address to,
                                                           bool fresh_only,
                                                           steady_time until,
                                                           share_holder holder = {});

    /// An idle connection if there is one and the holder may have it, else an empty lease: spares
    /// the coroutine.
    [[nodiscard]] origin_lease try_acquire(const origin_address& to,
                                           const share_holder& holder = {});

    /// Some holder has used up its share of some origin: only then is is_used_up worth a look-up.
    [[nodiscard]] bool any_used_up() const noexcept;
    /// A request of this holder would now have to wait for the holder's earlier ones there.
    [[nodiscard]] bool is_used_up(const origin_address& to, const share_holder& holder) const;
    /// It would have to wait for anybody's: the holder's share is used up, or all connections there are in use.
    [[nodiscard]] bool must_wait(const origin_address& to, const share_holder& holder) const;

    /// For a reload; idle connections are judged by the new guard before they are used again.
    void set_guard(std::shared_ptr<const destination_guard> guard);
    void set_options(const config::origin_options& options);
    /// What all pools know of origins, and who hears of more. Before the first connection.
    void set_distrusted(std::shared_ptr<distrusted_origins> known, surplus_listener told);
    /// For connections from now on. Without it (null) none with TLS can be made.
    void set_trust(tls_trust_ptr trust);

    /// Closes what is idle and fails whatever waits. Leases live on; what is given back is closed.
    void stop();

    [[nodiscard]] const origin_figures& figures() const noexcept;

private:
    friend class owned_connections;
    std::shared_ptr<detail::pool_state> state_;
};

/// The connections of a pool that are one client's alone: what is given back when it has gone is closed.
/// They count to the limits of their origin. Unused, a client may have origins.connections_per_client of
/// them there, beside origins.idle of everybody's. Where the limits leave no room, the longest unused
/// connection is closed, one's own too; and what is given back while others wait in line, whose it is not,
/// is closed for them, so that a login that was under way on it begins anew.
/// Threads   the pool's; it may outlive the pool.
class owned_connections {
public:
    explicit owned_connections(const origin_pool& of);
    /// Closes what is idle of them. O(origins).
    ~owned_connections();
    owned_connections(const owned_connections&) = delete;
    owned_connections& operator=(const owned_connections&) = delete;

    /// No other's, and neither 0 nor owner_of_one_request.
    [[nodiscard]] std::uint64_t owner() const noexcept { return owner_; }

private:
    const std::weak_ptr<detail::pool_state> of_;
    const std::uint64_t owner_;
};

}  // namespace reprise::proxy::net
