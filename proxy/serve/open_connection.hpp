#pragma once
// That a client's connection is there: its place among all clients', and among those that are open.

#include "proxy/net/address.hpp"
#include "proxy/thread/worker.hpp"

namespace reprise::proxy::serve {

/// A connection's place among those that limits.client_connections and connections_per_client
/// allow.
class connection_slot {
public:
    connection_slot() = default;
    /// Takes one, if there is one.
    connection_slot(thread::worker& w, const net::address_bytes& client);
    connection_slot(connection_slot&& other) noexcept;
    connection_slot& operator=(connection_slot&& other) noexcept;
    ~connection_slot();

    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    thread::client_census* of_ = nullptr;
    net::address_bytes client_{};
    bool is_stranger_ = false;
};

/// A client's connection: counted with those that are open (counters::client_open) from its acceptance on, hands that
/// are shaken included, for as long as this lives. A drain waits for it.
/// Threads   its worker's; where that is gone, whoever destroys the loop.
class open_connection {
public:
    explicit open_connection(thread::worker& w) noexcept;
    open_connection(open_connection&& other) noexcept;
    open_connection& operator=(open_connection&&) = delete;
    ~open_connection();

    connection_slot place;  ///< none at first

private:
    thread_counters* counts_;  // null: moved from
};

}  // namespace reprise::proxy::serve
