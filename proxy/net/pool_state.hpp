#pragma once
// What an origin_pool and its leases share: the connections of one thread, by where they lead.
// Not for use outside origin_pool.cpp.
//
// A group is all connections to one origin_address, whoever owns them: its limits are for all of
// them together, while an idle one serves its own owner alone. Its `open` counts slots: a slot is
// taken before a dial, belongs to the connection while it lives, and is either released or handed
// to the first waiter, never both. Idle connections are in two orders at once: their group's, the
// last used at the end, and the pool's, the longest unused first, which both the idle timeout and
// the bound on all idle connections take from the front.
//
// A share is what one holder has of a group: charged with a slot from before its dial until the
// connection is given back or closed (idle ones are nobody's). A waiter is listed with its share.
// A share is in the group's line while somebody waits in it and it may have one more; what comes
// free goes to the first waiter of the first share, which then goes behind the others.
//
// Whoever gives a slot or a connection away allocates nothing for it, beside what wakes a waiter (one of the
// loop's own blocks): both lines lead through their
// members, and what may throw comes before the books are changed. A lease closes where memory is short
// too, and a slot that nobody answers for would be lost for good.

#include "proxy/net/list_link.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/net/tls_resumption.hpp"
#include "proxy/net/wakeup.hpp"

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace reprise::proxy::net::detail {

struct pool_group;
struct pool_waiter;

/// Linked: it is in the group's line.
struct pool_share : list_link {
    address_bytes holder{};
    unsigned in_use = 0;
    list_link waiting;  // the head of its waiters
};

struct pool_connection : list_link {
    pool_connection(byte_stream from,
                    asio::ip::address to,
                    pool_group& in,
                    std::uint64_t whose,
                    const share_holder& asked_by);

    byte_stream socket;
    read_buffer buffer;
    asio::ip::address address;
    std::string endpoint;  // endpoint_text of that: made once, for each of its requests
    pool_group* group;
    std::uint64_t owner;          // origin_address::owner
    share_holder holder;          // whom it was made for
    pool_share* share = nullptr;  // null: idle, or nobody's
    std::shared_ptr<const destination_guard> judged_by;
    tls_trust_ptr believed_by{};  ///< by whom its certificate was; null: no TLS
    steady_time made = steady_now(), idle_since{};
    bool reused = false;
    // The last answers on it that were kept, by name, but for the first of all: nothing can have
    // stood in front of that.
    std::array<std::string, 4> kept;
    std::size_t kept_count = 0;
};
using connection_ptr = std::unique_ptr<pool_connection>;

/// A request that waits for a slot, in the frame of its coroutine; linked while it has nothing. What
/// it was handed and did not take is released with it.
struct pool_waiter : list_link {
    enum class handed : std::uint8_t { nothing, slot, connection, taken };

    /// @param of     null: the asker speaks for many, and each of its requests has turns of its own
    /// @param whose  origin_address::owner of what it waits for
    pool_waiter(pool_state& in,
                pool_group& at,
                pool_share* of,
                std::uint64_t whose,
                deadlines& timer,
                bool fresh);
    ~pool_waiter();
    pool_waiter(const pool_waiter&) = delete;
    pool_waiter& operator=(const pool_waiter&) = delete;

    [[nodiscard]] bool may_have(const pool_connection& one) const noexcept {
        return !fresh_only && one.owner == owner;
    }
    [[nodiscard]] pool_share* charged() noexcept { return &share == &own ? nullptr : &share; }

    pool_state& pool;
    pool_group& group;
    pool_share own;
    pool_share& share;
    std::uint64_t owner;
    bool fresh_only;
    handed has = handed::nothing;
    connection_ptr connection;
    wakeup freed;
};

struct pool_group {
    explicit pool_group(const origin_address& of)
        : host(of.host),
          address{of},
          name(distrusted_origins::name_of(of.host, of.port, of.tls)) {
        address.host = host;
        address.owner = 0;
    }
    pool_group(const pool_group&) = delete;
    pool_group& operator=(const pool_group&) = delete;

    std::string host;
    origin_address address;  // its host is a view of the one above
    secret_name name;        // among the distrusted
    unsigned open = 0;
    std::vector<connection_ptr> idle;
    std::size_t idle_owned = 0;  // of those, one client's own each
    std::unordered_map<address_bytes, pool_share, address_hash> shares;
    list_link line;           // the head of the shares in it
    std::size_t waiting = 0;  // in all shares
};

struct pool_state {
    pool_state(deadlines& with,
               resolver& by,
               std::shared_ptr<const destination_guard> judge,
               const config::origin_options& wanted)
        : timer(with),
          names(by),
          guard(std::move(judge)),
          options(wanted),
          sweep(with, [this] { close_expired(); }) {}

    // The key's host is a view of the group's own, and its owner is 0.
    std::map<origin_address, std::unique_ptr<pool_group>> groups;

    /// Null: there is none. Both look past the owner.
    [[nodiscard]] pool_group* find_group(const origin_address& to) const;
    pool_group& group_for(const origin_address& to);
    connection_ptr take_idle(const origin_address& to, const share_holder& holder);
    pool_share* share_of(pool_group& group, const share_holder& holder);
    [[nodiscard]] bool has_room(const pool_share* share) const noexcept {
        return share == nullptr || share->in_use < options.connections_per_client;
    }
    void charge(pool_share* share) noexcept;
    void discharge(pool_group& group, pool_share* share) noexcept;
    void join_line(pool_group& group, pool_share& share) noexcept;
    pool_waiter* first_in_line(pool_group& group) noexcept;
    void take_turn(pool_waiter& of) noexcept;
    void forget_if_unused(pool_group& group, pool_share* share) noexcept;
    void adopt(const config::origin_options& next);
    bool usable(pool_connection& each) noexcept;
    [[nodiscard]] bool refuses(const pool_connection& each) const noexcept;
    [[nodiscard]] bool distrusts(const pool_group& group) const noexcept;
    void caught(pool_connection& each) noexcept;
    /// How it ends: by a FIN, or by a reset, which leaves its local port free.
    enum class ending : std::uint8_t { quiet, reset };
    void discard_idle(connection_ptr connection, ending how = ending::reset);
    connection_ptr unlist(pool_group& group, std::size_t index) noexcept;
    connection_ptr unlist_oldest() noexcept;
    connection_ptr unlist_last_of(pool_group& group, std::uint64_t owner) noexcept;
    void make_room_for_idle(pool_group& group, const pool_connection& next);
    void put_back(connection_ptr connection);
    void keep_idle(connection_ptr connection);
    void close_keeping_slot(connection_ptr connection);
    void discard(connection_ptr connection);
    void release_slot(pool_group& group);
    void forget_if_unused(pool_group& group) noexcept;
    void close_expired();
    void close_idle_of(std::uint64_t owner) noexcept;
    void stop();
    void add(std::atomic<std::uint64_t>& figure, int change) {
        // Written by this thread alone: no read-modify-write needed.
        figure.store(figure.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(change),
                     std::memory_order_relaxed);
    }

    [[nodiscard]] bool may_come_back(const pool_connection& one) const {
        return one.owner == 0 || owners.contains(one.owner);
    }

    /// Older than an answer of name servers may be.
    [[nodiscard]] bool is_too_old(const pool_connection& each) const noexcept;

    deadlines& timer;
    resolver& names;
    std::shared_ptr<const destination_guard> guard;
    tls_trust_ptr trust;
    tls_resumption sessions;
    std::shared_ptr<distrusted_origins> distrusted = std::make_shared<distrusted_origins>();
    surplus_listener told;
    config::origin_options options;
    origin_figures figures;
    std::unordered_set<std::uint64_t> owners;  // those that live
    list_link oldest_first;
    std::size_t idle_count = 0;
    std::size_t used_up = 0;  // shares that may have no more
    deadline sweep;
    bool stopped = false;
};

/// A slot without a connection, while one is dialled.
class pool_slot {
public:
    pool_slot(pool_state& in, pool_group& of, pool_share* charged)
        : pool_(in),
          group_(&of),
          share_(charged) {}
    ~pool_slot();
    pool_slot(const pool_slot&) = delete;
    pool_slot& operator=(const pool_slot&) = delete;

    /// The connection answers for the slot from now on.
    void hand_over() noexcept { group_ = nullptr; }

private:
    pool_state& pool_;
    pool_group* group_;
    pool_share* share_;
};

}  // namespace reprise::proxy::net::detail
