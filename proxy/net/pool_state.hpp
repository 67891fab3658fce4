#pragma once
// What an origin_pool and its leases share: the connections of one thread, by where they lead.
// Not for use outside origin_pool.cpp.
//
// A group is all connections to one origin_address. Its `open` counts slots: a slot is
// taken before a dial, belongs to the connection while it lives, and is either released or handed
// to the first who waits, never both. Idle connections are in two orders at once: their group's,
// the last used at the end, and the pool's, the longest unused first, which both the idle timeout
// and the bound on all idle connections take from the front.

#include "proxy/net/list_link.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/net/wakeup.hpp"

#include <array>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace reprise::proxy::detail {

struct pool_group;

struct pool_connection : list_link {
    pool_connection(tcp_socket from, net::ip::address to, pool_group& in)
        : socket(std::move(from)),
          address(std::move(to)),
          group(&in) {}

    tcp_socket socket;
    read_buffer buffer;
    net::ip::address address;
    pool_group* group;
    std::shared_ptr<const destination_guard> judged_by;
    steady_time idle_since{};
    bool reused = false;
    // The last answers on it that were kept, by name, but for the first of all: nothing can have
    // stood in front of that.
    std::array<std::string, 4> kept;
    std::size_t kept_count = 0;
};
using connection_ptr = std::unique_ptr<pool_connection>;

/// Who waits for a slot, in the frame of its coroutine. What it was handed and did not take is
/// released with it.
struct pool_waiter {
    enum class handed : std::uint8_t { nothing, slot, connection, taken };

    pool_waiter(pool_state& in, pool_group& at, deadlines& timer, bool fresh);
    ~pool_waiter();
    pool_waiter(const pool_waiter&) = delete;
    pool_waiter& operator=(const pool_waiter&) = delete;

    pool_state& pool;
    pool_group& group;
    bool fresh_only;
    handed has = handed::nothing;
    connection_ptr connection;
    wakeup freed;
};

struct pool_group {
    explicit pool_group(const origin_address& of)
        : host(of.host),
          address{host, of.port, of.exempt, of.tls},
          name(distrusted_origins::name_of(of.host, of.port, of.tls)) {}
    pool_group(const pool_group&) = delete;
    pool_group& operator=(const pool_group&) = delete;

    std::string host;
    origin_address address;  // its host is a view of the one above
    std::uint64_t name;      // among the distrusted
    unsigned open = 0;
    std::vector<connection_ptr> idle;
    std::list<pool_waiter*> waiting;
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

    // The key's host is a view of the group's own.
    std::map<origin_address, std::unique_ptr<pool_group>> groups;

    pool_group& group_for(const origin_address& to);
    connection_ptr take_idle(const origin_address& to);
    bool usable(pool_connection& each);
    [[nodiscard]] bool distrusts(const pool_group& group) const noexcept;
    void caught(pool_connection& each);
    void discard_idle(connection_ptr connection);
    connection_ptr unlist(pool_group& group, std::size_t index);
    connection_ptr unlist_oldest();
    void put_back(connection_ptr connection);
    void close_keeping_slot(connection_ptr connection);
    void discard(connection_ptr connection);
    void release_slot(pool_group& group);
    void forget_if_unused(pool_group& group);
    void close_expired();
    void stop();
    void add(std::atomic<std::uint64_t>& figure, int change) {
        // Written by this thread alone: no read-modify-write needed.
        figure.store(figure.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(change),
                     std::memory_order_relaxed);
    }

    deadlines& timer;
    resolver& names;
    std::shared_ptr<const destination_guard> guard;
    tls_trust_ptr trust;
    std::shared_ptr<distrusted_origins> distrusted = std::make_shared<distrusted_origins>();
    surplus_listener told;
    config::origin_options options;
    origin_figures figures;
    list_link oldest_first;
    std::size_t idle_count = 0;
    deadline sweep;
    bool stopped = false;
};

/// A slot without a connection, while one is dialled.
class pool_slot {
public:
    pool_slot(pool_state& in, pool_group& of) : pool_(in), group_(&of) {}
    ~pool_slot();
    pool_slot(const pool_slot&) = delete;
    pool_slot& operator=(const pool_slot&) = delete;

    /// The connection answers for the slot from now on.
    void hand_over() noexcept { group_ = nullptr; }

private:
    pool_state& pool_;
    pool_group* group_;
};

}  // namespace reprise::proxy::detail
